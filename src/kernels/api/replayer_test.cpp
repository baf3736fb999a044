#include "kernels/api/replayer.h"

#include <gtest/gtest.h>

#include <thread>

namespace skillet::kernels {
namespace {

TEST(Overlaps, CountsJobsThatBeginWhileOthersRun) {
  Overlaps overlaps;
  for (int i = 0; i < 3; ++i) {
    overlaps.begin();
    overlaps.end();
  }
  EXPECT_EQ(overlaps.count(), 0u);
  overlaps.begin();
  overlaps.begin();
  EXPECT_EQ(overlaps.count(), 1u);
  overlaps.end();
  overlaps.end();
  overlaps.begin();
  EXPECT_EQ(overlaps.count(), 1u);
}

// Also if each job is short: one waits for the other.
TEST(Overlaps, TwoThatRunOverAndOverMeet) {
  Overlaps overlaps;
  const auto run = [&] {
    for (int i = 0; i < 50; ++i) {
      overlaps.begin();
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      overlaps.end();
    }
  };
  std::thread other(run);
  run();
  other.join();
  EXPECT_GT(overlaps.count(), 0u);
}

}  // namespace
}  // namespace skillet::kernels
