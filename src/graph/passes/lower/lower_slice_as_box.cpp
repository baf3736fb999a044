// STRIDED_SLICE and GATHER that remove dimensions (the last step of a sequence) become SLICE and RESHAPE, if the
// elements that they select are a box.
#include <utility>

#include "graph/passes/lower/picks.h"

namespace skillet::passes {

void lower_slice_as_box(Rewriter& rewriter, ir::OpId id) {
  constexpr int64_t kElemsMax = 1 << 22;
  const ir::Op old = rewriter.op(id);
  if ((old.kind != ir::OpKind::strided_slice && old.kind != ir::OpKind::gather) || old.outputs.size() != 1 ||
      rewriter.level(id) != Level::refused)
    return;
  const ir::TensorId image = old.inputs[image_operand(old)], to = old.outputs[0];
  const ir::Tensor from = rewriter.tensor(image);
  if (!is_computed_byte(from) || !same_meaning(from, rewriter.tensor(to)) || from.shape.rank() < 1 ||
      from.shape.elems() > kElemsMax || from.shape.elems() < 1)
    return;
  const auto elements = picked(rewriter, old);
  const auto box = elements.size() == 1 ? box_of(elements[0], from.shape) : std::nullopt;
  if (!box) return;
  ir::Shape shape;
  shape.dims.assign(box->size.begin(), box->size.end());
  const ir::TensorId piece = rewriter.add_like(rewriter.tensor(to), "/box", std::move(shape));
  std::vector<ir::Op> by = {slice_of(rewriter, image, *box, piece), rewriter.reshape(piece, to)};
  rewriter.replace(id, std::move(by), fmt::format("{} of a box becomes SLICE", ir::op_name(old)));
}

}  // namespace skillet::passes
