#include "npus/rockchip/compiler/conv.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/int_math.h"
#include "npus/rockchip/compiler/choices.h"
#include "npus/rockchip/compiler/numerics.h"
#include "npus/rockchip/compiler/packing.h"
#include "npus/rockchip/compiler/tile.h"

namespace skillet::npus::rockchip {
namespace {

using ir::OpKind;

constexpr uint32_t kInAddition = 0xFFFFFF80, kRecordedZeroPad = 0xFFFF8080, kRecordedDepthwisePad = 0x0B0B;

Error does_not_fit(const char* what, double value) {
  return error(ErrorCode::unsupported, "{} of {:g} does not fit the chip's multiplier", what, value);
}

// Zero points as biases and additions use them: recorded jobs have the number unchanged (section 4.1).
int32_t bias_zero(const ir::Tensor& tensor, const Tuning& tuning) {
  return tuning.signed_tensors ? unsigned_zero(tensor) : tensor.quant.zero_point();
}

uint32_t pad_value(const Conv& conv, int32_t zero, const Tuning& tuning) {
  if (tuning.has(hw::kOnePadValue)) return static_cast<uint32_t>(zero - kWeightZero);
  const auto byte = static_cast<uint8_t>(zero - kWeightZero);
  if (tuning.pad_lanes) return byte * 0x01010101U;
  uint32_t value = static_cast<uint32_t>(zero - kWeightZero);
  if (conv.kernel_width >= 3 && zero == 0) value = kRecordedZeroPad;
  if (conv.in_addition) value = kInAddition;
  if (conv.depthwise && zero == 0x8B) value = kRecordedDepthwisePad;
  return value;
}

// Transposed, as recorded: fields named width hold a number of rows.
void set_window(const Window& w, const Tuning& tuning, Conv& conv) {
  conv.in = w.in, conv.out = w.out;
  conv.kernel_height = w.kernel_height, conv.kernel_width = w.kernel_width;
  if (!tuning.row_major) {
    std::swap(conv.in.height, conv.in.width);
    std::swap(conv.out.height, conv.out.width);
    std::swap(conv.kernel_height, conv.kernel_width);
  }
  conv.stride_x = w.stride_x;
  conv.stride_y = tuning.both_strides ? w.stride_y : w.stride_x;
  conv.dilation_y = w.dilation_y, conv.dilation_x = w.dilation_x;
  conv.pad_top = w.pad_top, conv.pad_left = w.pad_left;
  conv.pad_bottom = w.pad_bottom, conv.pad_right = w.pad_right;
}

int32_t limit_of(double real, double unit) {
  const double limit = std::ceil(real / unit);
  return limit < std::numeric_limits<int32_t>::max() ? static_cast<int32_t>(limit)
                                                     : std::numeric_limits<int32_t>::max();
}

// An upper limit is a whole number of steps of the sum. Where those are coarse, channels get multipliers, whose
// products
// have finer steps.
Scales with_fine_limits(const ir::Tensor& to, Scales scales, ir::Activation activation, const Conv& conv) {
  constexpr float kCoarse = 0.25F;
  const bool coarse = scales.product > kCoarse * to.quant.scale();
  if (scales.per_channel.empty() && coarse && limits_of(to, activation).upper)
    scales.per_channel.assign(static_cast<size_t>(conv.out.channels), scales.product);
  return scales;
}

// Every channel has a multiplier.
Result<void> set_scales(const ir::Tensor& to, const Scales& scales, ir::Activation activation, const Packing& packing,
                        const Tuning& tuning, Conv& conv) {
  constexpr double kSix = 6;
  Limits limits = limits_of(to, activation);
  if (!tuning.saturated_limits && activation != ir::Activation::none) {
    limits.lower = true;
    if (activation == ir::Activation::relu6) limits.upper = kSix;
  }
  conv.out_offset = unsigned_zero(to) - kWeightZero;
  conv.clamp = {.on = limits.lower || limits.upper};
  const std::vector<float> same(static_cast<size_t>(conv.out.channels), scales.product);
  return packing.set_scales(scales.per_channel.empty() ? same : scales.per_channel, to.quant.scale(), limits.upper,
                            !tuning.saturated_limits, conv);
}

Result<void> set_output(const ir::Tensor& to, const Scales& given, ir::Activation activation, const Tuning& tuning,
                        Conv& conv) {
  const float out_scale = to.quant.scale();
  if (tuning.packing != nullptr) return set_scales(to, given, activation, *tuning.packing, tuning, conv);
  const Scales scales = tuning.activations ? with_fine_limits(to, given, activation, conv) : given;
  double unit = scales.product;  // real value of 1 where limits apply
  if (scales.per_channel.empty()) {
    conv.out_gain = output_gain(scales.product / out_scale, tuning.carry);
  } else {
    std::vector<double> gains;
    for (const float scale : scales.per_channel) gains.push_back(double{scale} / out_scale);
    std::optional<ChannelGains> whole;
    if (scales.whole_steps) whole = whole_step_gains(gains);
    ChannelGains channels = whole ? std::move(*whole) : channel_gains(gains);
    conv.out_gain = channels.out;
    conv.multipliers = std::move(channels.multipliers);
    conv.multiplier_shift = channels.shift;
    unit = value_of(conv.out_gain) * out_scale;
  }
  if (conv.truncate != 0) --conv.out_gain.shift;
  if (tuning.more_operations && !is_valid(conv.out_gain)) return does_not_fit("a gain", scales.product / out_scale);
  conv.out_offset = register_zero(to, tuning) - kWeightZero;
  if (!tuning.activations) return {};
  const Limits limits = limits_of(to, activation);
  conv.clamp.on = limits.lower || limits.upper;
  if (limits.upper) conv.clamp.limit = limit_of(*limits.upper, unit);
  return {};
}

// Sum of a kernel's weights minus their zero point. Adds eight at a time, in four counters of 16 bits.
int64_t sum_of_kernel(const Conv& conv, size_t first, size_t count, int32_t zero) {
  constexpr uint64_t kEven = 0x00FF00FF00FF00FF;
  constexpr size_t kBlock = 512;  // largest number of weights before the counters overflow
  const uint64_t flip = 0x0101010101010101U * conv.weight_flip;
  int64_t total = -int64_t{zero} * static_cast<int64_t>(count);
  size_t at = first;
  for (const size_t end = first + count; at + 8 <= end;) {
    uint64_t even = 0, odd = 0;
    for (const size_t stop = std::min(end - 7, at + kBlock); at < stop; at += 8) {
      const uint64_t word = load_le<uint64_t>(conv.weights.data() + at) ^ flip;
      even += word & kEven;
      odd += word >> 8 & kEven;
    }
    for (int lsb = 0; lsb < 64; lsb += 16)
      total += static_cast<int64_t>((even >> lsb & 0xFFFF) + (odd >> lsb & 0xFFFF));
  }
  for (; at < first + count; ++at) total += conv.weight(at);
  return total;
}
std::vector<int64_t> kernel_sums(const Conv& conv) {
  const auto channels = static_cast<size_t>(conv.out.channels);
  std::vector<int64_t> sums(channels);
  if (!conv.depthwise) {
    const size_t count = conv.weights.size() / channels;
    for (size_t c = 0; c < channels; ++c) sums[c] = sum_of_kernel(conv, c * count, count, conv.zero_of(c));
    return sums;
  }
  for (size_t i = 0; i < conv.weights.size(); ++i) sums[i % channels] += conv.weight(i) - conv.zero_of(i % channels);
  return sums;
}
int64_t absolute_sum(const Conv& conv, size_t channel) {
  const auto channels = static_cast<size_t>(conv.out.channels);
  const size_t count = conv.weights.size() / channels;
  int64_t sum = 0;
  for (size_t i = 0; i < count; ++i)
    sum += std::abs(conv.weight(conv.depthwise ? i * channels + channel : channel * count + i) - conv.zero_of(channel));
  return sum;
}

// The products lack the true bias, and the zero point of the features times all weights.
Result<void> set_bias(const std::vector<int32_t>& bias, int32_t zero, const Tuning& tuning, Conv& conv) {
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
  const std::vector<int64_t> sums = kernel_sums(conv);
  const auto most = static_cast<int64_t>(conv.weights.size() / sums.size()) * 255 * 255;
  for (size_t c = 0; c < sums.size(); ++c) {
    const int64_t own = c < bias.size() ? bias[c] : 0;
    if (tuning.more_operations && c < bias.size() && std::abs(own) + most > kLargest &&
        std::abs(own) + 255 * absolute_sum(conv, c) > kLargest)
      return error(ErrorCode::unsupported, "the sums of channel {} may need more than 32 bits", c);
    const int64_t value = (own - int64_t{zero - kWeightZero} * sums[c]) / (int64_t{1} << conv.truncate);
    if (value != static_cast<int32_t>(value))
      return error(ErrorCode::unsupported, "the bias of channel {} needs more than 32 bits", c);
    conv.bias.push_back(static_cast<int32_t>(value));
  }
  return {};
}

// Makes a convolution of depthwise filters with several outputs per input, or of one channel. Its other weights are 0.
void widen(const Window& w, Conv& conv) {
  const auto in = static_cast<size_t>(w.in.channels), out = static_cast<size_t>(w.out.channels);
  const auto taps = static_cast<size_t>(conv.taps());
  Bytes wide(out * taps * in, static_cast<uint8_t>(conv.weight_zero));
  for (size_t c = 0; c < out; ++c) {
    if (!conv.weight_zeros.empty())
      std::fill_n(wide.begin() + static_cast<ptrdiff_t>(c * taps * in), taps * in,
                  static_cast<uint8_t>(conv.zero_of(c)));
    for (size_t tap = 0; tap < taps; ++tap)
      wide[(c * taps + tap) * in + c / static_cast<size_t>(w.multiplier)] =
          static_cast<uint8_t>(conv.weight(tap * out + c));
  }
  conv.weights = std::move(wide);
  conv.weight_flip = 0;
}

Result<void> set_weights(const ir::Graph& graph, const ir::Op& op, const Window& w, const Tuning& tuning, bool dense,
                         Conv& conv) {
  const ir::Tensor& filter = graph.tensor(op.inputs[1]);
  conv.weights = {filter.owner, filter.data};
  conv.weight_flip = filter.dtype == ir::DType::int8 && tuning.signed_tensors ? 0x80 : 0;
  conv.weight_zero = bias_zero(filter, tuning);
  const std::vector<int32_t>& zeros = filter.quant.zero_points;
  if (!ir::all_equal(zeros)) {
    for (const int32_t zero : zeros) conv.weight_zeros.push_back(zero + (filter.dtype == ir::DType::int8 ? 128 : 0));
  }
  if (!tuning.more_operations) {
    conv.depthwise = w.depthwise && w.in.channels > 1 && w.out.channels > 1;
    return {};
  }
  conv.depthwise = w.depthwise && w.multiplier == 1 && w.in.channels > 1 && !dense;
  if (w.depthwise && !conv.depthwise) widen(w, conv);
  return {};
}

std::vector<int32_t> biases_of(const ir::Graph& graph, const ir::Op& op) {
  const ir::TensorId bias = op.input(2);
  return bias == ir::kNoTensor ? std::vector<int32_t>() : graph.tensor(bias).values<int32_t>();
}

}  // namespace

int32_t register_zero(const ir::Tensor& tensor, const Tuning& tuning) {
  return tuning.signed_tensors ? unsigned_zero(tensor) : tensor.quant.zero_point() & 0xFF;
}

Conv constant_depthwise(const Window& w, std::span<const int32_t> taps, const Tuning& tuning) {
  Conv conv{.depthwise = true};
  set_window(w, tuning, conv);
  const auto channels = static_cast<size_t>(w.in.channels);
  Bytes weights(static_cast<size_t>(conv.taps()) * channels, taps.empty() ? kWeightZero + 1 : kWeightZero);
  for (const int32_t tap : taps)
    std::fill_n(weights.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(tap) * channels), channels,
                static_cast<uint8_t>(kWeightZero + 1));
  conv.weights = std::move(weights);
  return conv;
}

