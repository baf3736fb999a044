// What happens where two look-up tables meet.
#include <gtest/gtest.h>

#include "sim/rockchip/test_support.h"

namespace skillet::sim::rockchip {
namespace {

using testing::Scene;

void run(Scene& scene, const testing::Program& program, const Options& options = {}) {
  const auto npu = Npu::create("rk3588", options);
  ASSERT_TRUE(npu.ok()) << npu.error().message;
  const auto result = (*npu)->run_task(0, scene.load(program.stream()), scene.memory);
  ASSERT_TRUE(result.ok()) << result.error().message;
  ASSERT_EQ(result->stall, "");
}

// The last value of one is the first of the other.
TEST(RockchipLookup, ThePriorityTellsWhichTableCounts) {
  for (const uint32_t priority : {0U, 1U}) {
    int zeros = 0;
    auto program = testing::lookup_program(24, [&](int value) { return value != 0 ? 0 : 11 * ++zeros; });
    program.set(hw::DpuLutCfg{.lut_lo_le_mux = 2, .lut_oflow_priority = 1, .lut_hybrid_priority = priority});
    Scene scene;
    std::ranges::fill(scene.buffers[testing::kInput], uint8_t{0});
    run(scene, program);
    EXPECT_EQ(zeros, 2);
    EXPECT_EQ(scene.output()[0], priority == 0 ? 11 : 22);
  }
}

}  // namespace
}  // namespace skillet::sim::rockchip
