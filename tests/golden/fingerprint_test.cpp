// A change within a case that is expected to differ must change its summary.
#include "fingerprint.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/testing/in_tree.h"
#include "captures.h"
#include "compile_compare.h"
#include "golden_case.h"

namespace skillet::golden {
namespace {

const std::string kSmall = skillet::in_tree("tests/golden/small");

// Fingerprints exclude allocators, page sizes and numbers of buffers: two sides that compare as identical have one.
void check_identical_cases(const std::string& dir, int& same, int& other) {
  for (const char* name : {"a311d", "imx8mp", "s905d3"}) {
    const npu::Chip chip = *npu::find_chip(name);
    const npu::Driver* driver = *npu::driver_of(chip);
    const auto cases = list_captures(dir, name);
    for (const std::string& one : cases.ok() ? *cases : std::vector<std::string>()) {
      const auto c = prepare_case(dir, chip, one);
      ASSERT_TRUE(c.ok()) << c.error().message;
      if (!c->has_recorded_job || !c->has_our_job) continue;
      const auto comparison = compare(*driver, chip, c->recorded_side(), c->our_side());
      const auto recorded = fingerprint(*driver, chip, c->recorded_side());
      const auto ours = fingerprint(*driver, chip, c->our_side());
      ASSERT_TRUE(comparison.ok() && recorded.ok() && ours.ok()) << name << " " << one;
      EXPECT_EQ(*recorded == *ours, comparison->same()) << name << " " << one;
      ++(comparison->same() ? same : other);
    }
  }
}

TEST(Fingerprint, IsThatOfAnIdenticalRecording) {
  int same = 0, other = 0;
  check_identical_cases(find_golden_dir().value_or(kSmall), same, other);
  fmt::print("{} cases with one fingerprint, {} with two\n", same, other);
  EXPECT_GT(same, 0);
  EXPECT_GT(other, 0);
}

// A differing case, and the number of changes of our side that did not change its summary.
class Planted {
 public:
  explicit Planted(const char* name) : chip_(*npu::find_chip("a311d")), driver_(**npu::driver_of(chip_)) {
    auto c = prepare_case(kSmall, chip_, name);
    EXPECT_TRUE(c.ok()) << c.error().message;
    case_ = std::move(c).value();
    before_ = summary();
    EXPECT_FALSE(before_.empty()) << name << " is no case that differs";
  }
  capture::Capture& ours() { return case_.ours; }
  bool is_input(uint32_t handle) const {
    return std::ranges::any_of(case_.our_tensors, [&](const npu::KnownTensor& t) {
      return t.handle == handle && t.name.starts_with("input");
    });
  }
  void look() {
    ++tried;
    if (summary() == before_) ++unseen;
  }
  void flip(uint8_t& byte, size_t bit) {
    byte ^= static_cast<uint8_t>(1U << bit);
    look();
    byte ^= static_cast<uint8_t>(1U << bit);
  }
  int tried = 0, unseen = 0;

 private:
  std::string summary() const {
    const auto comparison = compare(driver_, chip_, case_.recorded_side(), case_.our_side());
    if (!comparison.ok()) return comparison.error().message;
    const auto text = summary_of(driver_, chip_, case_, *comparison);
    return text.ok() ? *text : text.error().message;
  }

  npu::Chip chip_;
  const npu::Driver& driver_;
  ComparedCase case_;
  std::string before_;
};

void flip_bits(Planted& planted, capture::Submission& submission, size_t step) {
  std::vector<uint32_t>& words = submission.jobs.at(0).commands.at(0).words;
  auto* stream = reinterpret_cast<uint8_t*>(words.data());
  for (size_t i = 0; i < words.size() * 32; i += step) planted.flip(stream[i / 8], i % 8);
  for (capture::BufferSnapshot& buffer : submission.buffers) {
    if (!buffer.listed) continue;
    for (bool* flag : {&buffer.read, &buffer.write}) {
      *flag ^= true;
      planted.look();
      *flag ^= true;
    }
    if (buffer.content != capture::Content::bytes || planted.is_input(buffer.handle)) continue;
    const SharedBytes ours = buffer.bytes;
    Bytes bytes(ours.begin(), ours.end());
    buffer.bytes = SharedBytes(nullptr, bytes);
    for (size_t i = 0; i < bytes.size() * 8; i += step) planted.flip(bytes[i / 8], i % 8);
    buffer.bytes = ours;
  }
}

TEST(Fingerprint, SeesWhatIsPlantedInACaseThatDiffers) {
  for (const char* name : {"coral/split_concat", "gen/5_5_1_120_1_0_0_0_4", "ops/dw3x3_s2_relu6_u8"}) {
    Planted planted(name);
    for (capture::Submission& submission : planted.ours().submissions) flip_bits(planted, submission, 97);
    fmt::print("{}: {} changes planted, {} unseen\n", name, planted.tried, planted.unseen);
    EXPECT_GT(planted.tried, 100);
    EXPECT_EQ(planted.unseen, 0);
  }
}

// A refused case has only the recorded side: its summary is the hash of that side, so that changes of it show.
TEST(Fingerprint, OfTheRecordedSideIsTheSummaryOfARefusedCase) {
  const npu::Chip chip = *npu::find_chip("a311d");
  const npu::Driver& driver = **npu::driver_of(chip);
  const char* name = "ops/sub_i8";
  auto c = prepare_case(kSmall, chip, name);
  ASSERT_TRUE(c.ok()) << c.error().message;
  ASSERT_TRUE(c->has_recorded_job && !c->has_our_job) << name << " is no case that is refused";
  const auto recorded = [&] { return fingerprint(driver, chip, c->recorded_side()); };
  const uint64_t before = *recorded();
  const Outcome outcome = compare_case(kSmall, chip, name);
  EXPECT_EQ(outcome.outcome, "refused");
  EXPECT_EQ(outcome.summary, hash_text(before));

  int tried = 0;
  for (capture::Submission& submission : c->recorded.submissions) {
    for (uint32_t& word : submission.jobs.at(0).commands.at(0).words) {
      for (const uint32_t bit : {0U, 13U, 31U}) {
        word ^= 1U << bit;
        const auto now = recorded();
        EXPECT_TRUE(!now.ok() || *now != before) << "bit " << bit << " of a word of the stream is not seen";
        word ^= 1U << bit;
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 100);
}

}  // namespace
}  // namespace skillet::golden
