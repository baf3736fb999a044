#include "lab/compare/buffer_match.h"

#include <gtest/gtest.h>

namespace skillet::npu {
namespace {

constexpr uint64_t kFirst = 0x10000, kApart = 0x10000;  // buffer n of a side is at kFirst + n * kApart

capture::Submission side(const std::vector<uint64_t>& sizes) {
  capture::Submission out;
  for (size_t i = 0; i < sizes.size(); ++i) {
    capture::BufferSnapshot one{.handle = static_cast<uint32_t>(i + 1), .address = kFirst + i * kApart};
    one.size_bytes = sizes[i];
    one.content = capture::Content::zero;
    out.buffers.push_back(std::move(one));
  }
  return out;
}

// An address in buffer `buffer` of one side.
struct Named {
  size_t buffer = 0;
  uint64_t offset = 0, extent = 0;
};
AnnotatedField field(const Named& named) {
  AnnotatedField out;
  out.kind = FieldKind::memory;
  out.address = kFirst + named.buffer * kApart + named.offset;
  out.extent_bytes = named.extent;
  return out;
}

struct Case {
  const char* what;
  std::vector<std::pair<Named, Named>> addresses;  // of a and b, compared in order
  bool found = false;                              // by the last one, and by no other
  std::vector<uint64_t> sizes_a = {8192, 8192}, sizes_b = {8192, 8192};
  bool exact_a = false, exact_b = false, b_is_hardware = false;
};

TEST(BufferMatch, MemoryIsTheSameWhereBothSidesMeanTheSame) {
  const Case cases[] = {
      {"the same twice", {{{0, 0}, {0, 0}}, {{0, 0}, {0, 0}}}},
      {"buffers change places", {{{0, 0}, {1, 0}}, {{1, 0}, {0, 0}}}},
      {"further on, by as much", {{{0, 0}, {0, 0}}, {{0, 64}, {0, 64}}}},
      {"further on, by more", {{{0, 0}, {0, 0}}, {{0, 64}, {0, 128}}}, true},
      {"further on, by less", {{{0, 0}, {0, 0}}, {{0, 128}, {0, 64}}}, true},
      {"one buffer of a stands for two", {{{0, 0}, {0, 0}}, {{0, 0}, {1, 0}}}, true},
      {"one buffer of b stands for two", {{{0, 0}, {0, 0}}, {{1, 0}, {0, 0}}}, true},
      {"one of b stands for two, at another place", {{{0, 0}, {0, 0}}, {{1, 0}, {0, 4096}}}, true},
      {"as many bytes", {{{0, 0, 100}, {0, 0, 100}}}},
      {"more bytes in a", {{{0, 0, 101}, {0, 0, 100}}}, true},
      {"more bytes in b", {{{0, 0, 100}, {0, 0, 101}}}, true},
      {"all bytes", {{{0, 0, 8192}, {0, 0, 8192}}}},
      {"as far beyond the end, which recorded jobs do", {{{0, 0, 8193}, {0, 0, 8193}}}},
      {"beyond the end of b alone", {{{0, 0, 8193}, {0, 0, 8193}}}, true, {8193}, {8192}},
      {"an address in no buffer of a", {{{2, 0}, {0, 0}}}, true},
      {"an address in no buffer of b", {{{0, 0}, {2, 0}}}, true},
      {"rounded to pages", {{{0, 0}, {0, 0}}}, false, {5000}, {8192}},
      {"a page more than rounded", {{{0, 0}, {0, 0}}}, true, {5000}, {12288}},
      {"a quarter more", {{{0, 0}, {0, 0}}}, false, {16384}, {20480}},
      {"more than a quarter more", {{{0, 0}, {0, 0}}}, true, {16384}, {20481}},
      {"rounded, but both are exact", {{{0, 0}, {0, 0}}}, true, {5000}, {8192}, true, true},
      {"a is exact, b rounded", {{{0, 0}, {0, 0}}}, false, {5000}, {8192}, true, false},
      {"a is exact, b smaller", {{{0, 0}, {0, 0}}}, true, {8192}, {5000}, true, false},
      {"b is exact, a rounded", {{{0, 0}, {0, 0}}}, false, {8192}, {5000}, false, true},
      {"b is exact, a smaller", {{{0, 0}, {0, 0}}}, true, {5000}, {8192}, false, true},
      {"inside a larger buffer", {{{0, 4096}, {0, 0}}}, false, {8192}, {4096}},
      {"inside a larger buffer that ends later", {{{0, 4096}, {0, 0}}}, true, {12288}, {4096}},
      {"one run of pages stands for two",
       {{{0, 0}, {0, 0}}, {{1, 0}, {0, 8192}}},
       false,
       {8192, 8192},
       {16384},
       false,
       false,
       true},
      {"a buffer in two places of a run",
       {{{0, 0}, {0, 0}}, {{0, 0}, {0, 8192}}},
       true,
       {8192, 8192},
       {16384},
       false,
       false,
       true},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    const capture::Submission a = side(one.sizes_a), b = side(one.sizes_b);
    const Outline nothing;
    BufferMatch match(nothing, nothing, one.exact_a, one.exact_b, one.b_is_hardware);
    match.start(a, b);
    for (size_t i = 0; i < one.addresses.size(); ++i) {
      const auto finding = match.address(field(one.addresses[i].first), field(one.addresses[i].second));
      EXPECT_EQ(finding.has_value(), one.found && i + 1 == one.addresses.size())
          << i << (finding ? ": " + finding->what + finding->a + " | " + finding->b : "");
    }
  }
}

// One range of pages of the hardware contains the bytes that follow the constants in another buffer.
TEST(BufferMatch, ConstantsOfTheHardwareEndWhereTheBufferOfTheClientEnds) {
  capture::Submission a = side({4096}), b = side({8192});
  Bytes bytes(4096, 7);
  a.buffers[0].content = b.buffers[0].content = capture::Content::bytes;
  a.buffers[0].bytes = bytes;
  bytes.resize(8000, 9);
  b.buffers[0].bytes = bytes;
  AnnotatedField constant = field({0, 0});
  constant.kind = FieldKind::constant;
  const Outline nothing;
  for (const bool is_hardware : {true, false}) {
    BufferMatch match(nothing, nothing, false, false, is_hardware);
    match.start(a, b);
    EXPECT_EQ(match.address(constant, constant).has_value(), !is_hardware);
  }
  Outline elsewhere;  // another submission has a larger buffer by this handle, with a second constant
  elsewhere.constants[1] = {0, 6000};
  BufferMatch reused(elsewhere, nothing, false, false, true);
  reused.start(a, b);
  EXPECT_FALSE(reused.address(constant, constant).has_value());
  bytes[4095] = 8;
  b.buffers[0].bytes = bytes;
  BufferMatch match(nothing, nothing, false, false, true);
  match.start(a, b);
  EXPECT_TRUE(match.address(constant, constant).has_value());
}

// A handle that is freed and reused is another buffer, if both sides have it at the same address.
TEST(BufferMatch, AHandleOfTheClientMayMoveWhereTheHardwareHasTheSameAddress) {
  const Outline nothing;
  for (const bool is_hardware : {true, false}) {
    BufferMatch match(nothing, nothing, false, false, is_hardware);
    capture::Submission a = side({8192, 8192}), b = side({8192, 8192});
    match.start(a, b);
    EXPECT_FALSE(match.address(field({0, 0}), field({0, 0})).has_value());
    std::swap(a.buffers[0].address, a.buffers[1].address);
    EXPECT_EQ(match.address(field({1, 0}), field({1, 0})).has_value(), !is_hardware);
  }
}

// Buffers in slots: no address names them.
TEST(BufferMatch, ListedBuffersWithoutANameArePairsWhereTheyAreTheSame) {
  const auto listed = [](const std::vector<uint64_t>& sizes) {
    capture::Submission out = side(sizes);
    for (capture::BufferSnapshot& one : out.buffers) one.listed = one.read = true;
    return out;
  };
  const auto differences = [&](const auto& change) {
    const capture::Submission a = listed({4096, 8192, 4096});
    capture::Submission b = listed({8192, 4096, 4096});
    change(b.buffers[1]);
    const Outline nothing;
    BufferMatch match(nothing, nothing, true, true);
    match.start(a, b);
    return match.lists().size();
  };
  EXPECT_EQ(differences([](capture::BufferSnapshot&) {}), 0u);
  EXPECT_EQ(differences([](capture::BufferSnapshot& one) { one.listed = false; }), 1u);
  EXPECT_EQ(differences([](capture::BufferSnapshot& one) { one.write = true; }), 2u);
  EXPECT_EQ(differences([](capture::BufferSnapshot& one) { one.read = false; }), 2u);
  EXPECT_EQ(differences([](capture::BufferSnapshot& one) { one.size_bytes = 4097; }), 2u);
  EXPECT_EQ(differences([](capture::BufferSnapshot& one) { one.content = capture::Content::unknown; }), 2u);
  EXPECT_EQ(differences([](capture::BufferSnapshot& one) {
              one.content = capture::Content::bytes;
              one.bytes = Bytes{1};
            }),
            2u);
}

}  // namespace
}  // namespace skillet::npu
