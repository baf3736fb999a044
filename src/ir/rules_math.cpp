// Elementwise ops, reductions, resizing.
#include <algorithm>
#include <cmath>

#include "ir/rules.h"

namespace skillet::ir::rules {

Result<Shapes> unknown(const OpView&) { return Shapes{}; }

Result<Shapes> same_shape(const OpView& v) { return Shapes{v.shape(0)}; }

Result<Shapes> leaky_relu(const OpView& v) {
  if (!std::isfinite(v.op.as<LeakyReluAttrs>().alpha)) return error(ErrorCode::malformed, "alpha is not finite");
  return same_shape(v);
}

Result<Shapes> softmax(const OpView& v) {
  if (!std::isfinite(v.op.as<SoftmaxAttrs>().beta)) return error(ErrorCode::malformed, "beta is not finite");
  if (v.shape(0).rank() == 0) return error(ErrorCode::malformed, "the input is a scalar");
  return same_shape(v);
}

Result<Shapes> broadcast(const OpView& v) {
  const Shape &a = v.shape(0), &b = v.shape(1);
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> dims(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) {
    const int32_t x = a.back(i), y = b.back(i);
    if (x != y && x != 1 && y != 1) {
      return error(ErrorCode::malformed, "shapes {} and {} do not broadcast", a.to_string(), b.to_string());
    }
    dims[static_cast<size_t>(rank - 1 - i)] = x == 1 ? y : x;
  }
  return one_shape(dims);
}

Result<Shapes> prelu(const OpView& v) {
  SK_TRY_ASSIGN(Shapes shapes, broadcast(v));
  if (shapes[0] == v.shape(0)) return shapes;
  return error(ErrorCode::malformed, "alpha {} does not broadcast to the input", v.shape(1).to_string());
}

Result<Shapes> reduce(const OpView& v) {
  const Shape& input = v.shape(0);
  SK_TRY_ASSIGN(const auto axes, constant_ints(v, 1));
  if (!axes) return Shapes{};
  std::vector<bool> reduced(input.dims.size());
  for (int64_t axis : *axes) {
    SK_TRY_ASSIGN(const int resolved, resolve_axis(axis, input.rank()));
    reduced[static_cast<size_t>(resolved)] = true;
  }
  Shape shape;
  for (size_t i = 0; i < input.dims.size(); ++i) {
    if (!reduced[i]) shape.dims.push_back(input.dims[i]);
    if (reduced[i] && v.op.as<ReduceAttrs>().keep_dims) shape.dims.push_back(1);
  }
  return Shapes{std::move(shape)};
}

Result<Shapes> arg_max(const OpView& v) {
  const DType dtype = v.out(0).dtype;
  if (dtype != DType::int32 && dtype != DType::int64) {
    return error(ErrorCode::malformed, "output {} must be int32 or int64", describe_tensor(v.graph, v.op.outputs[0]));
  }
  SK_TRY_ASSIGN(const auto axis, constant_int(v, 1));
  if (!axis) return Shapes{};
  SK_TRY_ASSIGN(const int resolved, resolve_axis(*axis, v.shape(0).rank()));
  Shape shape = v.shape(0);
  shape.dims.erase(shape.dims.begin() + resolved);
  return Shapes{std::move(shape)};
}

Result<Shapes> resize(const OpView& v) {
  SK_TRY(need_rank(v, 0, 4));
  SK_TRY_ASSIGN(const auto size, constant_ints(v, 1));
  if (!size) return Shapes{};
  if (size->size() != 2) return error(ErrorCode::malformed, "the size operand has {} elements, not 2", size->size());
  const auto& attrs = v.op.as<ResizeAttrs>();
  if (attrs.align_corners && attrs.half_pixel_centers) {
    return error(ErrorCode::malformed, "align_corners and half_pixel_centers exclude each other");
  }
  return one_shape({v.shape(0)[0], (*size)[0], (*size)[1], v.shape(0)[3]});
}

}  // namespace skillet::ir::rules