Conv flat_diagonal(const Plane& plane, int32_t weight, const Tuning& tuning) {
  const int64_t pitch = surface_pitch(plane, tuning);
  const Flat whole = tuning.has(hw::kFoursOfPixels) ? halves(pitch * ceil_div(plane.channels, kAtom)) : flat(plane);
  Conv conv{.in = whole.plane, .out = whole.plane, .in_pitch = whole.pitch, .out_pitch = whole.pitch};
  const auto channels = static_cast<size_t>(whole.plane.channels);
  Bytes weights(channels * channels, kWeightZero);
  for (size_t c = 0; c < channels; ++c) weights[c * (channels + 1)] = static_cast<uint8_t>(kWeightZero + weight);
  conv.weights = std::move(weights);
  return conv;
}

namespace {

Result<void> set_sums(const ir::Tensor& from, const std::vector<int32_t>& bias, const Tuning& tuning, Conv& conv) {
  conv.input_zero = register_zero(from, tuning);
  conv.pad_value = pad_value(conv, conv.input_zero, tuning);
  return set_bias(bias, bias_zero(from, tuning), tuning, conv);
}

}  // namespace

Result<void> set_values(const ir::Tensor& from, const ir::Tensor& to, const std::vector<int32_t>& bias,
                        const Scales& scales, ir::Activation activation, const Tuning& tuning, Conv& conv) {
  SK_TRY(set_sums(from, bias, tuning, conv));
  return set_output(to, scales, activation, tuning, conv);
}

