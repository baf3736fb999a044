// Encodes builtin_data of an op as a host stores it: the reverse of node_attrs.h.
// Called by fake_host.cpp.
// Must not know: tensors.
#pragma once

#include <algorithm>

#include "base/bytes.h"
#include "frontend/tflite_delegate/builtin_params.h"
#include "graph/ir/op.h"

namespace skillet::delegate {

template <typename P>
Bytes raw(const P& params) {
  Bytes out(sizeof params);
  std::memcpy(out.data(), &params, sizeof params);
  return out;
}

inline auto pad(ir::Padding p) { return p == ir::Padding::same ? kTfLitePaddingSame : kTfLitePaddingValid; }
inline TfLiteEnum act(ir::Activation a) { return static_cast<TfLiteEnum>(a); }

// Encodes the parameters for each type of attributes; empty for ops without parameters.
class ParamsEncoder {
 public:
  explicit ParamsEncoder(ir::OpKind kind) : kind_(kind) {}

  Bytes operator()(const ir::NoAttrs&) const { return {}; }
  Bytes operator()(const ir::OpaqueAttrs&) const { return {}; }
  Bytes operator()(const ir::ConvAttrs& a) const {
    if (kind_ == ir::OpKind::transpose_conv)
      return raw(TfLiteTransposeConvParams{pad(a.padding), a.stride_w, a.stride_h, act(a.activation)});
    if (kind_ == ir::OpKind::depthwise_conv_2d)
      return raw(TfLiteDepthwiseConvParams{pad(a.padding), a.stride_w, a.stride_h, a.depth_multiplier,
                                           act(a.activation), a.dilation_w, a.dilation_h});
    return raw(TfLiteConvParams{pad(a.padding), a.stride_w, a.stride_h, act(a.activation), a.dilation_w, a.dilation_h});
  }
  Bytes operator()(const ir::PoolAttrs& a) const {
    return raw(TfLitePoolParams{pad(a.padding), a.stride_w, a.stride_h, a.filter_w, a.filter_h, act(a.activation)});
  }
  Bytes operator()(const ir::FullyConnectedAttrs& a) const {
    return raw(TfLiteFullyConnectedParams{act(a.activation), 0, a.keep_num_dims, a.asymmetric_inputs});
  }
  Bytes operator()(const ir::ActivationAttrs& a) const { return raw(TfLiteArithmeticParams{act(a.activation)}); }
  Bytes operator()(const ir::ConcatAttrs& a) const { return raw(TfLiteConcatenationParams{a.axis, act(a.activation)}); }
  Bytes operator()(const ir::SplitAttrs& a) const { return raw(TfLiteSplitParams{a.count}); }
  Bytes operator()(const ir::ReshapeAttrs& a) const {
    TfLiteReshapeParams params{{{}, static_cast<int>(a.shape.size())}};
    std::ranges::copy(a.shape, params.new_shape.values);
    return raw(params);
  }
  Bytes operator()(const ir::SqueezeAttrs& a) const {
    TfLiteSqueezeParams params{{{}, static_cast<int>(a.axes.size())}};
    std::ranges::copy(a.axes, params.squeeze_dims.values);
    return raw(params);
  }
  Bytes operator()(const ir::StridedSliceAttrs& a) const {
    return raw(TfLiteStridedSliceParams{a.begin_mask, a.end_mask, a.ellipsis_mask, a.new_axis_mask, a.shrink_axis_mask,
                                        a.offset});
  }
  Bytes operator()(const ir::PackAttrs& a) const { return raw(TfLitePackParams{a.count, a.axis}); }
  Bytes operator()(const ir::UnpackAttrs& a) const { return raw(TfLiteUnpackParams{a.count, a.axis}); }
  Bytes operator()(const ir::LeakyReluAttrs& a) const { return raw(TfLiteLeakyReluParams{a.alpha}); }
  Bytes operator()(const ir::SoftmaxAttrs& a) const { return raw(TfLiteSoftmaxParams{a.beta}); }
  Bytes operator()(const ir::ReduceAttrs& a) const { return raw(TfLiteReducerParams{a.keep_dims}); }
  Bytes operator()(const ir::ResizeAttrs& a) const {
    return raw(TfLiteResizeParams{a.align_corners, a.half_pixel_centers});
  }
  Bytes operator()(const ir::MirrorPadAttrs& a) const { return raw(TfLiteMirrorPadParams{a.symmetric ? 2 : 1}); }
  Bytes operator()(const ir::GatherAttrs& a) const { return raw(TfLiteGatherParams{a.axis, a.batch_dims}); }
  Bytes operator()(const ir::GeluAttrs& a) const { return raw(TfLiteGeluParams{a.approximate}); }
  Bytes operator()(const ir::OneHotAttrs& a) const { return raw(TfLiteOneHotParams{a.axis}); }
  Bytes operator()(const ir::CumsumAttrs& a) const { return raw(TfLiteCumsumParams{a.exclusive, a.reverse}); }
  Bytes operator()(const ir::BatchMatmulAttrs& a) const {
    return raw(TfLiteBatchMatMulParams{a.transpose_a, a.transpose_b, a.asymmetric_inputs});
  }
  Bytes operator()(const ir::SvdfAttrs& a) const {
    return raw(TfLiteSVDFParams{a.rank, act(a.activation), a.asymmetric_inputs});
  }
  Bytes operator()(const ir::LocalResponseNormalizationAttrs& a) const {
    return raw(TfLiteLocalResponseNormParams{a.radius, a.bias, a.alpha, a.beta});
  }
  Bytes operator()(const ir::ReverseSequenceAttrs& a) const {
    return raw(TfLiteReverseSequenceParams{a.axis, a.batch_axis});
  }
  Bytes operator()(const ir::LstmAttrs& a) const {
    if (kind_ == ir::OpKind::lstm)
      return raw(TfLiteLstmParams{act(a.activation), a.cell_clip, a.projection_clip, 0, a.asymmetric_inputs});
    return raw(
        TfLiteSequenceLstmParams{act(a.activation), a.cell_clip, a.projection_clip, a.time_major, a.asymmetric_inputs});
  }
  Bytes operator()(const ir::DetectionAttrs&) const { return {}; }  // custom: hosts store its options as bytes
  Bytes operator()(const ir::BlockAttrs& a) const { return raw(TfLiteBlockParams{a.block_size}); }

 private:
  ir::OpKind kind_;
};

inline Bytes encode_params(const ir::Op& op) { return std::visit(ParamsEncoder(op.kind), op.attrs); }

}  // namespace skillet::delegate
