// builtin_data of an op, as a host would hold it: the reverse of node_attrs.h.
// Called by fake_host.cpp.
// Must not know: tensors.
#pragma once

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

// Empty for ops without parameters.
inline Bytes encode_params(const ir::Op& op) {
  const auto pad = [](ir::Padding p) { return p == ir::Padding::same ? kTfLitePaddingSame : kTfLitePaddingValid; };
  const auto act = [](ir::Activation a) { return static_cast<TfLiteEnum>(a); };
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
    case ir::OpKind::average_pool_2d:
    case ir::OpKind::max_pool_2d: {
      const auto& a = op.as<ir::PoolAttrs>();
      return raw(TfLitePoolParams{pad(a.padding), a.stride_w, a.stride_h, a.filter_w, a.filter_h, act(a.activation)});
    }
    case ir::OpKind::fully_connected: {
      const auto& a = op.as<ir::FullyConnectedAttrs>();
      return raw(TfLiteFullyConnectedParams{act(a.activation), 0, a.keep_num_dims});
    }
    case ir::OpKind::add: return raw(TfLiteArithmeticParams{act(op.as<ir::ActivationAttrs>().activation)});
    case ir::OpKind::concatenation: {
      const auto& a = op.as<ir::ConcatAttrs>();
      return raw(TfLiteConcatenationParams{a.axis, act(a.activation)});
    }
    case ir::OpKind::reshape: {
      const auto& shape = op.as<ir::ReshapeAttrs>().shape;
      TfLiteReshapeParams params{{}, static_cast<int>(shape.size())};
      for (size_t i = 0; i < shape.size() && i < 8; ++i) params.shape[i] = shape[i];
      return raw(params);
    }
    case ir::OpKind::softmax: return raw(TfLiteSoftmaxParams{op.as<ir::SoftmaxAttrs>().beta});
    default: return {};
  }
}

}  // namespace skillet::delegate
