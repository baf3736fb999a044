// Recurrent ops and custom ones.
#include <algorithm>
#include <cmath>

#include "graph/ir/lstm_operands.h"
#include "graph/ir/rules.h"

namespace skillet::ir::rules {
namespace {

using namespace lstm_operand;

struct LstmSizes {
  int32_t batch = 0, inputs = 0, cells = 0, outputs = 0;
};

Result<void> need_shape(const OpView& v, size_t input, const Shape& expected) {
  if (!v.has(input)) return error(ErrorCode::malformed, "input {} is missing", input);
  if (v.shape(input) == expected) return {};
  return error(ErrorCode::malformed, "input {} should have shape {}", describe_tensor(v.graph, v.op.inputs[input]),
               expected.to_string());
}

Result<void> need_shape_or_none(const OpView& v, size_t input, const Shape& expected) {
  return v.has(input) ? need_shape(v, input, expected) : Result<void>{};
}

Result<void> check_gates(const OpView& v, const LstmSizes& sizes) {
  const bool coupled = !v.has(kInputWeights);
  if (coupled != !v.has(kRecurrentWeights)) return error(ErrorCode::malformed, "half of an input gate");
  for (size_t gate = coupled ? 1 : 0; gate < kGates; ++gate) {
    SK_TRY(need_shape(v, kInputWeights + gate, {sizes.cells, sizes.inputs}));
    SK_TRY(need_shape(v, kRecurrentWeights + gate, {sizes.cells, sizes.outputs}));
    SK_TRY(need_shape(v, kBias + gate, {sizes.cells}));
    SK_TRY(need_shape_or_none(v, kLayerNorm + gate, {sizes.cells}));
  }
  for (size_t i = 0; i < kPeepholes; ++i) SK_TRY(need_shape_or_none(v, kPeephole + i, {sizes.cells}));
  if (coupled && v.has(kPeephole)) return error(ErrorCode::malformed, "a peephole of a missing input gate");
  if (v.has(kPeephole + 1) != v.has(kPeephole + 2) || (!coupled && v.has(kPeephole) != v.has(kPeephole + 2)))
    return error(ErrorCode::malformed, "some of the peepholes are missing");
  return {};
}

// States are written, so they are neither constants nor buffers of the caller.
Result<void> check_state(const OpView& v, size_t input, int32_t batch, int32_t size) {
  if (!v.has(input)) return error(ErrorCode::malformed, "input {} is missing", input);
  if (v.shape(input).elems() != int64_t{batch} * size) return need_shape(v, input, {batch, size});
  const TensorId id = v.op.inputs[input];
  const bool given = std::find(v.graph.inputs.begin(), v.graph.inputs.end(), id) != v.graph.inputs.end();
  const bool twice = std::count(v.op.inputs.begin(), v.op.inputs.end(), id) != 1;
  if (v.in(input).is_variable && !given && !twice) return {};
  return error(ErrorCode::malformed, "state {} is not a separate variable", describe_tensor(v.graph, id));
}

Result<LstmSizes> lstm_sizes(const OpView& v) {
  const bool sequence = v.op.kind == OpKind::unidirectional_sequence_lstm;
  for (size_t i : {kInput, kInputWeights + kOutputGate, kRecurrentWeights + kOutputGate}) {
    if (!v.has(i)) return error(ErrorCode::malformed, "input {} is missing", i);
    SK_TRY(need_rank(v, i, i == kInput && sequence ? 3 : 2));
  }
  const Shape& input = v.shape(kInput);
  const int batch_axis = sequence && v.op.as<LstmAttrs>().time_major ? 1 : 0;
  return LstmSizes{.batch = input[batch_axis],
                   .inputs = input.back(0),
                   .cells = v.shape(kInputWeights + kOutputGate)[0],
                   .outputs = v.shape(kRecurrentWeights + kOutputGate)[1]};
}

}  // namespace

Result<Shapes> lstm(const OpView& v) {
  const auto& attrs = v.op.as<LstmAttrs>();
  for (float value : {attrs.cell_clip, attrs.projection_clip, attrs.hidden_scale}) {
    if (!std::isfinite(value) || value < 0) return error(ErrorCode::malformed, "{} is not a clip or scale", value);
  }
  SK_TRY_ASSIGN(const LstmSizes sizes, lstm_sizes(v));
  SK_TRY(check_gates(v, sizes));
  SK_TRY(check_state(v, kOutputState, sizes.batch, sizes.outputs));
  SK_TRY(check_state(v, kCellState, sizes.batch, sizes.cells));
  SK_TRY(need_shape_or_none(v, kProjectionWeights, {sizes.outputs, sizes.cells}));
  SK_TRY(need_shape_or_none(v, kProjectionBias, {sizes.outputs}));
  if (!v.has(kProjectionWeights) && sizes.outputs != sizes.cells) {
    return error(ErrorCode::malformed, "{} outputs of {} cells without a projection", sizes.outputs, sizes.cells);
  }
  Shape output = v.shape(kInput);
  output.dims.back() = sizes.outputs;
  return Shapes{std::move(output)};
}

Result<Shapes> svdf(const OpView& v) {
  constexpr size_t kFeatures = 1, kTime = 2, kSvdfBias = 3, kState = 4;
  for (size_t i : {kInput, kFeatures, kTime}) {
    if (!v.has(i)) return error(ErrorCode::malformed, "input {} is missing", i);
    SK_TRY(need_rank(v, i, 2));
  }
  const int32_t batch = v.shape(kInput)[0], filters = v.shape(kFeatures)[0], rank = v.op.as<SvdfAttrs>().rank;
  if (rank < 1 || filters % rank != 0)
    return error(ErrorCode::malformed, "{} filters of rank {} do not make whole units", filters, rank);
  SK_TRY(need_shape(v, kFeatures, {filters, v.shape(kInput)[1]}));
  SK_TRY(need_shape(v, kTime, {filters, v.shape(kTime)[1]}));
  SK_TRY(need_shape_or_none(v, kSvdfBias, {filters / rank}));
  SK_TRY_ASSIGN(const int32_t states, dimension(int64_t{filters} * v.shape(kTime)[1], "the size of the state"));
  SK_TRY(check_state(v, kState, batch, states));
  return Shapes{Shape{batch, filters / rank}};
}

Result<Shapes> read_variable(const OpView& v) {
  if (v.in(0).is_variable) return Shapes{v.shape(0)};
  return error(ErrorCode::malformed, "{} is not a variable", describe_tensor(v.graph, v.op.inputs[0]));
}

Result<Shapes> assign_variable(const OpView& v) {
  if (v.out(0).is_variable) return Shapes{v.shape(0)};
  return error(ErrorCode::malformed, "{} is not a variable", describe_tensor(v.graph, v.op.outputs[0]));
}

Result<Shapes> detection_post_process(const OpView& v) {
  const auto& attrs = v.op.as<DetectionAttrs>();
  constexpr int32_t kMaxDetections = 1 << 16;
  for (int32_t count : {attrs.max_detections, attrs.max_classes_per_detection, attrs.num_classes}) {
    if (count < 1 || count > kMaxDetections) return error(ErrorCode::malformed, "count {} is out of range", count);
  }
  if (attrs.regular_nms && attrs.detections_per_class < 1) {
    return error(ErrorCode::malformed, "{} detections per class", attrs.detections_per_class);
  }
  for (float value : {attrs.score_threshold, attrs.iou_threshold}) {
    if (!std::isfinite(value)) return error(ErrorCode::malformed, "threshold {} is not finite", value);
  }
  for (float scale : {attrs.y_scale, attrs.x_scale, attrs.h_scale, attrs.w_scale}) {
    if (!std::isfinite(scale) || scale <= 0) return error(ErrorCode::malformed, "scale {} is not positive", scale);
  }
  SK_TRY(need_rank(v, 0, 3));
  SK_TRY(need_rank(v, 1, 3));
  SK_TRY(need_rank(v, 2, 2));
  const Shape &boxes = v.shape(0), &scores = v.shape(1), &anchors = v.shape(2);
  const bool labels = scores[2] == attrs.num_classes || scores[2] == attrs.num_classes + 1;
  if (boxes[0] != 1 || scores[0] != 1 || boxes[2] < 4 || anchors[1] != 4 || !labels || scores[1] != boxes[1] ||
      anchors[0] != boxes[1]) {
    return error(ErrorCode::malformed, "boxes {}, scores {} and anchors {} do not fit {} classes", boxes.to_string(),
                 scores.to_string(), anchors.to_string(), attrs.num_classes);
  }
  for (size_t i = 0; i < 4; ++i) {
    if (v.out(i).dtype != DType::float32) return error(ErrorCode::malformed, "output {} is not float32", i);
  }
  const int64_t found = int64_t{attrs.max_detections} * attrs.max_classes_per_detection;
  SK_TRY_ASSIGN(const int32_t count, dimension(found, "the number of detections"));
  return Shapes{Shape{1, count, 4}, Shape{1, count}, Shape{1, count}, Shape{1}};
}

}  // namespace skillet::ir::rules