// Each window must contain a pixel of the image, so it is as large as the borders on both sides together.
Window copy_window(const ir::Tensor& from, const ir::Tensor& to, const PadAmounts& pads) {
  Window w{.in = plane_of(from.shape), .out = plane_of(to.shape), .depthwise = true};
  w.kernel_height = pads.top + pads.bottom + 1, w.kernel_width = pads.left + pads.right + 1;
  w.pad_top = w.pad_bottom = w.kernel_height - 1;
  w.pad_left = w.pad_right = w.kernel_width - 1;
  return w;
}

Conv shape_of(const Window& w) {
  Tuning tuning;
  tuning.row_major = tuning.both_strides = true;
  Conv conv{.depthwise = w.depthwise && w.multiplier == 1 && w.in.channels > 1};
  set_window(w, tuning, conv);
  return conv;
}

namespace {

// Makes the convolution up to its sums, without the conversion to outputs.
Result<Conv> make_sums(const ir::Graph& graph, ir::OpId id, const Tuning& tuning, const PadAmounts& pads,
                       bool in_addition) {
  const ir::Op& op = graph.op(id);
  const ir::Tensor &from = graph.tensor(op.inputs[0]), &filter = graph.tensor(op.inputs[1]);
  Conv conv{.in_addition = in_addition};
  const Window w = with_pads(window_of(graph, id), pads);
  set_window(w, tuning, conv);
  SK_TRY(set_weights(graph, op, w, tuning, tuning.choice(id, kDenseDepthwise) != 0 && may_be_dense(w), conv));
  conv.truncate = !tuning.no_truncation && recorded_truncates(filter.quant.scale()) ? 1 : 0;
  SK_TRY(set_sums(from, biases_of(graph, op), tuning, conv));
  return conv;
}

Scales scales_of(const ir::Graph& graph, const ir::Op& op) {
  const ir::Tensor &from = graph.tensor(op.inputs[0]), &filter = graph.tensor(op.inputs[1]);
  Scales scales{.product = from.quant.scale() * filter.quant.scale()};
  if (is_per_channel(filter.quant)) {
    for (const float scale : filter.quant.scales) scales.per_channel.push_back(from.quant.scale() * scale);
  }
  return scales;
}

// Some of a direct convolution's kernels.
Conv kernels_of(const Conv& whole, int32_t first, int32_t count) {
  const auto from = static_cast<size_t>(first), kernels = static_cast<size_t>(count);
  const size_t each = whole.weights.size() / static_cast<size_t>(whole.out.channels);
  Conv conv = whole;
  conv.out.channels = count;
  conv.weights = {whole.weights.owner(), std::span<const uint8_t>(whole.weights).subspan(from * each, kernels * each)};
  for (auto* values : {&conv.bias, &conv.weight_zeros}) {
    if (!values->empty()) *values = {values->begin() + first, values->begin() + first + count};
  }
  return conv;
}

}  // namespace

