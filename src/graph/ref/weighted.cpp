#include "graph/ref/weighted.h"

#include <algorithm>
#include <functional>

namespace skillet::ref {
namespace {

Result<void> check_types(const WeightedOp& op) {
  const Context& c = op.context;
  const ir::Tensor &input = c.input(op.input), &filter = c.input(op.filter), &output = c.output();
  const bool wide = input.dtype == ir::DType::int16;
  SK_TRY(wide ? c.need_int16(input) : c.need_quantized(input));
  SK_TRY(wide ? c.need_int16(output) : c.need_quantized(output));
  if (filter.dtype != (wide ? ir::DType::int8 : input.dtype) || output.dtype != input.dtype) {
    return c.unsupported("{} input, {} filter, {} output", ir::dtype_name(input.dtype), ir::dtype_name(filter.dtype),
                         ir::dtype_name(output.dtype));
  }
  if (!filter.is_constant() || filter.quant.empty()) return c.unsupported("filter is not a quantized constant");
  if (filter.quant.per_channel() && filter.quant.scales.size() != op.channels) {
    return c.unsupported("{} filter scales for {} channels", filter.quant.scales.size(), op.channels);
  }
  const auto differ = [](const auto& values) {
    return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) != values.end();
  };
  if (filter.dtype == ir::DType::uint8 && differ(filter.quant.scales)) {
    return c.unsupported("uint8 filter with a scale per channel");
  }
  if (differ(filter.quant.zero_points)) return c.unsupported("filter with a zero point per channel");
  return {};
}

Result<std::vector<int32_t>> bias_values(const WeightedOp& op) {
  if (!op.context.has_input(op.bias)) return std::vector<int32_t>(op.channels);
  const ir::Tensor& bias = op.context.input(op.bias);
  if (!bias.is_constant() || bias.dtype != ir::DType::int32)
    return op.context.unsupported("bias is not constant int32");
  return bias.values<int32_t>();
}

double real_multiplier(const WeightedOp& op, size_t channel) {
  const ir::Quant& filter = op.context.input(op.filter).quant;
  const float input_scale = op.context.input(op.input).quant.scale();
  const float filter_scale = filter.per_channel() ? filter.scales[channel] : filter.scale();
  // TFLite has uint8 filters with one scale only: a list of equal scales means one scale, written for each channel.
  const bool float_product =
      op.context.input(op.input).dtype == ir::DType::uint8 || (op.float_product && !filter.per_channel());
  const double product = float_product ? static_cast<double>(input_scale * filter_scale)
                                       : static_cast<double>(input_scale) * static_cast<double>(filter_scale);
  return product / static_cast<double>(op.context.output().quant.scale());
}

}  // namespace

Result<Layer> Layer::of(const Context& c) {
  const ir::Tensor &input = c.input(0), &filter = c.input(1);
  if (c.op().kind == ir::OpKind::fully_connected) {
    const size_t depth = dim(filter, 1);
    const auto rows = static_cast<int32_t>(elem_count(input) / depth);
    return Layer{.context = c,
                 .window = {.input_h = 1, .input_w = rows, .output_h = 1, .output_w = rows},
                 .channels_in = depth,
                 .channels_out = dim(filter, 0),
                 .group_in = depth,
                 .activation = c.attrs<ir::FullyConnectedAttrs>().activation,
                 .float_product = true};
  }
  const auto& attrs = c.attrs<ir::ConvAttrs>();
  Layer layer{.context = c,
              .window = {},
              .batches = dim(input, 0),
              .channels_in = dim(input, 3),
              .channels_out = dim(c.output(), 3),
              .group_in = dim(filter, 3),
              .activation = attrs.activation,
              .float_product = attrs.float_product};
  SK_TRY_ASSIGN(layer.window, conv_window(c, attrs, input.shape, filter.shape, c.output().shape));
  return layer;
}

Result<OutputStage> output_stage(const WeightedOp& op) {
  SK_TRY(check_types(op));
  const Context& c = op.context;
  OutputStage stage;
  SK_TRY_ASSIGN(stage.bias, bias_values(op));
  SK_TRY_ASSIGN(stage.range, activation_range(c, op.activation, c.output()));
  stage.zero_point = c.output().quant.zero_point();
  for (size_t i = 0; i < op.channels; ++i) {
    const auto by = quantize_multiplier(real_multiplier(op, i));
    stage.multiplier.push_back(by.multiplier);
    stage.shift.push_back(by.shift);
  }
  return stage;
}

Result<WideStage> wide_stage(const WeightedOp& op) {
  SK_TRY(check_types(op));
  const Context& c = op.context;
  WideStage stage;
  // Without a bias TFLite sums as with a 32-bit one, except in depthwise and transposed convolutions.
  const ir::OpKind kind = c.op().kind;
  stage.sums_of_32_bits = kind != ir::OpKind::depthwise_conv_2d && kind != ir::OpKind::transpose_conv;
  stage.bias.resize(op.channels);
  if (c.has_input(op.bias)) {
    SK_TRY_ASSIGN(stage.bias, c.constant_ints(op.bias));
    stage.sums_of_32_bits = c.input(op.bias).dtype == ir::DType::int32;
  }
  // As in LiteRT 2.3.0's kernels, both reference and built-in.
  stage.whole_multiplier = c.op().kind == ir::OpKind::fully_connected && !stage.sums_of_32_bits;
  if (c.input(op.filter).quant.zero_point() != 0) return c.unsupported("filter with a zero point");
  SK_TRY_ASSIGN(stage.range, activation_range(c, op.activation, c.output()));
  constexpr int kMaxShift = 14;  // for 64-bit sums
  for (size_t i = 0; i < op.channels; ++i) {
    stage.by.push_back(quantize_multiplier(real_multiplier(op, i)));
    if (stage.by.back().shift > kMaxShift)
      return c.unsupported("output scale {} is too small", c.output().quant.scale());
  }
  return stage;
}

std::vector<int16_t> widen_rows(const ir::Tensor& filter, size_t rows, size_t row_elems, size_t stride) {
  std::vector<int16_t> out(rows * stride);
  with_8bit(filter.dtype, [&](auto type) {
    const auto* from = reinterpret_cast<const decltype(type)*>(filter.data.data());
    for (size_t r = 0; r < rows; ++r) {
      gemm::widen(from + r * row_elems, row_elems, filter.quant.zero_point(), out.data() + r * stride);
    }
  });
  return out;
}

}  // namespace skillet::ref
