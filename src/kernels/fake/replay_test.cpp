#include "kernels/etnaviv/recorder/replay.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/testing/in_tree.h"
#include "kernels/fake/simulated.h"

namespace skillet::fake {
namespace {

const std::string kCase = skillet::in_tree("tests/captures/a311d_conv1x1_relu6_u8");

using kernels::etnaviv::Replay;

// Stores its command words, and their sum in the byte at its first word.
class Summer : public sim::Device {
 public:
  Result<void> run(const sim::Job& job, const sim::Memory& memory) override {
    SK_TRY_ASSIGN(const auto stream, sim::words_of(job));
    SK_TRY_ASSIGN(const auto target, memory.at(stream[0], 1, "sum"));
    for (const uint32_t word : stream.subspan(1)) target[0] = static_cast<uint8_t>(target[0] + word);
    return {};
  }
};

capture::Capture sample() {
  capture::Submission submission{.jobs = capture::one_list({0x400000, 3, 4})};
  submission.buffers.push_back({.handle = 7, .address = 0x400000, .size_bytes = 16, .listed = true});
  capture::Capture capture;
  capture.submissions = {submission, submission};
  return capture;
}

Replay replay_on(const Result<SimulatedCore>& simulated) {
  return Replay::create(simulated->core, simulated->calls).value();
}

Replay replay_summer() { return replay_on(core_of(std::make_unique<Summer>(), "summer", "sim:summer")); }

TEST(Replay, KeepsUnrecordedContentsAndRestoresRecordedOnes) {
  capture::Capture capture = sample();
  capture.submissions[1].buffers[0].content = capture::Content::bytes;
  capture.submissions[1].buffers[0].bytes = Bytes{50};
  auto replay = replay_summer();
  ASSERT_TRUE(replay.place(capture.submissions[0]).ok());
  ASSERT_TRUE(replay.set(7, Bytes{1, 9}).ok());
  ASSERT_TRUE(replay.run_placed().ok());
  const auto bytes = replay.buffer(7);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ((*bytes)[0], 8);
  EXPECT_EQ((*bytes)[1], 9);
  ASSERT_TRUE(replay.run(capture.submissions[0]).ok());
  EXPECT_EQ((*bytes)[0], 15);
  ASSERT_TRUE(replay.run(capture.submissions[1]).ok());
  EXPECT_EQ((*bytes)[0], 57);
  EXPECT_EQ((*bytes)[1], 0);
}

TEST(Replay, RefusesWhatIsNotThere) {
  capture::Capture capture = sample();
  capture.submissions[1].jobs = capture::one_list({});
  auto replay = replay_summer();
  EXPECT_EQ(replay.run(capture.submissions[1]).error().code, ErrorCode::unsupported);
  ASSERT_TRUE(replay.place(capture.submissions[0]).ok());
  EXPECT_FALSE(replay.buffer(8).ok());
  EXPECT_EQ(replay.set(7, Bytes(17)).error().code, ErrorCode::out_of_range);
  capture.submissions[0].buffers[0].listed = false;
  const auto fault = replay.run(capture.submissions[0]);
  ASSERT_FALSE(fault.ok());
  EXPECT_EQ(fault.error().message,
            "sim:summer: sum: 1 bytes at 0x400000 are not mapped: the submission lists no buffer");
  for (const uint64_t size_bytes : {(uint64_t{512} << 20) + 1, UINT64_MAX}) {
    capture.submissions[0].buffers[0].listed = true;
    capture.submissions[0].buffers[0].size_bytes = size_bytes;
    EXPECT_EQ(replay.place(capture.submissions[0]).error().code, ErrorCode::malformed);
  }
}

// A buffer that the recording has freed leaves its address to others; a handle may be reused at another address.
TEST(Replay, FollowsBuffersToOtherAddresses) {
  capture::Capture capture = sample();
  capture.submissions[1].jobs[0].commands[0].words[0] = 0x402000;
  capture.submissions[1].buffers = {
      {.handle = 7, .address = 0x402000, .size_bytes = 4096, .listed = true},
      {.handle = 8, .address = 0x400000, .size_bytes = 8192, .listed = true, .content = capture::Content::zero}};
  auto replay = replay_summer();
  for (const size_t index : {0, 1, 0, 1}) {
    const auto ran = replay.run(capture.submissions[index]);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
  }
  EXPECT_EQ(replay.buffer(7).value()[0], 28);
}

// Jobs of a driver that works on silicon compute TensorFlow Lite's results; the chip may differ by one step.
TEST(Replay, RunsARecordedConvolution) {
  auto chip = simulated_core("a311d");
  if (!chip.ok()) GTEST_SKIP() << chip.error().message;
  const auto capture = capture::read(kCase);
  const auto input = read_file(kCase + "/input_0.bin"), expected = read_file(kCase + "/output_0.bin");
  ASSERT_TRUE(capture.ok() && input.ok() && expected.ok());
  auto replay = replay_on(chip);
  constexpr uint32_t kInput = 3, kOutput = 6;
  for (const capture::Submission& submission : capture->submissions) {
    ASSERT_TRUE(replay.place(submission).ok());
    if (replay.buffer(kInput).ok()) {
      ASSERT_TRUE(replay.set(kInput, *input).ok());
    }
    const auto ran = replay.run_placed();
    ASSERT_TRUE(ran.ok()) << ran.error().message;
  }
  const auto output = replay.buffer(kOutput);
  ASSERT_TRUE(output.ok());
  for (size_t i = 0; i < expected->size(); ++i) ASSERT_LE(std::abs((*output)[i] - (*expected)[i]), 1) << i;
}

}  // namespace
}  // namespace skillet::fake
