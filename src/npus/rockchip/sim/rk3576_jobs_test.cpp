// Jobs of the simulated RK3576: with a kernel that starts them wrongly, on both cores at once, and the rounding of
// products.
#include <algorithm>
#include <atomic>
#include <thread>

#include "npus/rockchip/sim/rk3576_runs.h"

namespace skillet::sim::rockchip {
namespace {

// With a kernel that writes TASK_CON as for the RK3588 only the first job computes.
TEST(Rk3576Jobs, OnlyTheFirstJobOfAWrongKernelWrites) {
  const auto device = create_device("rk3576", {.stock_task_con = true});
  ASSERT_TRUE(device.ok());
  Buffers buffers({placed(words_of(Shape{}))}, 0x1D, std::vector<uint8_t>(1024, 3));
  const std::vector<uint8_t> untouched = buffers.out;
  for (const bool writes : {true, false, false}) {
    buffers.out = untouched;
    EXPECT_TRUE((*device)->run({.commands = buffers.tasks}, buffers.memory).ok());
    EXPECT_EQ(buffers.out != untouched, writes);
  }
}

// Jobs on both cores, one after the other on each core, until two overlap.
std::string run_on_both_cores(const Options& options, const std::vector<Words>& changes = {{}}, bool meets = true) {
  const auto device = create_device("rk3576", options);
  std::atomic<int> spoiled = 0;
  std::string problem;
  const Words words = placed(words_of(Shape{.in_channels = 64, .out_channels = 64, .in_height = 24, .in_width = 24}));
  std::vector<Words> others;  // the tasks of the second core's jobs
  for (const Words& change : changes) {
    others.push_back(words);
    for (const auto& [address, value] : change) others.back()[address] = value;
  }
  const std::vector<uint8_t> input(64 * 24 * 24, 3), right = run({words}, 0x1D, input).out;
  const auto run_on = [&](uint32_t core, std::string& what) {
    const int kTries = meets ? 2000 : 100;
    Buffers buffers(core == 0 ? std::vector<Words>{words} : others, 0x1D, input);
    for (int i = 0; i < kTries && spoiled == 0; ++i) {
      const auto ran = (*device)->run({.commands = buffers.tasks, .core = core}, buffers.memory);
      if (!ran.ok()) what = ran.error().message;
      if (!ran.ok() || buffers.out != right) ++spoiled;
    }
  };
  std::string other;
  std::thread thread([&] { run_on(1, other); });
  run_on(0, problem);
  thread.join();
  EXPECT_EQ(spoiled > 0, meets);
  return problem + other;
}
TEST(Rk3576Jobs, JobsOfBothCoresMeet) {
  EXPECT_NE(run_on_both_cores({}).find("while another core has one"), std::string::npos);
  EXPECT_EQ(run_on_both_cores({.loses_weights_at_once = true}), "");
  // With its own banks the other core's job gets the bytes that it fetches.
  const Words second{{0x1018, 0x4000040B}, {0x1038, 0x10E}, {0x103C, 24U << 16 | 0x1C00}, {0x1040, 0x2C001C00}};
  EXPECT_EQ(run_on_both_cores({}, {second}, false), "");
  Words one_shared = second;
  one_shared[0x1018] = 0x4000050B;  // from bank 6 on, which holds weights of the first core
  one_shared[0x103C] = 24U << 16 | 0x1800, one_shared[0x1040] = 0x2C001800;
  EXPECT_NE(run_on_both_cores({}, {one_shared}).find("in the same banks"), std::string::npos);
  EXPECT_NE(run_on_both_cores({}, {one_shared, second}).find("in the same banks"), std::string::npos);
}

// Pools and tables read memory through their own units: the other core's job keeps its data on the chip.
TEST(Rk3576Jobs, JobsWithoutBanksMeetNobody) {
  const auto device = create_device("rk3576");
  const Shape shape{.in_channels = 64, .out_channels = 64, .in_height = 24, .in_width = 24};
  Words pool = npus::rockchip::testing::pool_words_of(shape, true);
  pool[0x701C] = kInputAt, pool[0x6070] = kOutputAt;
  const std::vector<uint8_t> input(64 * 24 * 24, 3);
  std::atomic<bool> stops = false;
  std::string problem;
  std::thread other([&] {
    Buffers buffers({placed(words_of(shape))}, 0x1D, input);
    while (!stops && problem.empty()) {
      const auto ran = (*device)->run({.commands = buffers.tasks, .core = 1}, buffers.memory);
      if (!ran.ok()) problem = ran.error().message;
    }
  });
  Buffers buffers({pool}, 0x60, input);
  std::string pooling;
  for (int i = 0; i < 300 && pooling.empty(); ++i) {
    const auto ran = (*device)->run({.commands = buffers.tasks}, buffers.memory);
    if (!ran.ok()) pooling = ran.error().message;
  }
  stops = true, other.join();
  EXPECT_EQ(problem + pooling, "");
}

// Sums above 0 are shifted by one and otherwise unchanged.
TEST(Rk3576Jobs, HalvesOfProductsGoWhereTheOptionSays) {
  Words words = placed(words_of(Shape{.in_height = 1, .in_width = 1, .kernel_height = 1, .kernel_width = 1}));
  words[0x5024] += 48, words[0x40AC] = 0, words[0x40B0] = 1 << 14, words[0x40B4] = 14;
  const std::vector<uint8_t> input = {1};
  const Buffers buffers({words}, 0x1D, input);
  for (const Tie tie : {Tie::even, Tie::away}) {
    const Ran ran = run({words}, 0x1D, input, {.product_tie = tie});
    ASSERT_EQ(ran.problem, "");
    int halves = 0;
    for (size_t kernel = 0; kernel < 16; ++kernel) {
      const int sum = static_cast<int8_t>(buffers.weights[kernel * 16]), up = (sum + 1) / 2;
      const bool goes_down = tie == Tie::even && sum % 2 != 0 && up % 2 != 0;
      EXPECT_EQ(static_cast<int8_t>(ran.out[kernel]), sum <= 0 ? sum : goes_down ? up - 1 : up) << kernel;
      halves += sum > 0 && sum % 4 == 1;
    }
    EXPECT_GT(halves, 0);
  }
}

}  // namespace
}  // namespace skillet::sim::rockchip
