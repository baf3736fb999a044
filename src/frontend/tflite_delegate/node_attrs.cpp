#include "frontend/tflite_delegate/node_attrs.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "frontend/tflite_delegate/builtin_params.h"
#include "graph/import/appended_fields.h"
#include "graph/import/no_attrs.h"

namespace skillet::delegate {
namespace {

using ir::Attrs;
using ir::OpKind;

using tflite::kGatherBatchDims;
using tflite::kStridedSliceOffset;
using tflite::kTransposeConvActivation;

// Hosts that have the field read it whatever the version says; what older hosts have there, in the slack of a small
// allocation, is anything. So where the version says that there is none, a value that means something is left to the
// host.
Result<void> check_appended(std::string_view field, int version, int64_t value, int64_t highest) {
  if (value < 1 || value > highest) return {};
  return error(ErrorCode::unsupported, "{}", tflite::why_not_of_version(field, version, value));
}

Result<ir::Padding> padding_of(TfLiteEnum code) {
  if (code == kTfLitePaddingSame) return ir::Padding::same;
  if (code == kTfLitePaddingValid) return ir::Padding::valid;
  return error(ErrorCode::unsupported, "unknown padding {}", code);
}

Result<ir::Activation> activation_of(TfLiteEnum code) {
  if (code >= 0 && code <= static_cast<int>(ir::Activation::sign_bit)) return static_cast<ir::Activation>(code);
  return error(ErrorCode::unsupported, "unknown activation function {}", code);
}

// Of memory that may hold anything.
int byte_of(const bool& flag) {
  uint8_t byte = 0;
  std::memcpy(&byte, &flag, 1);
  return byte;
}

// What convolutions and pooling have in common.
template <typename A, typename P>
Result<A> window_attrs(const P& params) {
  A attrs;
  SK_TRY_ASSIGN(attrs.padding, padding_of(params.padding));
  attrs.stride_h = params.stride_height;
  attrs.stride_w = params.stride_width;
  return attrs;
}

template <typename P>
Result<ir::ConvAttrs> conv_attrs(const P& params) {
  SK_TRY_ASSIGN(auto attrs, window_attrs<ir::ConvAttrs>(params));
  SK_TRY_ASSIGN(attrs.activation, activation_of(params.activation));
  attrs.dilation_h = params.dilation_height_factor;
  attrs.dilation_w = params.dilation_width_factor;
  return attrs;
}

Result<Attrs> read(const TfLiteConvParams& params, int /*version*/) {
  SK_TRY_ASSIGN(const auto attrs, conv_attrs(params));
  return Attrs{attrs};
}
Result<Attrs> read(const TfLiteDepthwiseConvParams& params, int /*version*/) {
  SK_TRY_ASSIGN(auto attrs, conv_attrs(params));
  attrs.depth_multiplier = params.depth_multiplier;
  return Attrs{attrs};
}
Result<Attrs> read(const TfLiteTransposeConvParams& params, int version) {
  SK_TRY_ASSIGN(auto attrs, window_attrs<ir::ConvAttrs>(params));
  constexpr int kHighest = static_cast<int>(ir::Activation::sign_bit);
  if (version < kTransposeConvActivation) {
    SK_TRY(check_appended("activation", version, params.activation, kHighest));
  } else {
    SK_TRY_ASSIGN(attrs.activation, activation_of(params.activation));
  }
  return Attrs{attrs};
}
Result<Attrs> read(const TfLitePoolParams& params, int /*version*/) {
  SK_TRY_ASSIGN(auto attrs, window_attrs<ir::PoolAttrs>(params));
  SK_TRY_ASSIGN(attrs.activation, activation_of(params.activation));
  attrs.filter_h = params.filter_height;
  attrs.filter_w = params.filter_width;
  return Attrs{attrs};
}
Result<Attrs> read(const TfLiteFullyConnectedParams& params, int /*version*/) {
  // Weights shuffled for one CPU's vector unit.
  if (params.weights_format != 0) return error(ErrorCode::unsupported, "weights format {}", params.weights_format);
  SK_TRY_ASSIGN(const auto activation, activation_of(params.activation));
  return Attrs{ir::FullyConnectedAttrs{.activation = activation,
                                       .keep_num_dims = params.keep_num_dims,
                                       .asymmetric_inputs = params.asymmetric_quantize_inputs}};
}
Result<Attrs> read(const TfLiteArithmeticParams& params, int /*version*/) {
  SK_TRY_ASSIGN(const auto activation, activation_of(params.activation));
  return Attrs{ir::ActivationAttrs{activation}};
}
Result<Attrs> read(const TfLiteConcatenationParams& params, int /*version*/) {
  SK_TRY_ASSIGN(const auto activation, activation_of(params.activation));
  return Attrs{ir::ConcatAttrs{.axis = params.axis, .activation = activation}};
}

Result<std::vector<int32_t>> list_of(const int (&values)[8], int count) {
  if (count < 0 || count > 8) return error(ErrorCode::malformed, "a list of {} entries", count);
  return std::vector<int32_t>(values, values + count);
}
Result<Attrs> read(const TfLiteReshapeParams& params, int /*version*/) {
  SK_TRY_ASSIGN(auto shape, list_of(params.shape, params.num_dimensions));
  return Attrs{ir::ReshapeAttrs{std::move(shape)}};
}
Result<Attrs> read(const TfLiteSqueezeParams& params, int /*version*/) {
  SK_TRY_ASSIGN(auto axes, list_of(params.squeeze_dims, params.num_squeeze_dims));
  return Attrs{ir::SqueezeAttrs{std::move(axes)}};
}
Result<Attrs> read(const TfLiteStridedSliceParams& params, int version) {
  if (version < kStridedSliceOffset) SK_TRY(check_appended("offset", version, byte_of(params.offset), 1));
  return Attrs{ir::StridedSliceAttrs{.begin_mask = params.begin_mask,
                                     .end_mask = params.end_mask,
                                     .ellipsis_mask = params.ellipsis_mask,
                                     .new_axis_mask = params.new_axis_mask,
                                     .shrink_axis_mask = params.shrink_axis_mask,
                                     .offset = version >= kStridedSliceOffset && params.offset}};
}
Result<Attrs> read(const TfLiteSplitParams& params, int /*version*/) {
  return Attrs{ir::SplitAttrs{params.num_splits}};
}
Result<Attrs> read(const TfLitePackParams& params, int /*version*/) {
  return Attrs{ir::PackAttrs{.axis = params.axis, .count = params.values_count}};
}
Result<Attrs> read(const TfLiteUnpackParams& params, int /*version*/) {
  return Attrs{ir::PackAttrs{.axis = params.axis, .count = params.num}};
}
Result<Attrs> read(const TfLiteLeakyReluParams& params, int /*version*/) {
  return Attrs{ir::LeakyReluAttrs{params.alpha}};
}
Result<Attrs> read(const TfLiteSoftmaxParams& params, int /*version*/) { return Attrs{ir::SoftmaxAttrs{params.beta}}; }
Result<Attrs> read(const TfLiteReducerParams& params, int /*version*/) {
  return Attrs{ir::ReduceAttrs{params.keep_dims}};
}
Result<Attrs> read(const TfLiteResizeParams& params, int /*version*/) {
  return Attrs{ir::ResizeAttrs{.align_corners = params.align_corners, .half_pixel_centers = params.half_pixel_centers}};
}
Result<Attrs> read(const TfLiteBlockParams& params, int /*version*/) {
  return Attrs{ir::BlockAttrs{params.block_size}};
}

Result<Attrs> read(const TfLiteMirrorPadParams& params, int /*version*/) {
  if (params.mode != 1 && params.mode != 2) return error(ErrorCode::unsupported, "unknown mode {}", params.mode);
  return Attrs{ir::MirrorPadAttrs{params.mode == 2}};
}
Result<Attrs> read(const TfLiteGatherParams& params, int version) {
  constexpr int kMost = 8;  // dimensions of any tensor
  if (version < kGatherBatchDims)
    SK_TRY(check_appended("batch_dims", version, std::abs(int64_t{params.batch_dims}), kMost));
  return Attrs{ir::GatherAttrs{.axis = params.axis, .batch_dims = version >= kGatherBatchDims ? params.batch_dims : 0}};
}
Result<Attrs> read(const TfLiteGeluParams& params, int /*version*/) { return Attrs{ir::GeluAttrs{params.approximate}}; }
Result<Attrs> read(const TfLiteOneHotParams& params, int /*version*/) { return Attrs{ir::OneHotAttrs{params.axis}}; }
Result<Attrs> read(const TfLiteCumsumParams& params, int /*version*/) {
  return Attrs{ir::CumsumAttrs{.exclusive = params.exclusive, .reverse = params.reverse}};
}
Result<Attrs> read(const TfLiteBatchMatMulParams& params, int /*version*/) {
  return Attrs{ir::BatchMatmulAttrs{.transpose_a = params.adj_x,
                                    .transpose_b = params.adj_y,
                                    .asymmetric_inputs = params.asymmetric_quantize_inputs}};
}
Result<Attrs> read(const TfLiteLocalResponseNormParams& params, int /*version*/) {
  return Attrs{ir::LocalResponseNormalizationAttrs{
      .radius = params.radius, .bias = params.bias, .alpha = params.alpha, .beta = params.beta}};
}
Result<Attrs> read(const TfLiteReverseSequenceParams& params, int /*version*/) {
  return Attrs{ir::ReverseSequenceAttrs{.axis = params.seq_dim, .batch_axis = params.batch_dim}};
}
Result<Attrs> read(const TfLiteLstmParams& params, int /*version*/) {
  if (params.kernel_type != 0) return error(ErrorCode::unsupported, "kernel type {}", params.kernel_type);
  SK_TRY_ASSIGN(const auto activation, activation_of(params.activation));
  return Attrs{ir::LstmAttrs{.activation = activation,
                             .cell_clip = params.cell_clip,
                             .projection_clip = params.proj_clip,
                             .asymmetric_inputs = params.asymmetric_quantize_inputs}};
}
Result<Attrs> read(const TfLiteSequenceLstmParams& params, int /*version*/) {
  SK_TRY_ASSIGN(const auto activation, activation_of(params.activation));
  return Attrs{ir::LstmAttrs{.activation = activation,
                             .cell_clip = params.cell_clip,
                             .projection_clip = params.proj_clip,
                             .time_major = params.time_major,
                             .asymmetric_inputs = params.asymmetric_quantize_inputs}};
}

template <typename P>
Result<Attrs> from(const void* builtin_data, int version) {
  if (builtin_data == nullptr) return error(ErrorCode::malformed, "the node has no parameters");
  return read(*static_cast<const P*>(builtin_data), version);
}

}  // namespace

Result<Attrs> read_attrs(OpKind kind, const void* data, int version) {
  switch (kind) {
    case OpKind::conv_2d: return from<TfLiteConvParams>(data, version);
    case OpKind::depthwise_conv_2d: return from<TfLiteDepthwiseConvParams>(data, version);
    case OpKind::transpose_conv: return from<TfLiteTransposeConvParams>(data, version);
    case OpKind::fully_connected: return from<TfLiteFullyConnectedParams>(data, version);
    case OpKind::add:
    case OpKind::sub:
    case OpKind::mul:
    case OpKind::div: return from<TfLiteArithmeticParams>(data, version);
    case OpKind::average_pool_2d:
    case OpKind::l2_pool_2d:
    case OpKind::max_pool_2d: return from<TfLitePoolParams>(data, version);
    case OpKind::concatenation: return from<TfLiteConcatenationParams>(data, version);
    case OpKind::split:
    case OpKind::split_v: return from<TfLiteSplitParams>(data, version);
    case OpKind::reshape: return from<TfLiteReshapeParams>(data, version);
    case OpKind::squeeze: return from<TfLiteSqueezeParams>(data, version);
    case OpKind::strided_slice: return from<TfLiteStridedSliceParams>(data, version);
    case OpKind::pack: return from<TfLitePackParams>(data, version);
    case OpKind::unpack: return from<TfLiteUnpackParams>(data, version);
    case OpKind::leaky_relu: return from<TfLiteLeakyReluParams>(data, version);
    case OpKind::softmax: return from<TfLiteSoftmaxParams>(data, version);
    case OpKind::mean:
    case OpKind::reduce_max:
    case OpKind::reduce_min:
    case OpKind::reduce_prod:
    case OpKind::reduce_any:
    case OpKind::reduce_all:
    case OpKind::sum: return from<TfLiteReducerParams>(data, version);
    case OpKind::resize_bilinear:
    case OpKind::resize_nearest_neighbor: return from<TfLiteResizeParams>(data, version);
    case OpKind::space_to_depth:
    case OpKind::depth_to_space: return from<TfLiteBlockParams>(data, version);
    case OpKind::mirror_pad: return from<TfLiteMirrorPadParams>(data, version);
    case OpKind::gather: return from<TfLiteGatherParams>(data, version);
    case OpKind::gelu: return from<TfLiteGeluParams>(data, version);
    case OpKind::one_hot: return from<TfLiteOneHotParams>(data, version);
    case OpKind::cumsum: return from<TfLiteCumsumParams>(data, version);
    case OpKind::batch_matmul: return from<TfLiteBatchMatMulParams>(data, version);
    case OpKind::local_response_normalization: return from<TfLiteLocalResponseNormParams>(data, version);
    case OpKind::reverse_sequence: return from<TfLiteReverseSequenceParams>(data, version);
    case OpKind::l2_normalization: return from<TfLiteArithmeticParams>(data, version);
    case OpKind::lstm: return from<TfLiteLstmParams>(data, version);
    case OpKind::unidirectional_sequence_lstm: return from<TfLiteSequenceLstmParams>(data, version);
    default: return tflite::no_attrs(kind);
  }
}

}  // namespace skillet::delegate
