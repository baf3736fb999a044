#include "bits/bits.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <new>
#include <random>

namespace sample {
using skillet::bits::Address;
using skillet::bits::Blob;

#define SK_BITS_FILE "bits/bits_test_enums.def"
#include "bits/declare_enums.h"

#define SK_BITS_TYPE Sample
#define SK_BITS_WORDS 4
#define SK_BITS_FILE "bits/bits_test_rows.def"
#include "bits/declare.h"

#define SK_BITS_FILE "bits/bits_test_registers.def"
#include "bits/declare_set.h"

using namespace skillet::bits;  // as in a vendor's tables

#define SK_BITS_TYPE Sample
#define SK_BITS_NAME "sample"
#define SK_BITS_FILE "bits/bits_test_rows.def"
#include "bits/define.h"

#define SK_BITS_SET kRegisters
#define SK_BITS_FILE "bits/bits_test_registers.def"
#include "bits/define_set.h"

const RegisterSet kSet{kRegisters};
}  // namespace sample

namespace {
int allocations = 0;
}  // namespace

// Under a sanitizer GCC mistakes these for the sanitizer's operators.
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(size_t size) {
  ++allocations;
  if (void* const bytes = std::malloc(size)) return bytes;
  throw std::bad_alloc();
}
void operator delete(void* bytes) noexcept { std::free(bytes); }
void operator delete(void* bytes, size_t) noexcept { std::free(bytes); }

namespace skillet::bits {
namespace {

using sample::Sample;

const Sample kGood{.plain = 0xab,
                   .scattered = 0x2'12345678'9,
                   .negative = -3,
                   .flag = true,
                   .count = 16,
                   .power = 8,
                   .opcode = 5,
                   .base = {Address::kAbsolute, 0x1000},
                   .real = 1.5F};

TEST(Bits, PacksEachFieldWhereItsRowSays) {
  const auto words = pack(kGood);
  ASSERT_TRUE(words.ok()) << words.error().message;
  static_assert(std::is_same_v<decltype(words), const Result<std::array<uint32_t, 4>>>);
  EXPECT_EQ((*words)[0], 0x053FD9ABU);
  EXPECT_EQ((*words)[1], 0xA0000040U);
  EXPECT_EQ((*words)[2], 0x12345678U);
  EXPECT_EQ((*words)[3], 0x3FC00000U);
}

TEST(Bits, UnpackIsTheInverseOfPack) {
  const auto words = pack(kGood);
  const auto typed = unpack<Sample>(*words);
  EXPECT_EQ(typed.fields, kGood);
  EXPECT_FALSE(typed.raw.has_unclaimed());
}

// For any words: unpack then repack returns them, with bits without a row.
TEST(Bits, RepackOfUnpackIsIdentity) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::vector<uint32_t> words(4);
    for (uint32_t& w : words) w = random();
    words[0] = (words[0] & ~0x0f000000U) | 0x05000000U;  // the constant field has its required value
    const Unpacked unpacked = unpack(descriptor_of<Sample>(), words);
    const auto again = repack(descriptor_of<Sample>(), unpacked);
    ASSERT_TRUE(again.ok()) << again.error().message;
    ASSERT_EQ(*again, words);
  }
}

TEST(Bits, UnclaimedBitsAreKeptAndPrinted) {
  const std::vector<uint32_t> words = {0x80000000U | 0x05000000U, 0x04000000U, 0, 0};
  const Unpacked unpacked = unpack(descriptor_of<Sample>(), words);
  EXPECT_TRUE(unpacked.has_unclaimed());
  const std::string text = print(descriptor_of<Sample>(), unpacked);
  EXPECT_NE(text.find("unclaimed word 0 = 0x80000000"), std::string::npos) << text;
  EXPECT_NE(text.find("unclaimed word 1 = 0x04000000"), std::string::npos) << text;
}

struct Refusal {
  const char* what;
  Sample fields;
  const char* message;
};

