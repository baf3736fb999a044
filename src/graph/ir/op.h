// Op: one operation of a graph: its kind, its attributes, its operands.
// Called by importers (which fill it), passes, drivers and graph/ref/ (which read it).
// Must not know: file formats, chips.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace skillet::ir {

using TensorId = int32_t;           // index into Graph::tensors
using OpId = int32_t;               // index into Graph::ops
constexpr TensorId kNoTensor = -1;  // an optional operand that is left out
constexpr int32_t kCustomOp = -1;   // instead of a TFLite builtin code: the operation has a name only
constexpr int32_t kNoFileOp = -2;   // passes make it; no model file has it

enum class OpKind : uint8_t {
#define OP(kind, name, code, attrs, doc) kind,
#include "graph/ir/op.def"
#undef OP
  opaque,  // known to the file format by name only, or custom
};

enum class Activation : uint8_t { none, relu, relu_n1_to_1, relu6, tanh, sign_bit };
enum class Padding : uint8_t { same, valid };

struct NoAttrs {
  bool operator==(const NoAttrs&) const = default;
};
// Attributes we do not read; kept as text only to print them.
struct OpaqueAttrs {
  bool operator==(const OpaqueAttrs&) const = default;
};
// Rows of padding above and below; negative: rows of the image that no window looks at.
struct RowPads {
  int32_t top = 0, bottom = 0;
  bool operator==(const RowPads&) const = default;
};
struct ConvAttrs {
  Padding padding = Padding::same;
  std::optional<RowPads> rows;  // instead of what `padding` says of rows; model files have none. Not for TRANSPOSE_CONV
  int32_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int32_t depth_multiplier = 1;  // depthwise only; output channels / input channels
  Activation activation = Activation::none;
  // CONV_2D with one weight scale: input scale * weight scale is rounded to float, as TFLite does in FULLY_CONNECTED
  // and not in CONV_2D. Model files have none.
  bool float_product = false;
  bool operator==(const ConvAttrs&) const = default;
};
struct PoolAttrs {
  Padding padding = Padding::same;
  std::optional<RowPads> rows;
  int32_t stride_h = 1, stride_w = 1, filter_h = 1, filter_w = 1;
  Activation activation = Activation::none;
  bool operator==(const PoolAttrs&) const = default;
};
struct FullyConnectedAttrs {
  Activation activation = Activation::none;
  bool keep_num_dims = false;
  bool asymmetric_inputs = false;  // float32 inputs of int8 weights are quantized with a zero point
  bool operator==(const FullyConnectedAttrs&) const = default;
};
struct ActivationAttrs {
  Activation activation = Activation::none;
  bool pot_scale_int16 = true;  // ADD and SUB of int16: scales that are powers of two are shifted by
  bool operator==(const ActivationAttrs&) const = default;
};
struct ConcatAttrs {
  int32_t axis = 0;  // may be negative
  Activation activation = Activation::none;
  bool operator==(const ConcatAttrs&) const = default;
};
struct SplitAttrs {
  int32_t count = 0;  // number of outputs
  bool operator==(const SplitAttrs&) const = default;
};
struct ReshapeAttrs {
  std::vector<int32_t> shape;  // from the options; the output tensor's shape is what counts
  bool operator==(const ReshapeAttrs&) const = default;
};
struct SqueezeAttrs {
  std::vector<int32_t> axes;
  bool operator==(const SqueezeAttrs&) const = default;
};
struct StridedSliceAttrs {
  int32_t begin_mask = 0, end_mask = 0, ellipsis_mask = 0, new_axis_mask = 0, shrink_axis_mask = 0;
  bool offset = false;  // `end` is relative to `begin`
  bool operator==(const StridedSliceAttrs&) const = default;
};
struct PackAttrs {
  int32_t axis = 0;
  int32_t count = 0;
  bool operator==(const PackAttrs&) const = default;
};
struct LeakyReluAttrs {
  float alpha = 0;
  bool operator==(const LeakyReluAttrs&) const = default;
};
struct SoftmaxAttrs {
  float beta = 1;
  bool operator==(const SoftmaxAttrs&) const = default;
};
struct ReduceAttrs {
  bool keep_dims = false;
  bool operator==(const ReduceAttrs&) const = default;
};
struct ResizeAttrs {
  bool align_corners = false;
  bool half_pixel_centers = false;
  bool operator==(const ResizeAttrs&) const = default;
};
struct MirrorPadAttrs {
  bool symmetric = false;  // the border itself is repeated too
  bool operator==(const MirrorPadAttrs&) const = default;
};
struct GatherAttrs {
  int32_t axis = 0;  // may be negative
  int32_t batch_dims = 0;
  bool operator==(const GatherAttrs&) const = default;
};
struct GeluAttrs {
  bool approximate = false;
  bool operator==(const GeluAttrs&) const = default;
};
struct OneHotAttrs {
  int32_t axis = 0;  // of the output; may be negative
  bool operator==(const OneHotAttrs&) const = default;
};
struct CumsumAttrs {
  bool exclusive = false, reverse = false;
  bool operator==(const CumsumAttrs&) const = default;
};
struct BatchMatmulAttrs {
  bool transpose_a = false, transpose_b = false;
  bool asymmetric_inputs = false;  // as of FullyConnectedAttrs
  bool operator==(const BatchMatmulAttrs&) const = default;
};
struct LstmAttrs {
  Activation activation = Activation::none;
  float cell_clip = 0, projection_clip = 0;  // 0: none
  bool time_major = false;
  bool asymmetric_inputs = false;  // as of FullyConnectedAttrs
  // Quantization of what the projection, or without one the output, is made of; 0: not given.
  float hidden_scale = 0;
  int32_t hidden_zero_point = 0;
  bool operator==(const LstmAttrs&) const = default;
};
struct DetectionAttrs {
  int32_t max_detections = 0, max_classes_per_detection = 0, detections_per_class = 0, num_classes = 0;
  bool regular_nms = false;  // else the fast one: over the best class of each box
  float score_threshold = 0, iou_threshold = 0;
  float y_scale = 0, x_scale = 0, h_scale = 0, w_scale = 0;
  bool operator==(const DetectionAttrs&) const = default;
};
struct LocalResponseNormalizationAttrs {
  int32_t radius = 0;
  float bias = 0, alpha = 0, beta = 0;
  bool operator==(const LocalResponseNormalizationAttrs&) const = default;
};
struct ReverseSequenceAttrs {
  int32_t axis = 0, batch_axis = 0;  // not negative
  bool operator==(const ReverseSequenceAttrs&) const = default;
};
struct BlockAttrs {
  int32_t block_size = 1;
  bool operator==(const BlockAttrs&) const = default;
};

