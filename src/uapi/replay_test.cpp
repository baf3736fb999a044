#include "uapi/replay.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace skillet::uapi {
namespace {

const std::string kCase = SKILLET_SOURCE_DIR "/tests/captures/a311d_conv1x1_relu6_u8";

// Keeps its command words and adds them up in the byte at its first word.
class Summer : public sim::Device {
 public:
  Result<void> execute(std::span<const uint32_t> stream, const sim::Memory& memory) override {
    SK_TRY_ASSIGN(const auto target, memory.at(stream[0], 1, "sum"));
    for (const uint32_t word : stream.subspan(1)) target[0] = static_cast<uint8_t>(target[0] + word);
    return {};
  }
};

capture::Capture sample() {
  capture::Submission submission{.stream = {0x1000, 3, 4}};
  submission.buffers.push_back({.handle = 7, .address = 0x1000, .size_bytes = 16, .listed = true});
  capture::Capture capture;
  capture.submissions = {submission, submission};
  return capture;
}

TEST(Replay, KeepsUnrecordedContentsAndRestoresRecordedOnes) {
  capture::Capture capture = sample();
  capture.submissions[1].buffers[0].content = capture::Content::bytes;
  capture.submissions[1].buffers[0].bytes = {50};
  auto replay = Replay::create(std::make_unique<Summer>(), capture).value();
  ASSERT_TRUE(replay.set(7, Bytes{1, 9}).ok());
  ASSERT_TRUE(replay.run(0).ok());
  const auto bytes = replay.buffer(7);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ((*bytes)[0], 8);
  EXPECT_EQ((*bytes)[1], 9);
  ASSERT_TRUE(replay.run(0).ok());
  EXPECT_EQ((*bytes)[0], 15);
  ASSERT_TRUE(replay.run(1).ok());
  EXPECT_EQ((*bytes)[0], 57);
  EXPECT_EQ((*bytes)[1], 0);
}

TEST(Replay, RefusesWhatIsNotThere) {
  capture::Capture capture = sample();
  capture.submissions[1].stream.clear();
  auto replay = Replay::create(std::make_unique<Summer>(), capture).value();
  EXPECT_EQ(replay.run(1).error().code, ErrorCode::unsupported);
  EXPECT_EQ(replay.run(2).error().code, ErrorCode::invalid_argument);
  EXPECT_FALSE(replay.buffer(8).ok());
  EXPECT_EQ(replay.set(7, Bytes(17)).error().code, ErrorCode::out_of_range);
  capture.submissions[0].buffers[0].listed = false;
  const auto fault = Replay::create(std::make_unique<Summer>(), capture).value().run(0);
  ASSERT_FALSE(fault.ok());
  EXPECT_EQ(fault.error().message,
            "submission 0: sum: 1 bytes at 0x1000 are not mapped: the submission lists no buffer");
  capture.submissions[1].buffers[0].size_bytes = UINT64_MAX;
  EXPECT_EQ(Replay::create(std::make_unique<Summer>(), capture).error().code, ErrorCode::malformed);
}

// Jobs of a driver that works on silicon compute what TensorFlow Lite computes; the chip may round one step away.
TEST(Replay, RunsARecordedConvolution) {
  auto chip = sim::create("a311d");
  if (!chip.ok()) GTEST_SKIP() << chip.error().message;
  const auto capture = capture::read(kCase);
  const auto input = read_file(kCase + "/input_0.bin"), expected = read_file(kCase + "/output_0.bin");
  ASSERT_TRUE(capture.ok() && input.ok() && expected.ok());
  auto replay = Replay::create(std::move(chip).value(), *capture).value();
  constexpr uint32_t kInput = 3, kOutput = 6;
  ASSERT_TRUE(replay.set(kInput, *input).ok());
  for (size_t i = 0; i < replay.size(); ++i) {
    const auto ran = replay.run(i);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
  }
  const auto output = replay.buffer(kOutput);
  ASSERT_TRUE(output.ok());
  for (size_t i = 0; i < expected->size(); ++i) ASSERT_LE(std::abs((*output)[i] - (*expected)[i]), 1) << i;
}

}  // namespace
}  // namespace skillet::uapi
