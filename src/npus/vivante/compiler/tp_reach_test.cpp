// Compares the reach of TP jobs' loops with the simulator's walk, element by element.
#include "npus/vivante/compiler/tp_reach.h"

#include <gtest/gtest.h>

#include <random>

#include "npus/vivante/sim/tp_job.h"

namespace skillet::npus::vivante {
namespace {

using skillet::vivante::hw::TpInstruction;

sim::vivante::TpJob job_of(const TpInstruction& tp) {
  return {.z_first = -int64_t{tp.in_window_z_start_overfetch},
          .z_last = int64_t{tp.in_z_size} - 1 + tp.in_window_z_end_overfetch,
          .window_x0 = tp.in_window_x_start,
          .window_y0 = tp.in_window_y_start,
          .window_x1 = tp.in_window_x_end,
          .window_y1 = tp.in_window_y_end,
          .tile_width = tp.in_tile_x_size,
          .tile_height = tp.in_tile_y_size,
          .tile_x_inc = tp.in_tile_x_inc,
          .tile_y_inc = tp.in_tile_y_inc,
          .increment = {tp.out_loop_0_inc, tp.out_loop_1_inc, tp.out_loop_2_inc, tp.out_loop_3_inc, tp.out_loop_4_inc,
                        tp.out_loop_5_inc, tp.out_loop_6_inc},
          .count = {tp.out_loop_0_count, tp.out_loop_1_count, tp.out_loop_2_count, tp.out_loop_3_count,
                    tp.out_loop_4_count, tp.out_loop_5_count},
          .loop_1_reset = tp.out_loop_1_reset,
          .loop_2_reset = tp.out_loop_2_reset,
          .loop_3_reset = tp.out_loop_3_reset};
}

TEST(TpReach, IsWhatTheSimulatorWalks) {
  std::mt19937 random(1);
  const auto below = [&](uint32_t count) { return static_cast<uint32_t>(random() % count); };
  const auto count = [&] { return below(3) == 0 ? 0 : 1 + below(6); };
  std::vector<uint8_t> out(1 << 20);
  int seen = 0;
  for (int i = 0; i < 20'000; ++i) {
    TpInstruction tp{.in_z_size = 1 + below(4), .in_window_x_start = -static_cast<int32_t>(below(3))};
    tp.in_window_x_end = tp.in_window_x_start + static_cast<int32_t>(below(9));
    tp.in_window_y_end = static_cast<int32_t>(below(7));
    tp.in_window_z_start_overfetch = below(2);
    tp.in_window_z_end_overfetch = below(3);
    tp.in_tile_x_size = 1 + below(6), tp.in_tile_y_size = 1 + below(6);
    tp.in_tile_x_inc = below(2) != 0 ? tp.in_tile_x_size : 1 + below(6);
    tp.in_tile_y_inc = below(2) != 0 ? tp.in_tile_y_size : 1 + below(6);
    for (uint32_t* const inc : {&tp.out_loop_0_inc, &tp.out_loop_1_inc, &tp.out_loop_2_inc, &tp.out_loop_3_inc,
                                &tp.out_loop_4_inc, &tp.out_loop_5_inc, &tp.out_loop_6_inc})
      *inc = below(40);
    tp.out_loop_0_count = count(), tp.out_loop_1_count = count(), tp.out_loop_2_count = count();
    tp.out_loop_3_count = count(), tp.out_loop_4_count = count(), tp.out_loop_5_count = count();
    tp.out_loop_1_reset = below(3) == 0, tp.out_loop_2_reset = below(3) == 0, tp.out_loop_3_reset = below(3) == 0;
    const sim::vivante::TpJob job = job_of(tp);
    const auto walked = sim::vivante::rearrange_plain(job, {}, out);
    ASSERT_TRUE(walked.ok()) << walked.error().message;
    const auto told = tp_output(tp);
    ASSERT_TRUE(told.has_value());
    ASSERT_EQ(told->bytes, *walked) << i;
    ASSERT_EQ(told->elements, job.elements()) << i;
    seen += *walked > 100 ? 1 : 0;
  }
  EXPECT_GT(seen, 5'000);
}

// Numbers that exceed 64 bits saturate instead of wrapping around.
TEST(TpReach, Saturates) {
  const TpInstruction tp{.in_z_size = 65535,
                         .in_window_x_start = -32768,
                         .in_window_y_start = -32768,
                         .in_window_x_end = 32767,
                         .in_window_y_end = 32767,
                         .in_tile_x_size = 65535,
                         .in_tile_y_size = 65535,
                         .in_tile_x_inc = 1,
                         .in_tile_y_inc = 1,
                         .out_loop_0_inc = UINT32_MAX,
                         .out_loop_1_inc = UINT32_MAX,
                         .out_loop_0_count = 0};
  const auto told = tp_output(tp);
  ASSERT_TRUE(told.has_value());
  EXPECT_GT(told->bytes, uint64_t{1} << 60);
  EXPECT_GT(told->elements, uint64_t{1} << 60);
}

}  // namespace
}  // namespace skillet::npus::vivante
