// Elementwise ops, reductions, resizing.
#include <algorithm>
#include <cmath>

#include "graph/ir/rules.h"

namespace skillet::ir::rules {

Result<Shapes> same_shape(const OpView& v) { return Shapes{v.shape(0)}; }

Result<Shapes> leaky_relu(const OpView& v) {
  if (!std::isfinite(v.op.as<LeakyReluAttrs>().alpha)) return error(ErrorCode::malformed, "alpha is not finite");
  return same_shape(v);
}

Result<Shapes> byte_table(const OpView& v) {
  if (!is_8bit(v.in(0).dtype) || v.in(1).dtype != v.out(0).dtype || !is_8bit(v.out(0).dtype)) {
    return error(ErrorCode::malformed, "a table of {} from {} to {}", dtype_name(v.in(1).dtype),
                 dtype_name(v.in(0).dtype), dtype_name(v.out(0).dtype));
  }
  if (!v.in(1).is_constant() || v.shape(1).elems() != 256)
    return error(ErrorCode::malformed, "the table is not 256 constants");
  return same_shape(v);
}

Result<Shapes> softmax(const OpView& v) {
  if (!std::isfinite(v.op.as<SoftmaxAttrs>().beta)) return error(ErrorCode::malformed, "beta is not finite");
  if (v.shape(0).rank() == 0) return error(ErrorCode::malformed, "the input is a scalar");
  return same_shape(v);
}

Result<Shapes> over_last_axis(const OpView& v) {
  if (v.shape(0).rank() == 0) return error(ErrorCode::malformed, "the input is a scalar");
  return same_shape(v);
}

Result<Shapes> add_n(const OpView& v) {
  for (size_t i = 1; i < v.op.inputs.size(); ++i) {
    if (v.shape(i) == v.shape(0)) continue;
    return error(ErrorCode::malformed, "input {} differs from the first one's shape {}",
                 describe_tensor(v.graph, v.op.inputs[i]), v.shape(0).to_string());
  }
  return same_shape(v);
}

Result<Shapes> broadcast(const OpView& v) { return broadcast_shapes(v.shape(0), v.shape(1)); }

Result<Shapes> compare(const OpView& v) {
  if (v.in(0).dtype != v.in(1).dtype || v.out(0).dtype != DType::boolean) {
    return error(ErrorCode::malformed, "types {} and {} to {}", dtype_name(v.in(0).dtype), dtype_name(v.in(1).dtype),
                 dtype_name(v.out(0).dtype));
  }
  return broadcast(v);
}

Result<Shapes> select(const OpView& v) {
  if (v.in(0).dtype != DType::boolean || v.in(1).dtype != v.in(2).dtype || v.out(0).dtype != v.in(1).dtype) {
    return error(ErrorCode::malformed, "{} ? {} : {} to {}", dtype_name(v.in(0).dtype), dtype_name(v.in(1).dtype),
                 dtype_name(v.in(2).dtype), dtype_name(v.out(0).dtype));
  }
  const Shape &condition = v.shape(0), &a = v.shape(1);
  if (v.op.kind == OpKind::select) {
    const bool by_row = condition.rank() == 1 && a.rank() > 0 && condition[0] == a[0];
    if (a == v.shape(2) && (condition == a || by_row || condition.rank() == 0)) return Shapes{a};
    return error(ErrorCode::malformed, "shapes {}, {} and {} do not fit", condition.to_string(), a.to_string(),
                 v.shape(2).to_string());
  }
  SK_TRY_ASSIGN(const Shapes both, broadcast_shapes(a, v.shape(2)));
  return broadcast_shapes(condition, both[0]);
}

Result<Shapes> broadcast_shapes(const Shape& a, const Shape& b) {
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

Result<Shapes> cumsum(const OpView& v) {
  SK_TRY_ASSIGN(const auto axis, constant_int(v, 1));
  if (axis) SK_TRY(resolve_axis(*axis, v.shape(0).rank()));
  return same_shape(v);
}

Result<Shapes> batch_matmul(const OpView& v) {
  const auto& attrs = v.op.as<BatchMatmulAttrs>();
  Shape a = v.shape(0), b = v.shape(1);
  if (a.rank() < 2 || b.rank() < 2) return error(ErrorCode::malformed, "an operand has fewer than 2 dimensions");
  const int32_t rows = a.back(attrs.transpose_a ? 0 : 1), depth = a.back(attrs.transpose_a ? 1 : 0);
  const int32_t cols = b.back(attrs.transpose_b ? 1 : 0), b_depth = b.back(attrs.transpose_b ? 0 : 1);
  if (depth != b_depth) return error(ErrorCode::malformed, "{} columns times {} rows", depth, b_depth);
  a.dims.resize(a.dims.size() - 2);
  b.dims.resize(b.dims.size() - 2);
  SK_TRY_ASSIGN(Shapes shapes, broadcast_shapes(a, b));
  shapes[0].dims.insert(shapes[0].dims.end(), {rows, cols});
  return shapes;
}

}  // namespace skillet::ir::rules
