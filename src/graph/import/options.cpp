#include "graph/import/options.h"

#include <algorithm>

#include "graph/import/custom_options.h"
#include "graph/import/no_attrs.h"

namespace skillet::tflite {
namespace {

using ir::Attrs;
using ir::OpKind;

// A table without any field: reading it gives the schema's defaults. First its vtable (4 bytes long, of a table of 4
// bytes), then the table, which is nothing but the distance back to the vtable.
alignas(8) constexpr uint8_t kEmptyTable[8] = {4, 0, 4, 0, 4, 0, 0, 0};

template <typename T>
Result<const T*> options(const schema::Operator& op) {
  constexpr auto kExpected = schema::BuiltinOptionsTraits<T>::enum_value;
  if (op.builtin_options_type() != kExpected && op.builtin_options_type() != schema::BuiltinOptions::NONE) {
    return error(ErrorCode::malformed, "options of type {}, expected {}", static_cast<int>(op.builtin_options_type()),
                 static_cast<int>(kExpected));
  }
  const T* table = op.builtin_options_type() == kExpected ? static_cast<const T*>(op.builtin_options()) : nullptr;
  return table != nullptr ? table : reinterpret_cast<const T*>(kEmptyTable + 4);
}

Result<ir::Padding> padding_of(int8_t code) {
  if (code == 0) return ir::Padding::same;
  if (code == 1) return ir::Padding::valid;
  return error(ErrorCode::malformed, "unknown padding {}", static_cast<int>(code));
}

Result<ir::Activation> activation_of(int8_t code) {
  if (code >= 0 && code <= static_cast<int8_t>(ir::Activation::sign_bit)) return static_cast<ir::Activation>(code);
  return error(ErrorCode::malformed, "unknown activation function {}", static_cast<int>(code));
}

// A list of the options; more entries than a shape can have dimensions are not worth copying.
Result<std::vector<int32_t>> short_list(const flatbuffers::Vector<int32_t>* list) {
  constexpr flatbuffers::uoffset_t kMaxEntries = 64;
  if (list == nullptr) return std::vector<int32_t>{};
  if (list->size() > kMaxEntries) return error(ErrorCode::malformed, "a list of {} entries", list->size());
  return std::vector<int32_t>(list->begin(), list->end());
}

// What convolutions and pooling have in common.
template <typename A, typename T>
Result<A> window_attrs(const T& o) {
  A attrs;
  SK_TRY_ASSIGN(attrs.padding, padding_of(o.padding()));
  SK_TRY_ASSIGN(attrs.activation, activation_of(o.fused_activation_function()));
  attrs.stride_h = o.stride_h();
  attrs.stride_w = o.stride_w();
  return attrs;
}

template <typename T>
Result<ir::ConvAttrs> conv_attrs(const T& o) {
  SK_TRY_ASSIGN(auto attrs, window_attrs<ir::ConvAttrs>(o));
  attrs.dilation_h = o.dilation_h_factor();
  attrs.dilation_w = o.dilation_w_factor();
  return attrs;
}

Result<Attrs> read(const schema::Conv2DOptions& o) {
  SK_TRY_ASSIGN(const auto attrs, conv_attrs(o));
  return Attrs{attrs};
}
Result<Attrs> read(const schema::DepthwiseConv2DOptions& o) {
  SK_TRY_ASSIGN(auto attrs, conv_attrs(o));
  attrs.depth_multiplier = o.depth_multiplier();
  return Attrs{attrs};
}
Result<Attrs> read(const schema::TransposeConvOptions& o) {
  SK_TRY_ASSIGN(const auto attrs, window_attrs<ir::ConvAttrs>(o));
  return Attrs{attrs};
}
Result<Attrs> read(const schema::Pool2DOptions& o) {
  SK_TRY_ASSIGN(auto attrs, window_attrs<ir::PoolAttrs>(o));
  attrs.filter_h = o.filter_height();
  attrs.filter_w = o.filter_width();
  return Attrs{attrs};
}
Result<Attrs> read(const schema::FullyConnectedOptions& o) {
  SK_TRY_ASSIGN(const auto activation, activation_of(o.fused_activation_function()));
  return Attrs{ir::FullyConnectedAttrs{.activation = activation,
                                       .keep_num_dims = o.keep_num_dims(),
                                       .asymmetric_inputs = o.asymmetric_quantize_inputs()}};
}
template <typename T>
requires(std::is_same_v<T, schema::AddOptions> || std::is_same_v<T, schema::SubOptions> ||
         std::is_same_v<T, schema::MulOptions> || std::is_same_v<T, schema::DivOptions> ||
         std::is_same_v<T, schema::L2NormOptions>) Result<Attrs> read(const T& o) {
  SK_TRY_ASSIGN(const auto activation, activation_of(o.fused_activation_function()));
  ir::ActivationAttrs attrs{.activation = activation};
  if constexpr (requires { o.pot_scale_int16(); }) attrs.pot_scale_int16 = o.pot_scale_int16();
  return Attrs{attrs};
}
Result<Attrs> read(const schema::ConcatenationOptions& o) {
  SK_TRY_ASSIGN(const auto activation, activation_of(o.fused_activation_function()));
  return Attrs{ir::ConcatAttrs{.axis = o.axis(), .activation = activation}};
}
Result<Attrs> read(const schema::ReshapeOptions& o) {
  SK_TRY_ASSIGN(auto shape, short_list(o.new_shape()));
  return Attrs{ir::ReshapeAttrs{std::move(shape)}};
}
Result<Attrs> read(const schema::SqueezeOptions& o) {
  SK_TRY_ASSIGN(auto axes, short_list(o.squeeze_dims()));
  return Attrs{ir::SqueezeAttrs{std::move(axes)}};
}
Result<Attrs> read(const schema::StridedSliceOptions& o) {
  return Attrs{ir::StridedSliceAttrs{.begin_mask = o.begin_mask(),
                                     .end_mask = o.end_mask(),
                                     .ellipsis_mask = o.ellipsis_mask(),
                                     .new_axis_mask = o.new_axis_mask(),
                                     .shrink_axis_mask = o.shrink_axis_mask(),
                                     .offset = o.offset()}};
}
Result<Attrs> read(const schema::SplitOptions& o) { return Attrs{ir::SplitAttrs{o.num_splits()}}; }
Result<Attrs> read(const schema::SplitVOptions& o) { return Attrs{ir::SplitAttrs{o.num_splits()}}; }
Result<Attrs> read(const schema::PackOptions& o) {
  return Attrs{ir::PackAttrs{.axis = o.axis(), .count = o.values_count()}};
}
Result<Attrs> read(const schema::UnpackOptions& o) { return Attrs{ir::PackAttrs{.axis = o.axis(), .count = o.num()}}; }
Result<Attrs> read(const schema::LeakyReluOptions& o) { return Attrs{ir::LeakyReluAttrs{o.alpha()}}; }
Result<Attrs> read(const schema::SoftmaxOptions& o) { return Attrs{ir::SoftmaxAttrs{o.beta()}}; }
Result<Attrs> read(const schema::ReducerOptions& o) { return Attrs{ir::ReduceAttrs{o.keep_dims()}}; }
Result<Attrs> read(const schema::ResizeBilinearOptions& o) {
  return Attrs{ir::ResizeAttrs{.align_corners = o.align_corners(), .half_pixel_centers = o.half_pixel_centers()}};
}
Result<Attrs> read(const schema::ResizeNearestNeighborOptions& o) {
  return Attrs{ir::ResizeAttrs{.align_corners = o.align_corners(), .half_pixel_centers = o.half_pixel_centers()}};
}
Result<Attrs> read(const schema::SpaceToDepthOptions& o) { return Attrs{ir::BlockAttrs{o.block_size()}}; }
Result<Attrs> read(const schema::DepthToSpaceOptions& o) { return Attrs{ir::BlockAttrs{o.block_size()}}; }
Result<Attrs> read(const schema::MirrorPadOptions& o) {
  if (o.mode() != 0 && o.mode() != 1) return error(ErrorCode::malformed, "unknown mode {}", int{o.mode()});
  return Attrs{ir::MirrorPadAttrs{o.mode() == 1}};
}
Result<Attrs> read(const schema::GatherOptions& o) {
  return Attrs{ir::GatherAttrs{.axis = o.axis(), .batch_dims = o.batch_dims()}};
}
Result<Attrs> read(const schema::GeluOptions& o) { return Attrs{ir::GeluAttrs{o.approximate()}}; }
Result<Attrs> read(const schema::OneHotOptions& o) { return Attrs{ir::OneHotAttrs{o.axis()}}; }
Result<Attrs> read(const schema::CumsumOptions& o) {
  return Attrs{ir::CumsumAttrs{.exclusive = o.exclusive(), .reverse = o.reverse()}};
}
Result<Attrs> read(const schema::LocalResponseNormalizationOptions& o) {
  return Attrs{ir::LocalResponseNormalizationAttrs{
      .radius = o.radius(), .bias = o.bias(), .alpha = o.alpha(), .beta = o.beta()}};
}
Result<Attrs> read(const schema::ReverseSequenceOptions& o) {
  return Attrs{ir::ReverseSequenceAttrs{.axis = o.seq_dim(), .batch_axis = o.batch_dim()}};
}
Result<Attrs> read(const schema::BatchMatMulOptions& o) {
  return Attrs{ir::BatchMatmulAttrs{
      .transpose_a = o.adj_x(), .transpose_b = o.adj_y(), .asymmetric_inputs = o.asymmetric_quantize_inputs()}};
}

// The quantization of the hidden state stands at the tensor that its intermediates list: import.cpp adds it.
template <typename T>
Result<ir::LstmAttrs> lstm_attrs(const T& o) {
  ir::LstmAttrs attrs{.cell_clip = o.cell_clip(),
                      .projection_clip = o.proj_clip(),
                      .asymmetric_inputs = o.asymmetric_quantize_inputs()};
  SK_TRY_ASSIGN(attrs.activation, activation_of(o.fused_activation_function()));
  return attrs;
}
Result<Attrs> read(const schema::LSTMOptions& o) {
  SK_TRY_ASSIGN(const auto attrs, lstm_attrs(o));
  return Attrs{attrs};
}
Result<Attrs> read(const schema::UnidirectionalSequenceLSTMOptions& o) {
  SK_TRY_ASSIGN(auto attrs, lstm_attrs(o));
  attrs.time_major = o.time_major();
  return Attrs{attrs};
}

template <typename T>
Result<Attrs> from(const schema::Operator& op) {
  SK_TRY_ASSIGN(const T* table, options<T>(op));
  return read(*table);
}

}  // namespace

Result<Attrs> read_attrs(OpKind kind, const schema::Operator& op) {
  switch (kind) {
    case OpKind::conv_2d: return from<schema::Conv2DOptions>(op);
    case OpKind::depthwise_conv_2d: return from<schema::DepthwiseConv2DOptions>(op);
    case OpKind::transpose_conv: return from<schema::TransposeConvOptions>(op);
    case OpKind::fully_connected: return from<schema::FullyConnectedOptions>(op);
    case OpKind::add: return from<schema::AddOptions>(op);
    case OpKind::sub: return from<schema::SubOptions>(op);
    case OpKind::mul: return from<schema::MulOptions>(op);
    case OpKind::div: return from<schema::DivOptions>(op);
    case OpKind::average_pool_2d:
    case OpKind::l2_pool_2d:
    case OpKind::max_pool_2d: return from<schema::Pool2DOptions>(op);
    case OpKind::concatenation: return from<schema::ConcatenationOptions>(op);
    case OpKind::split: return from<schema::SplitOptions>(op);
    case OpKind::split_v: return from<schema::SplitVOptions>(op);
    case OpKind::reshape: return from<schema::ReshapeOptions>(op);
    case OpKind::squeeze: return from<schema::SqueezeOptions>(op);
    case OpKind::strided_slice: return from<schema::StridedSliceOptions>(op);
    case OpKind::pack: return from<schema::PackOptions>(op);
    case OpKind::unpack: return from<schema::UnpackOptions>(op);
    case OpKind::leaky_relu: return from<schema::LeakyReluOptions>(op);
    case OpKind::softmax: return from<schema::SoftmaxOptions>(op);
    case OpKind::mean:
    case OpKind::reduce_max:
    case OpKind::reduce_min:
    case OpKind::reduce_prod:
    case OpKind::reduce_any:
    case OpKind::reduce_all:
    case OpKind::sum: return from<schema::ReducerOptions>(op);
    case OpKind::resize_bilinear: return from<schema::ResizeBilinearOptions>(op);
    case OpKind::resize_nearest_neighbor: return from<schema::ResizeNearestNeighborOptions>(op);
    case OpKind::space_to_depth: return from<schema::SpaceToDepthOptions>(op);
    case OpKind::depth_to_space: return from<schema::DepthToSpaceOptions>(op);
    case OpKind::mirror_pad: return from<schema::MirrorPadOptions>(op);
    case OpKind::gather: return from<schema::GatherOptions>(op);
    case OpKind::gelu: return from<schema::GeluOptions>(op);
    case OpKind::one_hot: return from<schema::OneHotOptions>(op);
    case OpKind::cumsum: return from<schema::CumsumOptions>(op);
    case OpKind::batch_matmul: return from<schema::BatchMatMulOptions>(op);
    case OpKind::local_response_normalization: return from<schema::LocalResponseNormalizationOptions>(op);
    case OpKind::reverse_sequence: return from<schema::ReverseSequenceOptions>(op);
    case OpKind::l2_normalization: return from<schema::L2NormOptions>(op);
    case OpKind::lstm: return from<schema::LSTMOptions>(op);
    case OpKind::unidirectional_sequence_lstm: return from<schema::UnidirectionalSequenceLSTMOptions>(op);
    case OpKind::detection_post_process: return read_detection_options(op.custom_options());
    default: return no_attrs(kind);
  }
}

bool must_stay_opaque(OpKind kind, const schema::Operator& op) {
  if (kind == OpKind::lstm) {
    const auto* options = op.builtin_options_as_LSTMOptions();
    return options != nullptr && options->kernel_type() != 0;  // another one has other operands
  }
  if (kind == OpKind::unidirectional_sequence_lstm) {
    const auto* options = op.builtin_options_as_UnidirectionalSequenceLSTMOptions();
    return options != nullptr && options->diagonal_recurrent_tensors();  // weights of one row
  }
  if (kind != OpKind::fully_connected) return false;
  const auto* options = op.builtin_options_as_FullyConnectedOptions();
  // Weights shuffled for one CPU's vector unit.
  return options != nullptr && options->weights_format() != 0;
}

}  // namespace skillet::tflite