Result<Conv> make_conv(const ir::Graph& graph, ir::OpId id, const Tuning& tuning, const PadAmounts& pads,
                       bool in_addition) {
  const ir::Op& op = graph.op(id);
  SK_TRY_ASSIGN(Conv conv, make_sums(graph, id, tuning, pads, in_addition));
  SK_TRY(set_output(graph.tensor(op.outputs[0]), scales_of(graph, op), activation_of(op), tuning, conv));
  return conv;
}

Result<std::vector<ConvPart>> make_parts(const ir::Graph& graph, ir::OpId id, const Tuning& tuning,
                                         const PadAmounts& pads) {
  const ir::Op& op = graph.op(id);
  const ir::Tensor& to = graph.tensor(op.outputs[0]);
  SK_TRY_ASSIGN(const Conv whole, make_sums(graph, id, tuning, pads, false));
  const Scales scales = scales_of(graph, op);
  Conv scaled = whole;
  SK_TRY(set_output(to, scales, activation_of(op), tuning, scaled));
  std::vector<ConvPart> parts;
  if (scales.per_channel.empty() || !tuning.has(hw::kOneShift) || !tuning.parts_by_scale) {
    parts.push_back({std::move(scaled), 0});
    return parts;
  }
  int32_t first = 0;
  const std::vector<int32_t> ends = tuning.packing->ends_of_parts(scales.per_channel, to.quant.scale(), scaled);
  if (ends.size() == 1) {
    parts.push_back({std::move(scaled), 0});
    return parts;
  }
  for (const int32_t end : ends) {
    Conv conv = whole.depthwise ? channels_of(whole, first, end - first, false) : kernels_of(whole, first, end - first);
    Scales own{.product = scales.product};
    own.per_channel = {scales.per_channel.begin() + first, scales.per_channel.begin() + end};
    SK_TRY(set_output(to, own, activation_of(op), tuning, conv));
    parts.push_back({std::move(conv), first});
    first = end;
  }
  return parts;
}

