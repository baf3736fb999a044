// decode() without words gives the same addresses and unknown bits as with words, and leaves no bit out.
#include <gtest/gtest.h>

#include "lab/compare/testing/recorded.h"

namespace skillet::npu {
namespace {

auto facts_of(const AnnotatedField& f) {
  return std::tuple(f.unknown, f.kind, f.address, f.extent_bytes, f.reach.has_value(), f.reach.value_or(Reach{}).before,
                    f.reach.value_or(Reach{}).after, f.unused, f.descriptor, f.row, f.operation);
}

bool is_told(const AnnotatedField& field) { return field.kind != FieldKind::value || field.unknown; }

void expect_same(const Annotated& full, const Annotated& brief, const std::string& what) {
  std::vector<const AnnotatedField*> told;
  for (const AnnotatedField& field : full.fields) {
    if (is_told(field)) told.push_back(&field);
  }
  ASSERT_EQ(brief.fields.size(), told.size()) << what;
  for (size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(facts_of(brief.fields[i]), facts_of(*told[i])) << what << ": " << told[i]->path;
    EXPECT_EQ(brief.fields[i].path, "") << what;
  }
  EXPECT_EQ(brief.text, "") << what;
  EXPECT_EQ(brief.refused, full.refused) << what;
}

// True when two decodings without words differ.
bool differ(const Annotated& a, const Annotated& b) {
  if (a.values != b.values || a.fields.size() != b.fields.size()) return true;
  for (size_t i = 0; i < a.fields.size(); ++i) {
    if (facts_of(a.fields[i]) != facts_of(b.fields[i])) return true;
  }
  return false;
}

// Calls `visit` for each bit of the words that the device reads, with that bit changed.
template <typename Visit>
void for_each_changed_bit(const Recorded& job, const capture::Submission& submission, const Visit& visit) {
  capture::Submission changed = submission;
  std::vector<uint32_t>& words = changed.jobs[0].commands[0].words;
  for (size_t i = 0; changed.jobs[0].commands[0].address == 0 && i < words.size() * 32; ++i) {
    words[i / 32] ^= uint32_t{1} << i % 32;
    visit(changed);
    words[i / 32] ^= uint32_t{1} << i % 32;
  }
  const Annotated decoded = job.driver->decode(job.chip, submission).value();
  for (const AnnotatedField& field : decoded.fields) {
    if (field.kind != FieldKind::commands) continue;
    for (capture::BufferSnapshot& buffer : changed.buffers) {
      if (field.address < buffer.address || field.address - buffer.address >= buffer.bytes.size()) continue;
      const SharedBytes before = buffer.bytes;
      const uint64_t first = field.address - buffer.address;
      const uint64_t end = std::min<uint64_t>(first + field.extent_bytes, before.size());
      for (uint64_t i = first * 8; i < end * 8; ++i) {
        Bytes bytes(before.begin(), before.end());
        bytes[i / 8] ^= static_cast<uint8_t>(1 << i % 8);
        buffer.bytes = std::move(bytes);
        visit(changed);
      }
      buffer.bytes = before;
    }
  }
}

bool words_differ(const Annotated& a, const Annotated& b) {
  return !std::ranges::equal(a.fields, b.fields, {}, &AnnotatedField::raw, &AnnotatedField::raw) ||
         !std::ranges::equal(a.fields, b.fields, {}, &AnnotatedField::name, &AnnotatedField::name);
}

class DecodeDetail : public testing::TestWithParam<std::string> {};

TEST_P(DecodeDetail, TellsTheSameAddressesAndEveryOtherBit) {
  const Recorded job = recorded(GetParam());
  size_t seen = 0;
  for (const capture::Submission& submission : job.submissions) {
    const Annotated words = job.driver->decode_as(job.chip, submission, Detail::full).value();
    const Annotated before = job.driver->decode_as(job.chip, submission, Detail::addresses).value();
    expect_same(words, before, "as recorded");
    for_each_changed_bit(job, submission, [&](const capture::Submission& changed) {
      const auto full = job.driver->decode_as(job.chip, changed, Detail::full),
                 brief = job.driver->decode_as(job.chip, changed, Detail::addresses);
      ASSERT_EQ(full.ok(), brief.ok());
      if (!full.ok()) return;
      expect_same(*full, *brief, "a bit changed");
      if (!words_differ(*full, words)) return;
      ASSERT_TRUE(differ(*brief, before));
      ++seen;
    });
  }
  EXPECT_GT(seen, 500U);
}

INSTANTIATE_TEST_SUITE_P(Recorded, DecodeDetail, testing::Values("a311d_conv1x1_relu6_u8", "rk3588_conv1x1_relu6_u8"),
                         [](const auto& test) { return test.param.substr(0, test.param.find('_')); });

}  // namespace
}  // namespace skillet::npu
