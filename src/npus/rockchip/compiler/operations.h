// Operations of the NPU before tasks, buffers and bits: convolutions with all that follows them in one pass.
// Written by lower.cpp, read by tile.cpp, weights.cpp, registers.cpp, encode.cpp.
// Must not know: register fields.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "graph/ir/graph.h"
#include "program/program.h"

namespace skillet::npus::rockchip {

// The innermost three dimensions of a tensor.
struct Plane {
  int32_t height = 1, width = 1, channels = 1;
  int64_t pixels() const { return int64_t{height} * width; }
};

// The form of a tensor in memory: surfaces of 16 channels (section 5.1). Inputs of few channels also as rows of pixels
// (5.2), or as one surface whose pixels are blocks of 2x2: the rows of a block, in them the pixels, then the channels.
enum class Form : uint8_t { surfaces, pixels, blocks };

// Memory that holds one tensor, or several as pieces of one.
using SlotId = uint32_t;
struct Slot {
  std::string name;
  npu::BufferRole role = npu::BufferRole::scratch;
  uint64_t size_bytes = 0;  // all that operations touch, also past the tensor's end
};
struct Place {
  SlotId slot = 0;
  uint64_t offset_bytes = 0;
};

// Multiplication by scale / 2^shift.
struct Gain {
  int32_t scale = 0;
  int32_t shift = 0;
};

// RELU on the sum, with or without an upper limit.
struct Clamp {
  bool on = false;
  std::optional<int32_t> limit;
};

// out = convolution + gain * (second byte + offset), or the product of the two
struct Addition {
  Place second;
  bool multiplies = false;
  int32_t offset = 0;
  Gain gain;
  Clamp clamp;
};

// The byte that a convolution would store, formed between two stages: min(max((value + offset) * factor, 0), limit).
struct Rounded {
  int32_t offset = 0, factor = 0, limit = 0;
};

// Values and weights are unsigned bytes; signed ones have 128 added (section 0.1).
struct Conv {
  Plane in, out;
  int32_t kernel_height = 1, kernel_width = 1;
  int32_t stride_y = 1, stride_x = 1, dilation_y = 1, dilation_x = 1;
  int32_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  bool depthwise = false;
  bool packed = false;       // 1 to 4 input channels, in rows of pixels
  bool in_addition = false;  // recorded: this has a fused addition, or is the other operand of one
  // Parts of its kernels, one after the other. n > 0: each part's weights stay for tasks of several rows. n < 0: -n
  // parts whose weights are streamed past features. 0, or a number that does not fit: as few parts as fit.
  int32_t division = 0;
  bool repeated = false;                // all output rows, of one pixel each, read the single input pixel
  int64_t in_pitch = 0, out_pitch = 0;  // pixels from one surface to the next; 0: the plane's pixels
  int32_t gap = 0;                      // pixels left out after each row of the output
  bool shares_last = false;             // another operation also writes the last surface, with the same bytes

  SharedBytes weights;      // [output channel][tap][input channel]; depthwise [tap][channel]
  uint8_t weight_flip = 0;  // 0x80: signed bytes, bit 7 is inverted
  int32_t weight_zero = 128;
  std::vector<int32_t> weight_zeros;  // by kernel; empty: all weight_zero
  std::vector<int32_t> bias;          // all that is added to the sum of products, including zero points
  std::vector<int16_t> multipliers;   // of sums, 1/2^multiplier_shift; empty: none
  int32_t multiplier_shift = 0;
  int32_t input_zero = 128;
  uint32_t pad_value = 0;  // register value
  uint32_t truncate = 0;   // bits cut off the sum
  Clamp clamp;
  std::optional<Rounded> rounded;  // instead of the clamp
  bool halves_away = false;        // how the output converter rounds halves: away from zero; else to even
  // Rounds the exact result once, halves away from 0 of the output's bytes minus this number; empty: rounds as a
  // convolution does.
  std::optional<int32_t> once;
  bool slope = false;  // a slope of negative sums, recorded only: the place of its factor is not known
  std::optional<Addition> addition;
  std::shared_ptr<const std::array<int8_t, 256>> table;  // RK3576: by signed byte + 128, see make_table(); null: none
  int32_t table_zero = 0;                                // the input's, signed
  Gain out_gain;
  int32_t out_offset = 0;
  Place input, output;

  int32_t zero_of(size_t kernel) const { return weight_zeros.empty() ? weight_zero : weight_zeros[kernel]; }
  int32_t weight(size_t i) const { return weights.data()[i] ^ weight_flip; }
  int32_t taps() const { return kernel_height * kernel_width; }
  int32_t extent_y() const { return (kernel_height - 1) * dilation_y + 1; }
  int32_t extent_x() const { return (kernel_width - 1) * dilation_x + 1; }
};

// The DPU alone, over a row of `atoms` atoms: the larger or smaller byte of two, or an entry of a table.
struct Pointwise {
  Place input, second, output;
  int64_t atoms = 0;
  bool smaller = false;
  std::shared_ptr<const std::array<int8_t, 256>>
      table;  // by the byte's value + 128; null: the larger or smaller of two
};

// The pooling unit: the largest byte of each window, or their average.
struct Pool {
  Plane in, out;
  int32_t kernel_height = 1, kernel_width = 1, stride_y = 1, stride_x = 1, pad_top = 0, pad_left = 0;
  bool maximum = true;
  int32_t input_zero = 128;
  Place input, output;
};

struct Operation {
  ir::OpId op = -1;
  std::string kind;  // for reports
  std::variant<Conv, Pointwise, Pool> work;
  bool continued = false;  // the next operation overwrites the end of this one's surfaces: both must be in one job
};

struct PlacedTensor {
  ir::TensorId tensor = ir::kNoTensor;
  Place place;
  Form form = Form::surfaces;
};

struct Lowered {
  std::vector<Slot> slots;
  std::vector<Operation> operations;
  std::vector<PlacedTensor> inputs, outputs, intermediates;
};

}  // namespace skillet::npus::rockchip
