// The common parts of all TP jobs: one instruction with its fields by meaning.
// Called by tp.cpp and tp_moves.cpp.
// Must not know: what a job does.
#pragma once

#include "npus/vivante/compiler/operations.h"
#include "npus/vivante/compiler/tp.h"

namespace skillet::npus::vivante {

// Windows end at a signed 16-bit number; sizes, strides and loop counts have 16 bits without sign.
constexpr int64_t kMaxWindow = 32768, kMaxField = 65535;

inline uint32_t u(int64_t value) { return static_cast<uint32_t>(value); }

// The fields that all TP jobs share (section 5.1, column "def").
inline hw::TpInstruction base_instruction(SlotId input, SlotId output, uint8_t in_zero_point, uint8_t out_zero_point) {
  return hw::TpInstruction{
      .in_image_global_mem = true,
      .i2f_enable = true,
      .f2i_enable = true,
      .in_tile_x_size = 1,
      .in_tile_x_inc = 1,
      .in_base_address = {input, 0},
      .pwl_lut_address = {bits::Address::kAbsolute, 0},
      .out_image_global_mem = true,
      .last = true,
      .out_base_address = {output, 0},
      .flat_rounding_mode = 1,
      .integer_rounding_mode = 1,
      .in_circular_buf_end = hw::kCircularBufferOff,
      .out_circular_buf_end = hw::kCircularBufferOff,
      .in_zp = in_zero_point,
      .out_zp = out_zero_point,
  };
}

inline void set_window(hw::TpInstruction& tp, int x_start, int x_end, int y_start, int y_end) {
  tp.in_window_x_start = x_start;
  tp.in_window_x_end = x_end;
  tp.in_window_y_start = y_start;
  tp.in_window_y_end = y_end;
}

inline void set_tile(hw::TpInstruction& tp, uint32_t x, uint32_t y) {
  tp.in_tile_x_size = tp.in_tile_x_inc = x;
  tp.in_tile_y_size = tp.in_tile_y_inc = y;
}

inline void set_image(hw::TpInstruction& tp, uint32_t x, uint32_t y, uint32_t z, uint32_t stride, uint32_t slice) {
  tp.in_x_size = x;
  tp.in_y_size = y;
  tp.in_z_size = z;
  tp.in_stride = stride;
  tp.in_slice = slice;
}

// Steps of the output: of the first loops, the fastest first, and of a plane. Further loops run once.
inline void set_loops(hw::TpInstruction& tp, const std::vector<Scatter::Loop>& loops, int64_t plane = 0) {
  uint32_t* const steps[] = {&tp.out_loop_0_inc, &tp.out_loop_1_inc, &tp.out_loop_2_inc,
                             &tp.out_loop_3_inc, &tp.out_loop_4_inc, &tp.out_loop_5_inc};
  uint32_t* const counts[] = {&tp.out_loop_0_count, &tp.out_loop_1_count, &tp.out_loop_2_count,
                              &tp.out_loop_3_count, &tp.out_loop_4_count, &tp.out_loop_5_count};
  for (size_t i = 0; i < std::size(steps); ++i) {
    const Scatter::Loop loop = i < loops.size() ? loops[i] : Scatter::Loop{};
    *steps[i] = u(loop.step), *counts[i] = u(loop.count);
  }
  tp.out_loop_6_inc = u(plane);
}

inline TpOperation one_core(SlotId input, SlotId output, const hw::TpInstruction& tp) {
  return TpOperation{.input = input, .output = output, .instructions = {tp}};
}

}  // namespace skillet::npus::vivante