Conv channels_of(const Conv& whole, int32_t first, int32_t count, bool dense) {
  const auto from = static_cast<size_t>(first), channels = static_cast<size_t>(count);
  const auto all = static_cast<size_t>(whole.in.channels), taps = static_cast<size_t>(whole.taps());
  Conv conv = whole;
  conv.in.channels = conv.out.channels = count;
  Bytes weights(taps * channels);
  for (size_t tap = 0; tap < taps; ++tap)
    std::copy_n(whole.weights.data() + tap * all + from, channels,
                weights.begin() + static_cast<ptrdiff_t>(tap * channels));
  conv.weights = std::move(weights);
  const auto part_of = [&](auto& values) {
    if (values.empty()) return;
    values.erase(values.begin(), values.begin() + first);
    values.resize(channels);
  };
  part_of(conv.bias);
  part_of(conv.weight_zeros);
  part_of(conv.multipliers);
  if (!dense) return conv;
  conv.depthwise = false;
  widen({.in = conv.in, .out = conv.out, .depthwise = true}, conv);
  return conv;
}

namespace {

// Whether rounding its multiplier may change a channel's result by more than kErrorMax steps of the output.
bool is_coarse(const Conv& conv, size_t channel, double gain, int16_t multiplier) {
  constexpr double kErrorMax = 0.25;
  const double error = 0.5 / std::max<double>(multiplier, 0.5);
  if (error * 255 <= kErrorMax) return false;
  const int64_t sum = std::abs(int64_t{conv.bias[channel]}) + 255 * absolute_sum(conv, channel);
  return error * std::min(255.0, gain * static_cast<double>(sum)) > kErrorMax;
}

// The convolution with products in steps of the output, if those are fine enough for every channel.
Result<std::optional<Conv>> in_whole_steps(const Conv& whole, const ir::Tensor& to, float from_scale,
                                           const std::vector<float>& scales, ir::Activation activation,
                                           const Tuning& tuning) {
  Scales steps{.whole_steps = true};
  for (const float scale : scales) steps.per_channel.push_back(from_scale * scale);
  Conv conv = whole;
  conv.clamp = {};
  SK_TRY(set_output(to, steps, activation, tuning, conv));
  for (size_t c = 0; c < scales.size(); ++c) {
    const double gain = double{steps.per_channel[c]} / to.quant.scale();
    if (is_coarse(whole, c, gain, conv.multipliers[c])) return std::optional<Conv>();
  }
  return std::optional<Conv>(std::move(conv));
}

// The convolution with 0 as the output of channels that are not `kept`.
Conv only(const Conv& whole, const std::vector<bool>& kept) {
  Conv conv = whole;
  const auto channels = static_cast<size_t>(conv.out.channels);
  const size_t count = conv.weights.size() / channels;
  Bytes weights(conv.weights.begin(), conv.weights.end());
  for (size_t c = 0; c < channels; ++c) {
    if (kept[c]) continue;
    for (size_t i = 0; i < count; ++i)
      weights[conv.depthwise ? i * channels + c : c * count + i] =
          static_cast<uint8_t>(conv.weight_zero ^ conv.weight_flip);
    conv.bias[c] = 0;
  }
  conv.weights = std::move(weights);
  return conv;
}

}  // namespace

