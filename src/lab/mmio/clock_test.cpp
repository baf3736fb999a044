// The clock of --clock: its accepted values, and that jobs take their time.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/testing/in_tree.h"
#include "base/testing/own_folder.h"
#include "capture/hardware.h"
#include "lab/mmio/board.h"
#include "lab/mmio/job_watch.h"
#include "sim/sim.h"

namespace skillet::mmio {
namespace {

// A cell of the device tree holds less than 2^32 Hz.
TEST(Board, AClockThatNoDeviceTreeHoldsIsRefused) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN(), kAll = std::numeric_limits<double>::infinity();
  for (const double clock_mhz : {4295.0, -1.0, 1e300, 1e-9, kNone, kAll}) {
    const auto board = Board::create(own_path("board"), {.chips = {"a311d"}, .clock_mhz = clock_mhz});
    ASSERT_FALSE(board.ok());
    EXPECT_NE(board.error().message.find("must be from 0.001 to 4294 MHz"), std::string::npos) << board.error().message;
  }
}

TEST(Board, QuirksAreNamesBetweenPlusSigns) {
  const OwnFolder folder;
  for (const char* const chip :
       {"a311d,quirk=", "a311d,quirk=+steps_fault", "a311d,quirk=steps_fault+", "a311d,", "rk3588,quirk="}) {
    const auto board = Board::create(folder.path(), {.chips = {chip}});
    ASSERT_FALSE(board.ok()) << chip;
    EXPECT_NE(board.error().message.find("quirk=NAME"), std::string::npos) << board.error().message;
  }
}

TEST(Board, HasAsManyCoresAsADriverTakes) {
  const OwnFolder folder;
  const std::vector<std::string> five(5, "a311d");
  EXPECT_TRUE(Board::create(folder.path(), {.chips = {five.begin(), five.end() - 1}}).ok());
  const auto board = Board::create(folder.path(), {.chips = five});
  ASSERT_FALSE(board.ok());
  EXPECT_NE(board.error().message.find("etnaviv takes 4 cores at most"), std::string::npos) << board.error().message;
}

// A recorded job; at a clock of 1 kHz it takes some time.
TEST(JobWatch, AJobTakesTheTimeOfItsClock) {
  const capture::Capture capture = capture::read(in_tree("tests/captures/a311d_conv1x1_relu6_u8")).value();
  const capture::Submission& submission = capture.submissions.back();  // the one before sets the device up
  std::vector<Bytes> contents;
  sim::Memory memory;
  contents.reserve(submission.buffers.size());
  for (const capture::BufferSnapshot& one : submission.buffers) {
    if (one.address == 0) continue;
    contents.emplace_back(one.bytes.begin(), one.bytes.end());
    contents.back().resize(one.size_bytes);
    ASSERT_TRUE(memory.map(one.address, contents.back(), "buffer").ok());
  }
  const std::vector<uint32_t>& words = submission.jobs[0].commands[0].words;
  const sim::Commands commands{.bytes = {reinterpret_cast<const uint8_t*>(words.data()), words.size() * 4}};
  const auto waited = [&](double clock_mhz, const std::function<bool()>& is_over) {
    JobWatch watch = JobWatch::create("a311d", {}, {.clock_mhz = clock_mhz}).value();
    const auto begun = std::chrono::steady_clock::now();
    watch.wait({.commands = {&commands, 1}}, memory, begun, is_over);
    return std::chrono::steady_clock::now() - begun;
  };
  int asked = 0;
  waited(0.001, [&] { return ++asked == 20; });
  EXPECT_EQ(asked, 20) << "until nobody waits any longer";
  EXPECT_GE(waited(0.001, [] { return false; }), std::chrono::milliseconds(15));
  EXPECT_FALSE(JobWatch::create("none", {}, {.clock_mhz = 1}).ok());
}

}  // namespace
}  // namespace skillet::mmio
