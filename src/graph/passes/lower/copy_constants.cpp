// Constant operands of elementwise ops and of CONCATENATION. No chip reads constants as images, so the CPU writes a
// copy for each run, and the op does not split the NPU part. Examples: positions of tokens, the grid of a YOLO head,
// coordinates of pixels. An operand smaller than the other one is expanded: a row for all rows, a channel for all
// channels.
#include <algorithm>
#include <optional>
#include <utility>

#include "graph/passes/lower/pointwise.h"

namespace skillet::passes {
namespace {

// The bytes of `one` (one byte per element) repeated to `shape`; nothing if the shapes do not fit.
std::optional<Bytes> written_out(const ir::Tensor& one, const ir::Shape& shape) {
  const int32_t rank = shape.rank(), own = one.shape.rank();
  if (own > rank) return std::nullopt;
  std::vector<int64_t> steps(static_cast<size_t>(rank), 0);
  int64_t step = 1;
  for (int32_t axis = rank - 1; axis >= rank - own; --axis) {
    const int32_t size = one.shape[axis - (rank - own)];
    if (size != 1 && size != shape[axis]) return std::nullopt;
    if (size != 1) steps[static_cast<size_t>(axis)] = step;
    step *= size;
  }
  Bytes out(static_cast<size_t>(shape.elems()));
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), from = 0;
    for (int32_t axis = rank - 1; axis >= 0; --axis) {
      from += rest % shape[axis] * steps[static_cast<size_t>(axis)];
      rest /= shape[axis];
    }
    out[i] = one.data[static_cast<size_t>(from)];
  }
  return out;
}

ir::TensorId copied(Rewriter& rewriter, ir::TensorId constant, const ir::Shape& shape) {
  ir::Tensor copy = rewriter.tensor(constant);
  copy.name += "/copy";
  copy.shape = shape;
  copy.data = {};
  copy.owner = {};
  return rewriter.add(std::move(copy));
}

std::string text_of(const ir::Op& op) {
  return fmt::format("the CPU writes the constant of {} as a tensor", ir::op_name(op));
}

// Copies constants of a CONCATENATION, e.g. the coordinates of each pixel next to its channels.
void copy_joined(Rewriter& rewriter, ir::OpId id) {
  ir::Op op = rewriter.op(id);
  const auto is_constant = [&](ir::TensorId input) { return rewriter.tensor(input).is_constant(); };
  const auto computed = std::ranges::find_if_not(op.inputs, is_constant);
  if (computed == op.inputs.end() || std::ranges::none_of(op.inputs, is_constant) ||
      !is_computed_byte(rewriter.tensor(op.outputs[0])) || rewriter.level(id) != Level::refused ||
      !rewriter.has_neighbour(id, *computed, op.outputs[0]))
    return;
  std::vector<ir::Op> by;
  for (ir::TensorId& input : op.inputs) {
    if (!is_constant(input)) continue;
    const ir::TensorId copy = copied(rewriter, input, rewriter.tensor(input).shape);
    by.push_back(rewriter.reshape(input, copy));
    input = copy;
  }
  const size_t copies = by.size();
  std::string text = text_of(op);
  by.push_back(std::move(op));
  rewriter.replace({.ops = {id}, .kept = id, .by = std::move(by), .text = std::move(text), .on_cpu = copies});
}

}  // namespace

void copy_constants(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  if (old.kind == ir::OpKind::concatenation) return copy_joined(rewriter, id);
  if (!is_of_two_operands(old)) return;
  const size_t at = rewriter.tensor(old.inputs[0]).is_constant() ? 0 : 1;
  const ir::TensorId computed = old.inputs[1 - at];
  const ir::Shape shape = rewriter.tensor(computed).shape;
  const ir::Tensor constant = rewriter.tensor(old.inputs[at]);
  if (!constant.is_constant() || !ir::is_8bit(constant.dtype) || !is_computed_byte(rewriter.tensor(computed)) ||
      shape != rewriter.tensor(old.outputs[0]).shape || rewriter.level(id) != Level::refused ||
      !rewriter.has_neighbour(id, computed, old.outputs[0]))
    return;
  ir::TensorId written = old.inputs[at];
  if (constant.shape != shape) {
    auto bytes = shape.elems() > kDenseBytesMax ? std::nullopt : written_out(constant, shape);
    if (!bytes) return;
    written = rewriter.add_constant(constant.name + "/whole", constant.dtype, shape, std::move(*bytes), constant.quant);
  }
  ir::Op op = old;
  op.inputs[at] = copied(rewriter, written, shape);
  std::vector<ir::Op> by = {rewriter.reshape(written, op.inputs[at])};
  by.push_back(std::move(op));
  rewriter.replace({.ops = {id}, .kept = id, .by = std::move(by), .text = text_of(old), .on_cpu = 1});
}

}  // namespace skillet::passes
