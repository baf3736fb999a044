// Operation: one operation of the chip, as plain numbers.
// Made by lower.cpp and moves.cpp, sized by tile.cpp, written by encode.cpp.
// Must not know: registers, where tensors are in memory.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "base/fixed_point.h"
#include "graph/ir/graph.h"
#include "npus/ethosu/hw/ethosu.h"

namespace skillet::npus::ethosu {

namespace hw = ::skillet::ethosu::hw;

constexpr uint32_t kExtentMax = 65536;  // rows, columns and channels of an image

enum class Unit : uint8_t {
  conv,
  depthwise,
  max_pool,
  average_pool,
  reduce_sum,
  mul,
  add,
  sub,
  min,
  max,
  clz,
  shr,
  shl
};
constexpr bool is_elementwise(Unit unit) { return unit >= Unit::mul; }
constexpr bool has_weights(Unit unit) { return unit <= Unit::depthwise; }

// value * scale / 2^shift
struct Scale {
  uint32_t scale = 1, shift = 0;
  bool operator==(const Scale&) const = default;
};
constexpr Scale scale_of(QuantizedMultiplier by) {
  return {static_cast<uint32_t>(by.multiplier), static_cast<uint32_t>(31 - by.shift)};
}

// Bytes of a tensor, or of a part of one, as an image: the channels of a pixel are contiguous.
struct Map {
  ir::TensorId tensor = ir::kNoTensor;  // none: Operation::fill, or a constant; ids after the graph's: scratch
  uint64_t offset = 0;                  // bytes, like strides
  uint32_t height = 1, width = 1, depth = 1;
  uint64_t stride_y = 1, stride_x = 1;
  uint32_t first_row = 0;                        // of a stripe
  uint32_t first_channel = 0, all_channels = 0;  // of this many channels; 0: `depth`
  bool is_signed = false;
  int32_t zero_point = 0;
  hw::Precision precision = hw::Precision::bits_8;

  uint32_t elem_bytes() const { return 1U << static_cast<uint32_t>(precision); }
};

struct Window {
  uint32_t kernel_h = 1, kernel_w = 1;  // without dilation
  uint32_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  uint32_t top = 0, left = 0, bottom = 0, right = 0;  // padding
  hw::Upscale upscale{};                              // doubles rows and columns first

  uint32_t dilated_h() const { return (kernel_h - 1) * dilation_h + 1; }
  uint32_t dilated_w() const { return (kernel_w - 1) * dilation_w + 1; }
  bool is_padded() const { return top + left + bottom + right != 0; }
};

// Entries from the lowest value of the type on, with the output's element size. For 16 bits: 512 entries, each with the
// first of 128 values and 128 times the step between them.
using Table = std::vector<uint8_t>;

struct Operation {
  ir::OpId op = -1;
  Unit unit = Unit::conv;
  Map input, input2, output;
  Window window;
  hw::Rounding rounding = hw::Rounding::twice;
  Scale scale;                  // for results; units with weights use channel_scales
  int32_t least = 0, most = 0;  // limits of results, quantized
  // Weights: [output][row][column][input], or by tap, [row][column][output].
  ir::TensorId filter = ir::kNoTensor, bias = ir::kNoTensor;
  bool filter_by_tap = false;
  bool is_turned = false;      // last row and column first
  uint32_t first_channel = 0;  // of filter and bias, for a group of channels
  std::vector<int16_t> taps;   // of each channel, if there is no filter
  std::vector<Scale> channel_scales;
  // For ADD and SUB: `operand_scale` selects the operand that `operand` scales. If swapped, the second map is operand
  // A.
  bool is_swapped = false;
  hw::OperandScale operand_scale = hw::OperandScale::both_16;
  Scale operand;
  std::optional<Table> table;
  uint32_t function = 0;                  // of the hardware, after scaling
  uint8_t fill = 0;                       // each byte of an input without a tensor
  std::optional<int32_t> constant = {};   // replaces the second input, 32 bits
  std::optional<size_t> weights_of = {};  // a stripe: the earlier operation with the same weights

  bool is_wide() const { return input.precision == hw::Precision::bits_16; }
  // 40-bit sums, which scaled 16-bit results need.
  bool has_wide_sums() const {
    const bool scales_operands = (unit == Unit::add || unit == Unit::sub) && operand_scale != hw::OperandScale::both_16;
    return is_wide() && (has_weights(unit) || unit == Unit::mul || unit == Unit::reduce_sum || scales_operands);
  }
};

}  // namespace skillet::npus::ethosu