Result<std::vector<Conv>> make_passes(const ir::Graph& graph, ir::OpId id, const Tuning& tuning,
                                      const PadAmounts& pads) {
  SK_TRY_ASSIGN(Conv whole, make_conv(graph, id, tuning, pads));
  std::vector<Conv> passes;
  if (!is_per_channel(graph.tensor(graph.op(id).inputs[1]).quant)) {
    passes.push_back(std::move(whole));
    return passes;
  }
  const ir::Op& op = graph.op(id);
  const ir::Tensor& to = graph.tensor(op.outputs[0]);
  const float from_scale = graph.tensor(op.inputs[0]).quant.scale();
  const std::vector<float>& scales = graph.tensor(op.inputs[1]).quant.scales;
  if (tuning.fused_additions && !limits_of(to, activation_of(op)).upper) {
    SK_TRY_ASSIGN(std::optional<Conv> once, in_whole_steps(whole, to, from_scale, scales, activation_of(op), tuning));
    if (once) {
      passes.push_back(std::move(*once));
      return passes;
    }
  }
  std::vector<bool> left(scales.size(), true);
  while (std::ranges::count(left, true) != 0) {
    // The remaining channels decide the gain; channels for which it is too coarse are left to the next pass.
    Scales now;
    float largest = 0;
    for (size_t c = 0; c < scales.size(); ++c) largest = std::max(largest, left[c] ? scales[c] : 0);
    for (const float scale : scales) now.per_channel.push_back(from_scale * std::min(scale, largest));
    Conv conv = whole;
    conv.clamp = {};
    SK_TRY(set_output(to, now, activation_of(op), tuning, conv));
    std::vector<bool> kept(scales.size());
    for (size_t c = 0; c < scales.size(); ++c) {
      const double gain = double{now.per_channel[c]} / to.quant.scale();
      kept[c] = left[c] && (scales[c] == largest || !is_coarse(whole, c, gain, conv.multipliers[c]));
      if (kept[c]) left[c] = false;
    }
    const bool all = std::ranges::count(kept, false) == 0;
    passes.push_back(all ? std::move(conv) : only(conv, kept));
  }
  return passes;
}

Result<Conv> make_copy(const ir::Tensor& from, const ir::Tensor& to, const PadAmounts& pads, ir::Activation activation,
                       const Tuning& tuning) {
  const Window w = copy_window(from, to, pads);
  const int32_t tap = pads.bottom * w.kernel_width + pads.right;
  Conv conv = pads.none() ? flat_diagonal(w.in, 1, tuning) : constant_depthwise(w, {&tap, 1}, tuning);
  SK_TRY(set_values(from, to, {}, {.product = from.quant.scale()}, activation, tuning, conv));
  return conv;
}

Result<Addition> addition_of(const ir::Tensor& other, float unit, const Tuning& tuning) {
  Addition addition;
  addition.offset = kWeightZero - bias_zero(other, tuning);
  addition.gain = operand_gain(other.quant.scale() / unit);
  if (tuning.more_operations && !is_valid(addition.gain)) return does_not_fit("a ratio", other.quant.scale() / unit);
  return addition;
}

Result<void> fuse_addition(const ir::Graph& graph, ir::OpId conv_op, ir::OpId add_op, const Tuning& tuning,
                           Conv& conv) {
  const ir::Op &op = graph.op(conv_op), &add = graph.op(add_op);
  const float unit = graph.tensor(op.inputs[0]).quant.scale() * graph.tensor(op.inputs[1]).quant.scale();
  SK_TRY_ASSIGN(conv.addition, addition_of(graph.tensor(add.inputs[1]), unit, tuning));
  return set_output(graph.tensor(add.outputs[0]), {.product = unit}, ir::Activation::none, tuning, conv);
}

}  // namespace skillet::npus::rockchip
