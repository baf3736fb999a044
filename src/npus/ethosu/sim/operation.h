// Entry points of the operations, and their common end: zero point, clamp, table.
// Called by the files of npus/ethosu/sim.
// Must not know: the stream.
#pragma once

#include "npus/ethosu/sim/generation.h"
#include "sim/weights.h"

namespace skillet::sim::ethosu {

Result<void> convolve(Context& context, bool is_depthwise);
// The weights of an operation.
Result<Weights> weights_of(Context& context, bool is_depthwise);
Result<void> pool(Context& context, hw::PoolMode mode);
Result<void> combine(Context& context, hw::ElementwiseMode mode);

// The output side of an operation. Error: a field has an unknown value.
class Output {
 public:
  // `takes_index`: the result may be the index of a value.
  static Result<Output> of(Context& context, bool takes_index = false);

  const FeatureMap& map() const { return map_; }
  hw::Rounding rounding() const { return rules_.rounding; }
  bool is_index() const { return rules_.is_index; }
  bool has_scale_per_channel() const { return !rules_.is_global; }
  // Scales by ofm_scale. A 32-bit input is only shifted, as Vela's programs show.
  int64_t scaled(int64_t value, Scale by, const FeatureMap& input) const {
    return rescale(value, input.precision == hw::Precision::bits_32 ? Scale{1, by.shift} : by, rules_.rounding);
  }
  // The stored value for a value on the output's scale.
  int32_t stored(int64_t scaled_value) const;

 private:
  int32_t looked_up(int64_t index) const;

  FeatureMap map_;
  OutputRules rules_;
  int64_t least_ = 0, most_ = 0;
  std::span<const uint8_t> table_;
};

// Windows of a convolution or pool over an input that may be upscaled to twice its size.
struct Windows {
  uint32_t height = 1, width = 1;  // of the kernel, without dilation
  uint32_t stride_y = 1, stride_x = 1, dilation_y = 1, dilation_x = 1;
  uint32_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  hw::Upscale upscale{};
  bool has_zeros_first = false;
  uint32_t extent_y = 1, extent_x = 1;  // of the input as read: doubled by an upscale

  uint64_t taps() const { return uint64_t{height} * width; }
  bool is_padded() const { return pad_top + pad_left + pad_bottom + pad_right != 0; }
  uint32_t input_height() const { return upscale == hw::Upscale::none ? extent_y : (extent_y + 1) / 2; }
  uint32_t input_width() const { return upscale == hw::Upscale::none ? extent_x : (extent_x + 1) / 2; }
  // The input row or column that a tap reads; none: padding, or a zero between rows.
  static constexpr int64_t kNone = -1;
  int64_t row(uint32_t output, uint32_t tap) const {
    return place(int64_t{output} * stride_y + int64_t{tap} * dilation_y - pad_top, extent_y);
  }
  int64_t column(uint32_t output, uint32_t tap) const {
    return place(int64_t{output} * stride_x + int64_t{tap} * dilation_x - pad_left, extent_x);
  }

 private:
  int64_t place(int64_t at, uint32_t extent) const {
    if (at < 0 || at >= extent) return kNone;
    if (upscale == hw::Upscale::none) return at;
    return upscale == hw::Upscale::zeros && (at % 2 != 0) != has_zeros_first ? kNone : at / 2;
  }
};
Result<Windows> windows_of(const Registers& registers, const FeatureMap& output);
Result<Windows> windows_of(const Context& context, const FeatureMap& output);  // with the chip's quirks

}  // namespace skillet::sim::ethosu
