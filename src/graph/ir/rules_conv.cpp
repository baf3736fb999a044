// Convolutions, fully connected layers, pooling.
#include <algorithm>
#include <cstdlib>

#include "graph/ir/rules.h"

namespace skillet::ir::rules {
namespace {

// Large enough for any network, and small enough that (kernel - 1) * dilation and similar terms cannot overflow.
constexpr int32_t kMaxStep = 1 << 15;

Result<void> check_step(std::string_view what, int32_t h, int32_t w) {
  if (h > 0 && w > 0 && h <= kMaxStep && w <= kMaxStep) return {};
  return error(ErrorCode::malformed, "{} {}x{} is outside 1..{}", what, h, w, kMaxStep);
}

Result<void> check_steps(const ConvAttrs& attrs) {
  SK_TRY(check_step("stride", attrs.stride_h, attrs.stride_w));
  return check_step("dilation", attrs.dilation_h, attrs.dilation_w);
}

// As TFLite's ComputeOutSize: negative if the window is larger than the input plus one stride.
int64_t window_count(Padding padding, int64_t input, int64_t kernel, int64_t stride, int64_t dilation) {
  const int64_t covered = padding == Padding::same ? 1 : (kernel - 1) * dilation + 1;
  return (input + stride - covered) / stride;
}

// The same for rows, whose padding may be given explicitly; then every window must hold a row of the image.
Result<int64_t> window_rows(Padding padding, const std::optional<RowPads>& rows, int64_t input, int64_t kernel,
                            int64_t stride, int64_t dilation) {
  if (!rows) return window_count(padding, input, kernel, stride, dilation);
  const int64_t extent = (kernel - 1) * dilation + 1;
  if (std::max(std::abs(int64_t{rows->top}), std::abs(int64_t{rows->bottom})) > kMaxStep)
    return error(ErrorCode::malformed, "rows of padding {} and {} are outside {}..{}", rows->top, rows->bottom,
                 -kMaxStep, kMaxStep);
  const int64_t count = window_count(Padding::valid, input + rows->top + rows->bottom, extent, stride, 1);
  if (rows->top < extent && (count - 1) * stride - rows->top < input) return count;
  return error(ErrorCode::malformed, "padding of {} and {} rows makes windows without a row of the image", rows->top,
               rows->bottom);
}

bool is_activation_type(DType dtype) {
  return is_8bit(dtype) || dtype == DType::int16 || dtype == DType::float32 || dtype == DType::float16 ||
         dtype == DType::bfloat16;
}

Result<void> check_filter_quant(const OpView& v, size_t filter, int channel_axis) {
  const Quant& quant = v.in(filter).quant;
  if (!quant.per_channel() || quant.axis == channel_axis) return {};
  return error(ErrorCode::unsupported, "filter {} is quantized along dimension {}, expected {}",
               describe_tensor(v.graph, v.op.inputs[filter]), quant.axis, channel_axis);
}

Result<void> check_bias(const OpView& v, size_t bias, size_t input, int32_t channels) {
  if (!v.has(bias)) return {};
  const Tensor& tensor = v.in(bias);
  const DType values = v.in(input).dtype;
  const bool integer = is_8bit(values) || values == DType::int16;
  if (integer ? tensor.dtype != DType::int32 && tensor.dtype != DType::int64 : !is_activation_type(tensor.dtype)) {
    return error(ErrorCode::malformed, "bias {} has a type that does not fit {} input",
                 describe_tensor(v.graph, v.op.inputs[bias]), dtype_name(values));
  }
  if (tensor.shape.elems() == channels) return {};
  return error(ErrorCode::malformed, "bias {} does not have one value for each of the {} output channels",
               describe_tensor(v.graph, v.op.inputs[bias]), channels);
}

// Integer arithmetic needs scales; without them the numbers have no meaning.
Result<void> check_weighted(const OpView& v, size_t input, size_t filter, int channel_axis) {
  const DType dtype = v.in(input).dtype;
  if (!is_activation_type(dtype)) {
    return error(ErrorCode::unsupported, "input {} has a type this op does not take",
                 describe_tensor(v.graph, v.op.inputs[input]));
  }
  const DType weights = v.in(filter).dtype;
  if (!is_activation_type(weights) && weights != DType::int4) {
    return error(ErrorCode::unsupported, "filter {} has a type this op does not take",
                 describe_tensor(v.graph, v.op.inputs[filter]));
  }
  const bool quantized = is_8bit(dtype) || dtype == DType::int16;
  for (TensorId id : {v.op.inputs[input], v.op.inputs[filter], v.op.outputs[0]}) {
    if (quantized && v.graph.tensor(id).quant.empty()) {
      return error(ErrorCode::malformed, "{} has no quantization", describe_tensor(v.graph, id));
    }
  }
  return check_filter_quant(v, filter, channel_axis);
}

Result<Shapes> windows(const OpView& v, const ConvAttrs& attrs, int32_t channels) {
  const Shape& input = v.shape(0);
  const Shape& filter = v.shape(1);
  SK_TRY_ASSIGN(const int64_t rows,
                window_rows(attrs.padding, attrs.rows, input[1], filter[1], attrs.stride_h, attrs.dilation_h));
  return one_shape(
      {input[0], rows, window_count(attrs.padding, input[2], filter[2], attrs.stride_w, attrs.dilation_w), channels});
}

}  // namespace

Result<Shapes> conv(const OpView& v) {
  const auto& attrs = v.op.as<ConvAttrs>();
  SK_TRY(need_rank(v, 0, 4));
  SK_TRY(need_rank(v, 1, 4));
  SK_TRY(check_steps(attrs));
  SK_TRY(check_weighted(v, 0, 1, 0));
  // Fewer filter channels than input channels: a grouped convolution.
  const int32_t channels_in = v.shape(0)[3], channels_out = v.shape(1)[0], group = v.shape(1)[3];
  if (channels_in == 0 || group == 0 || channels_in % group != 0 || channels_out % (channels_in / group) != 0) {
    return error(ErrorCode::malformed, "filter {} does not fit {} input channels",
                 describe_tensor(v.graph, v.op.inputs[1]), channels_in);
  }
  SK_TRY(check_bias(v, 2, 0, channels_out));
  return windows(v, attrs, channels_out);
}

Result<Shapes> depthwise_conv(const OpView& v) {
  const auto& attrs = v.op.as<ConvAttrs>();
  SK_TRY(need_rank(v, 0, 4));
  SK_TRY(need_rank(v, 1, 4));
  SK_TRY(check_steps(attrs));
  SK_TRY(check_weighted(v, 0, 1, 3));
  const Shape& filter = v.shape(1);
  const int32_t channels_in = v.shape(0)[3];
  if (filter[0] != 1 || int64_t{channels_in} * attrs.depth_multiplier != filter[3]) {
    return error(ErrorCode::malformed, "filter {} does not fit {} input channels with depth multiplier {}",
                 describe_tensor(v.graph, v.op.inputs[1]), channels_in, attrs.depth_multiplier);
  }
  SK_TRY(check_bias(v, 2, 0, filter[3]));
  return windows(v, attrs, filter[3]);
}

Result<Shapes> transpose_conv(const OpView& v) {
  SK_TRY(need_rank(v, 1, 4));
  SK_TRY(need_rank(v, 2, 4));
  SK_TRY(check_steps(v.op.as<ConvAttrs>()));
  if (v.op.as<ConvAttrs>().rows) return error(ErrorCode::unsupported, "its own padding of rows");
  SK_TRY(check_weighted(v, 2, 1, 0));
  const Shape& filter = v.shape(1);
  if (filter[3] == 0 || filter[3] != v.shape(2)[3]) {
    return error(ErrorCode::malformed, "filter {} does not fit {} input channels",
                 describe_tensor(v.graph, v.op.inputs[1]), v.shape(2)[3]);
  }
  SK_TRY(check_bias(v, 3, 2, filter[0]));
  SK_TRY_ASSIGN(const auto dims, constant_ints(v, 0));
  if (!dims) return Shapes{};
  if (dims->size() != 4 || (*dims)[0] != v.shape(2)[0] || (*dims)[3] != filter[0]) {
    return error(ErrorCode::malformed, "the output shape operand does not agree with batch {} and {} output channels",
                 v.shape(2)[0], filter[0]);
  }
  return one_shape(*dims);
}

Result<Shapes> fully_connected(const OpView& v) {
  SK_TRY(need_rank(v, 1, 2));
  SK_TRY(check_weighted(v, 0, 1, 0));
  const Shape& input = v.shape(0);
  const int32_t channels_out = v.shape(1)[0], depth = v.shape(1)[1];
  const bool keep = v.op.as<FullyConnectedAttrs>().keep_num_dims;
  if (depth == 0 || input.elems() % depth != 0 || (keep && input.back(0) != depth)) {
    return error(ErrorCode::malformed, "input {} is not a whole number of rows of {} values",
                 describe_tensor(v.graph, v.op.inputs[0]), depth);
  }
  SK_TRY(check_bias(v, 2, 0, channels_out));
  if (!keep) return one_shape({input.elems() / depth, channels_out});
  std::vector<int64_t> dims(input.dims.begin(), input.dims.end());
  if (dims.empty()) dims.push_back(1);
  dims.back() = channels_out;
  return one_shape(dims);
}

Result<Shapes> pool(const OpView& v) {
  const auto& attrs = v.op.as<PoolAttrs>();
  SK_TRY(need_rank(v, 0, 4));
  SK_TRY(check_step("stride", attrs.stride_h, attrs.stride_w));
  SK_TRY(check_step("filter", attrs.filter_h, attrs.filter_w));
  const Shape& input = v.shape(0);
  SK_TRY_ASSIGN(const int64_t rows,
                window_rows(attrs.padding, attrs.rows, input[1], attrs.filter_h, attrs.stride_h, 1));
  return one_shape(
      {input[0], rows, window_count(attrs.padding, input[2], attrs.filter_w, attrs.stride_w, 1), input[3]});
}

}  // namespace skillet::ir::rules
