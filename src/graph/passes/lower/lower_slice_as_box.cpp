// STRIDED_SLICE and GATHER that remove dimensions (the last step of a sequence) become SLICE and RESHAPE, if the
// elements that they select are a box.
#include <algorithm>
#include <optional>
#include <utility>

#include "graph/passes/lower/picks.h"

namespace skillet::passes {
namespace {

struct Box {
  std::vector<int32_t> begin, size;
};

std::vector<int32_t> place_of(int64_t element, const ir::Shape& shape) {
  std::vector<int32_t> out(shape.dims.size(), 0);
  for (size_t axis = out.size(); axis-- > 0;) {
    out[axis] = static_cast<int32_t>(element % shape.dims[axis]);
    element /= shape.dims[axis];
  }
  return out;
}

// The box of the elements in their order; nothing if they are not all elements of a box.
std::optional<Box> box_of(const std::vector<int32_t>& elements, const ir::Shape& shape) {
  if (elements.empty() || std::ranges::min(elements) < 0) return std::nullopt;
  Box out{.begin = place_of(elements.front(), shape), .size = place_of(elements.back(), shape)};
  ir::Shape box;
  for (size_t axis = 0; axis < out.size.size(); ++axis) {
    out.size[axis] += 1 - out.begin[axis];
    if (out.size[axis] < 1) return std::nullopt;
    box.dims.push_back(out.size[axis]);
  }
  if (box.elems() != std::ssize(elements)) return std::nullopt;
  for (size_t i = 0; i < elements.size(); ++i) {
    int64_t element = 0;
    const std::vector<int32_t> place = place_of(static_cast<int64_t>(i), box);
    for (size_t axis = 0; axis < place.size(); ++axis)
      element = element * shape.dims[axis] + out.begin[axis] + place[axis];
    if (element != elements[i]) return std::nullopt;
  }
  return out;
}

}  // namespace

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
  const std::string name = rewriter.tensor(piece).name;
  ir::Op slice{.kind = ir::OpKind::slice};
  slice.inputs = {image, rewriter.add_ints(name + "/begin", box->begin), rewriter.add_ints(name + "/size", box->size)};
  slice.outputs = {piece};
  std::vector<ir::Op> by = {std::move(slice), rewriter.reshape(piece, to)};
  rewriter.replace(id, std::move(by), fmt::format("{} of a box becomes SLICE", ir::op_name(old)));
}

}  // namespace skillet::passes