TEST(Bits, RefusesWhatDoesNotFit) {
  const auto with = [](auto change) {
    Sample s = kGood;
    change(s);
    return s;
  };
  const Refusal refusals[] = {
      {"too wide", with([](Sample& s) { s.plain = 256; }), "sample.plain = 256: at most 255 in 8 bits"},
      {"too negative", with([](Sample& s) { s.negative = -9; }), "sample.negative = -9: allowed -8 to 7"},
      {"too positive", with([](Sample& s) { s.negative = 8; }), "sample.negative = 8: allowed -8 to 7"},
      {"zero count", with([](Sample& s) { s.count = 0; }), "sample.count = 0: must be at least 1"},
      {"big count", with([](Sample& s) { s.count = 17; }), "sample.count = 17: at most 16 in 4 bits"},
      {"not a power", with([](Sample& s) { s.power = 6; }), "sample.power = 6: must be a power of two"},
      {"unaligned", with([](Sample& s) { s.base.offset = 0x1020; }),
       "sample.base = 0x00001020: must be a multiple of 64"},
      {"symbolic", with([](Sample& s) {
         s.base = {3, 64};
       }),
       "sample.base = buffer 3 + 64: a symbolic address needs a place"},
  };
  for (const Refusal& r : refusals) {
    const auto words = pack(r.fields);
    ASSERT_FALSE(words.ok()) << r.what;
    EXPECT_NE(words.error().message.find(r.message), std::string::npos) << r.what << ": " << words.error().message;
  }
}

TEST(Bits, SymbolicAddressesBecomeSlots) {
  Sample s = kGood;
  s.base = {7, 192};
  std::vector<AddressSlot> slots;
  const auto words = pack(s, &slots);
  ASSERT_TRUE(words.ok());
  ASSERT_EQ(slots.size(), 1U);
  EXPECT_STREQ(slots[0].row->name, "base");
  EXPECT_EQ(slots[0].address, (Address{7, 192}));
  EXPECT_EQ((*words)[1] & 0x03ffffffU, 0U);
}

TEST(Bits, SymbolicAddressesInPiecesAreRefused) {
  struct Case {
    Where where;
    Codec codec;
    const char* message;  // empty: valid
  };
  const Case cases[] = {
      {at(0, 0, 32), raw, ""},
      {at(1, 4, 26), aligned(6), ""},
      {at(0, 6, 14) + at(1, 0, 18), raw, "split.address: a symbolic address in 2 pieces cannot be relocated"},
      {at(0, 0, 8) + at(1, 0, 8) + at(0, 8, 10), aligned(6),
       "split.address: a symbolic address in 3 pieces cannot be relocated"},
      {at(0, 0, 32), minus_one, "split.address: a symbolic address in 1 pieces with a codec cannot be relocated"},
  };
  for (const Case& c : cases) {
    const Row row{"address", ValueKind::address, c.codec, c.where, Evidence::guessed, ""};
    const Descriptor descriptor{"split", 2, {&row, 1}};
    const Value symbolic{64, 7}, absolute{64, Address::kAbsolute};
    std::vector<uint32_t> words(2);
    std::vector<AddressSlot> slots;
    EXPECT_TRUE(pack(descriptor, {&absolute, 1}, words, &slots).ok()) << "known addresses go anywhere";
    const auto packed = pack(descriptor, {&symbolic, 1}, words, &slots);
    EXPECT_EQ(packed.ok() ? "" : packed.error().message, c.message);
    EXPECT_TRUE(packed.ok() || packed.error().code == ErrorCode::internal);
    EXPECT_EQ(slots.size(), packed.ok() ? 1U : 0U);
  }
}

TEST(Bits, DiffNamesFieldsAndUnclaimedBits) {
  const auto a = pack(kGood);
  Words<Sample> b = *a;
  b[0] ^= 0x1;
  b[1] ^= 0x04000000;
  const auto differences = diff(descriptor_of<Sample>(), *a, b);
  ASSERT_EQ(differences.size(), 2U);
  EXPECT_EQ(differences[0].field, "plain");
  EXPECT_EQ(differences[0].a, "171");
  EXPECT_EQ(differences[0].b, "170");
  EXPECT_EQ(differences[1].field, "unclaimed word 1");
}

