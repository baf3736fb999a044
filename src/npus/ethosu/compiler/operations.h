// Operation: what the chip does in one go, as plain numbers.
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

// Bytes of a tensor, or of part of one, as an image: channels lie together.
struct Map {
  ir::TensorId tensor = ir::kNoTensor;  // none: Operation::fill, or a constant; behind those of the graph: scratch
  uint64_t offset = 0;                  // bytes, as are strides
  uint32_t height = 1, width = 1, depth = 1;
  uint64_t stride_y = 1, stride_x = 1;
  uint32_t first_row = 0;                        // from which on, of a stripe
  uint32_t first_channel = 0, all_channels = 0;  // from which on, of so many; 0: `depth`
  bool is_signed = false;
  int32_t zero_point = 0;
  hw::Precision precision = hw::Precision::bits_8;

  uint32_t elem_bytes() const { return 1U << static_cast<uint32_t>(precision); }
};

struct Window {
  uint32_t kernel_h = 1, kernel_w = 1;  // without dilation
  uint32_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  uint32_t top = 0, left = 0, bottom = 0, right = 0;  // padding
  hw::Upscale upscale{};                              // rows and columns are doubled before all else

  uint32_t dilated_h() const { return (kernel_h - 1) * dilation_h + 1; }
  uint32_t dilated_w() const { return (kernel_w - 1) * dilation_w + 1; }
  bool is_padded() const { return top + left + bottom + right != 0; }
};

// From the lowest value of the type; entries are as the output's elements. Of 16 bits: 512, each the first of 128
// values and 128 times the step between them.
using Table = std::vector<uint8_t>;

struct Operation {
  ir::OpId op = -1;
  Unit unit = Unit::conv;
  Map input, input2, output;
  Window window;
  hw::Rounding rounding = hw::Rounding::twice;
  Scale scale;                  // of results; of a unit with weights: channel_scales
  int32_t least = 0, most = 0;  // of results, quantized
  // Weights: [output][row][column][input], or by tap, [row][column][output].
  ir::TensorId filter = ir::kNoTensor, bias = ir::kNoTensor;
  bool filter_by_tap = false;
  bool is_turned = false;      // the last row and column first
  uint32_t first_channel = 0;  // of filter and bias: of a group of channels
  std::vector<int16_t> taps;   // of each channel, where there is no filter
  std::vector<Scale> channel_scales;
  // Of ADD and SUB: `operand_scale` says which operand has `operand`. The second map is operand A where they are
  // swapped.
  bool is_swapped = false;
  hw::OperandScale operand_scale = hw::OperandScale::both_16;
  Scale operand;
  std::optional<Table> table;
  uint32_t function = 0;                  // of hardware, on what is scaled
  uint8_t fill = 0;                       // each byte of an input that is no tensor
  std::optional<int32_t> constant = {};   // in the place of the second input, of 32 bits
  std::optional<size_t> weights_of = {};  // a stripe: the operation that has the same weights, before it

  bool is_wide() const { return input.precision == hw::Precision::bits_16; }
  // Sums of 40 bits, as what is made of 16 bits by a scale needs.
  bool has_wide_sums() const {
    const bool scales_operands = (unit == Unit::add || unit == Unit::sub) && operand_scale != hw::OperandScale::both_16;
    return is_wide() && (has_weights(unit) || unit == Unit::mul || unit == Unit::reduce_sum || scales_operands);
  }
};

}  // namespace skillet::npus::ethosu