using AttrsOfAnyKind =
    std::variant<NoAttrs, OpaqueAttrs, ConvAttrs, PoolAttrs, FullyConnectedAttrs, ActivationAttrs, ConcatAttrs,
                 SplitAttrs, ReshapeAttrs, SqueezeAttrs, StridedSliceAttrs, PackAttrs, LeakyReluAttrs, SoftmaxAttrs,
                 ReduceAttrs, ResizeAttrs, BlockAttrs, MirrorPadAttrs, GatherAttrs, GeluAttrs, OneHotAttrs, CumsumAttrs,
                 BatchMatmulAttrs, LstmAttrs, DetectionAttrs, LocalResponseNormalizationAttrs, ReverseSequenceAttrs>;

template <typename T, typename... Kinds>
constexpr bool is_one_of(const std::variant<Kinds...>*) {
  return (std::is_same_v<T, Kinds> || ...);
}
template <typename T>
concept AttrsOfOneKind = is_one_of<T>(static_cast<const AttrsOfAnyKind*>(nullptr));

// The variant, made, copied and destroyed in op.cpp: nearly every file sees an Op, and none shall compile that again.
class Attrs : public AttrsOfAnyKind {
 public:
  Attrs();
  template <AttrsOfOneKind T>
  Attrs(T attrs);  // NOLINT: implicit, as a variant's
  Attrs(const Attrs&);
  Attrs(Attrs&&) noexcept;
  Attrs& operator=(const Attrs&);
  Attrs& operator=(Attrs&&) noexcept;
  ~Attrs();
};

struct Op {
  OpKind kind = OpKind::opaque;
  std::string opaque_name;  // kind == opaque: the file's name of the operation, e.g. "FlexErf"
  Attrs attrs;
  std::vector<TensorId> inputs;  // kNoTensor where an optional operand is left out
  std::vector<TensorId> outputs;
  int32_t source_index = -1;  // position in the model file, for messages and reports

  // The attributes of this kind; only valid for the type that op.def names.
  template <typename T>
  const T& as() const {
    return std::get<T>(attrs);
  }
  TensorId input(size_t i) const { return i < inputs.size() ? inputs[i] : kNoTensor; }
};

// "CONV_2D"; the opaque name for opaque kinds is in the op.
std::string_view op_kind_name(OpKind kind);
std::string_view op_name(const Op& op);
std::optional<OpKind> op_kind_from_name(std::string_view name);
// The kind of a custom operation; nothing where op.def has no row.
std::optional<OpKind> op_kind_from_custom_name(std::string_view name);
// The kind of a TFLite builtin code; nothing where op.def has no row.
std::optional<OpKind> op_kind_from_tflite_code(int32_t code);
// Default attributes of the type that op.def names for `kind`.
Attrs default_attrs(OpKind kind);

std::string_view activation_name(Activation activation);

}  // namespace skillet::ir