TEST(Bits, SourceComesFromTheRows) {
  const auto words = pack(kGood);
  const std::string source = as_source(descriptor_of<Sample>(), unpack(descriptor_of<Sample>(), *words));
  EXPECT_NE(source.find(".negative = -3,"), std::string::npos) << source;
  EXPECT_EQ(source.find(".opcode"), std::string::npos) << "a constant needs no initialiser";
  for (const uint32_t real : {0x7f800000U, 0xff800000U, 0x7fc00001U}) {
    Sample sample = kGood;
    sample.real = std::bit_cast<float>(real);
    const std::string text = as_source(descriptor_of<Sample>(), unpack(descriptor_of<Sample>(), *pack(sample)));
    EXPECT_NE(text.find(fmt::format(".real = std::bit_cast<float>(0x{:x}U),", real)), std::string::npos) << text;
  }
}

TEST(Bits, PackAndReadAllocateNothing) {
  const int before = allocations;
  const auto words = pack(kGood);
  const bool same = words.ok() && read<Sample>(*words) == kGood;
  EXPECT_EQ(allocations, before);
  EXPECT_TRUE(same);
  const std::string more(100, 'x');
  EXPECT_GT(allocations, before) << "the counter counts";
}

TEST(BitsEnum, PrintsByName) {
  using sample::Control;
  using sample::Mode;
  const auto text = [](uint32_t word) {
    return print(Control::descriptor(), unpack(Control::descriptor(), {&word, 1}));
  };
  EXPECT_EQ(text(2), "  mode = slow\n");
  EXPECT_EQ(text(3), "  mode = 3\n") << "a value without a name is a number";
  const auto words = pack(Control{.mode = Mode::slow, .weights = {{Address::kAbsolute, 0x40}}});
  ASSERT_TRUE(words.ok()) << words.error().message;
  const std::string source = as_source(Control::descriptor(), unpack(Control::descriptor(), *words));
  EXPECT_EQ(source, "block.control{\n    .mode = Mode::slow,\n    .weights = {{.offset = 0x00000040}},\n}\n");
}

TEST(BitsRegisters, AreFoundByAddress) {
  EXPECT_EQ(sample::kSet.find(0x1008), &sample::Control::descriptor());
  EXPECT_EQ(sample::kSet.find(0x100C), &sample::Size::descriptor());
  EXPECT_EQ(sample::kSet.find(0x1004), nullptr);
  EXPECT_EQ(sample::kSet.find(0x1010), nullptr);
  EXPECT_EQ(sample::kSet.index(sample::Size::descriptor()), 1U);
  EXPECT_EQ(sample::Size::kAddress, 0x100CU);
  EXPECT_STREQ(sample::Size::descriptor().name, "block.size");
}

TEST(BitsRegisters, PackAndReadByType) {
  const auto words = pack(sample::Size{.width = 7, .height = 9});
  ASSERT_TRUE(words.ok());
  EXPECT_EQ((*words)[0], 0x00080007U);
  EXPECT_EQ(read<sample::Size>(*words), (sample::Size{.width = 7, .height = 9}));
  EXPECT_EQ(unclaimed_bits(sample::Size::descriptor(), 0, 0xFF008007), 0xE0008000U);
}

TEST(BitsRegisters, FieldsAreTyped) {
  const std::span<const Row> rows = sample::Control::descriptor().rows;
  EXPECT_EQ(rows[0].kind, ValueKind::enumeration);
  EXPECT_EQ(rows[1].kind, ValueKind::blob);
  EXPECT_TRUE(is_address(rows[1].kind));
  EXPECT_EQ(sample::Size::descriptor().rows[0].kind, ValueKind::unsigned_int);
}

TEST(BitsRegisters, SymbolicBlobBecomesASlot) {
  std::vector<AddressSlot> slots;
  const auto words = pack(sample::Control{.weights = {{5, 0x80}}}, &slots);
  ASSERT_TRUE(words.ok());
  EXPECT_EQ((*words)[0], 0U);
  ASSERT_EQ(slots.size(), 1U);
  EXPECT_EQ(slots[0].address, (Address{5, 0x80}));
}

}  // namespace
}  // namespace skillet::bits
