// builtin_data of an op, as a host would hold it: the reverse of node_attrs.h.
// Called by fake_host.cpp.
// Must not know: tensors.
#pragma once

#include <algorithm>

#include "base/bytes.h"
#include "frontend/tflite/delegate/builtin_params.h"
#include "ir/op.h"

namespace skillet::delegate {

template <typename P>
Bytes raw(const P& params) {
  Bytes out(sizeof params);
  std::memcpy(out.data(), &params, sizeof params);
  return out;
}

// Of ops that stand beside convolutions and have parameters of their own; empty for others.
inline Bytes encode_other_params(const ir::Op& op) {
  const auto act = [](ir::Activation a) { return static_cast<TfLiteEnum>(a); };
  switch (op.kind) {
    case ir::OpKind::mirror_pad: return raw(TfLiteMirrorPadParams{op.as<ir::MirrorPadAttrs>().symmetric ? 2 : 1});
    case ir::OpKind::gather: {
      const auto& a = op.as<ir::GatherAttrs>();
      return raw(TfLiteGatherParams{a.axis, a.batch_dims});
    }
    case ir::OpKind::gelu: return raw(TfLiteGeluParams{op.as<ir::GeluAttrs>().approximate});
    case ir::OpKind::one_hot: return raw(TfLiteOneHotParams{op.as<ir::OneHotAttrs>().axis});
    case ir::OpKind::cumsum: {
      const auto& a = op.as<ir::CumsumAttrs>();
      return raw(TfLiteCumsumParams{a.exclusive, a.reverse});
    }
    case ir::OpKind::batch_matmul: {
      const auto& a = op.as<ir::BatchMatmulAttrs>();
      return raw(TfLiteBatchMatMulParams{a.transpose_a, a.transpose_b});
    }
    case ir::OpKind::l2_normalization: return raw(TfLiteArithmeticParams{act(op.as<ir::ActivationAttrs>().activation)});
    case ir::OpKind::lstm: {
      const auto& a = op.as<ir::LstmAttrs>();
      return raw(TfLiteLstmParams{act(a.activation), a.cell_clip, a.projection_clip, 0});
    }
    case ir::OpKind::unidirectional_sequence_lstm: {
      const auto& a = op.as<ir::LstmAttrs>();
      return raw(TfLiteSequenceLstmParams{act(a.activation), a.cell_clip, a.projection_clip, a.time_major});
    }
    default: return {};
  }
}

// Empty for ops without parameters.
inline Bytes encode_params(const ir::Op& op) {
  const auto pad = [](ir::Padding p) { return p == ir::Padding::same ? kTfLitePaddingSame : kTfLitePaddingValid; };
  const auto act = [](ir::Activation a) { return static_cast<TfLiteEnum>(a); };
  const auto copy = [](const std::vector<int32_t>& from, int(&to)[8]) { std::copy_n(from.begin(), from.size(), to); };
  switch (op.kind) {
    case ir::OpKind::conv_2d: {
      const auto& a = op.as<ir::ConvAttrs>();
      return raw(
          TfLiteConvParams{pad(a.padding), a.stride_w, a.stride_h, act(a.activation), a.dilation_w, a.dilation_h});
    }
    case ir::OpKind::depthwise_conv_2d: {
      const auto& a = op.as<ir::ConvAttrs>();
      return raw(TfLiteDepthwiseConvParams{pad(a.padding), a.stride_w, a.stride_h, a.depth_multiplier,
                                           act(a.activation), a.dilation_w, a.dilation_h});
    }
    case ir::OpKind::transpose_conv: {
      const auto& a = op.as<ir::ConvAttrs>();
      return raw(TfLiteTransposeConvParams{pad(a.padding), a.stride_w, a.stride_h, act(a.activation)});
    }
    case ir::OpKind::average_pool_2d:
    case ir::OpKind::max_pool_2d: {
      const auto& a = op.as<ir::PoolAttrs>();
      return raw(TfLitePoolParams{pad(a.padding), a.stride_w, a.stride_h, a.filter_w, a.filter_h, act(a.activation)});
    }
    case ir::OpKind::fully_connected: {
      const auto& a = op.as<ir::FullyConnectedAttrs>();
      return raw(TfLiteFullyConnectedParams{act(a.activation), 0, a.keep_num_dims});
    }
    case ir::OpKind::add:
    case ir::OpKind::sub:
    case ir::OpKind::mul:
    case ir::OpKind::div: return raw(TfLiteArithmeticParams{act(op.as<ir::ActivationAttrs>().activation)});
    case ir::OpKind::concatenation: {
      const auto& a = op.as<ir::ConcatAttrs>();
      return raw(TfLiteConcatenationParams{a.axis, act(a.activation)});
    }
    case ir::OpKind::split:
    case ir::OpKind::split_v: return raw(TfLiteSplitParams{op.as<ir::SplitAttrs>().count});
    case ir::OpKind::reshape: {
      const auto& shape = op.as<ir::ReshapeAttrs>().shape;
      TfLiteReshapeParams params{{}, static_cast<int>(shape.size())};
      copy(shape, params.shape);
      return raw(params);
    }
    case ir::OpKind::squeeze: {
      const auto& axes = op.as<ir::SqueezeAttrs>().axes;
      TfLiteSqueezeParams params{{}, static_cast<int>(axes.size())};
      copy(axes, params.squeeze_dims);
      return raw(params);
    }
    case ir::OpKind::strided_slice: {
      const auto& a = op.as<ir::StridedSliceAttrs>();
      return raw(TfLiteStridedSliceParams{a.begin_mask, a.end_mask, a.ellipsis_mask, a.new_axis_mask,
                                          a.shrink_axis_mask, a.offset});
    }
    case ir::OpKind::pack: {
      const auto& a = op.as<ir::PackAttrs>();
      return raw(TfLitePackParams{a.count, a.axis});
    }
    case ir::OpKind::unpack: {
      const auto& a = op.as<ir::PackAttrs>();
      return raw(TfLiteUnpackParams{a.count, a.axis});
    }
    case ir::OpKind::leaky_relu: return raw(TfLiteLeakyReluParams{op.as<ir::LeakyReluAttrs>().alpha});
    case ir::OpKind::softmax: return raw(TfLiteSoftmaxParams{op.as<ir::SoftmaxAttrs>().beta});
    case ir::OpKind::mean:
    case ir::OpKind::reduce_max:
    case ir::OpKind::reduce_min:
    case ir::OpKind::reduce_prod:
    case ir::OpKind::reduce_any:
    case ir::OpKind::sum: return raw(TfLiteReducerParams{op.as<ir::ReduceAttrs>().keep_dims});
    case ir::OpKind::resize_bilinear:
    case ir::OpKind::resize_nearest_neighbor: {
      const auto& a = op.as<ir::ResizeAttrs>();
      return raw(TfLiteResizeParams{a.align_corners, a.half_pixel_centers});
    }
    case ir::OpKind::space_to_depth:
    case ir::OpKind::depth_to_space: return raw(TfLiteBlockParams{op.as<ir::BlockAttrs>().block_size});
    default: return encode_other_params(op);
  }
}

}  // namespace skillet::delegate
