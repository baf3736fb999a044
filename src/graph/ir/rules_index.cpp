// Ops that select, repeat or reverse values: GATHER, TOPK_V2, TILE, FILL and similar ops.
#include <algorithm>

#include "base/int_math.h"
#include "graph/ir/rules.h"

namespace skillet::ir::rules {
namespace {

bool is_index_type(DType dtype) { return dtype == DType::int32 || dtype == DType::int64; }

Error too_many_values(const OpView& v, size_t input) {
  return error(ErrorCode::malformed, "input {} does not fit the first input's dimensions",
               describe_tensor(v.graph, v.op.inputs[input]));
}

}  // namespace

Result<void> need_index_type(const OpView& v, size_t input) {
  if (is_index_type(v.in(input).dtype) || v.in(input).dtype == DType::int16) return {};
  return error(ErrorCode::malformed, "input {} holds no indices", describe_tensor(v.graph, v.op.inputs[input]));
}

Result<Shapes> mirror_pad(const OpView& v) {
  SK_TRY_ASSIGN(Shapes shapes, pad(v));
  if (shapes.empty()) return shapes;
  SK_TRY_ASSIGN(const auto margins, constant_ints(v, 1));
  const int64_t not_repeated = v.op.as<MirrorPadAttrs>().symmetric ? 0 : 1;
  for (size_t i = 0; i < margins->size(); ++i) {
    const int64_t available = v.shape(0).dims[i / 2] - not_repeated;
    if ((*margins)[i] > std::max<int64_t>(available, 0)) {
      return error(ErrorCode::malformed, "a margin of {} mirrors only {} values", (*margins)[i], available);
    }
  }
  return shapes;
}

Result<Shapes> gather(const OpView& v) {
  const auto& attrs = v.op.as<GatherAttrs>();
  const Shape &input = v.shape(0), &indices = v.shape(1);
  SK_TRY(need_index_type(v, 1));
  SK_TRY_ASSIGN(const int axis, resolve_axis(attrs.axis, input.rank()));
  const int batch_dims = attrs.batch_dims < 0 ? attrs.batch_dims + indices.rank() : attrs.batch_dims;
  if (batch_dims < 0 || batch_dims > std::min(axis, indices.rank())) {
    return error(ErrorCode::malformed, "{} batch dimensions", attrs.batch_dims);
  }
  std::vector<int64_t> dims(input.dims.begin(), input.dims.begin() + axis);
  for (int i = 0; i < batch_dims; ++i) {
    if (input[i] != indices[i]) return too_many_values(v, 1);
  }
  dims.insert(dims.end(), indices.dims.begin() + batch_dims, indices.dims.end());
  dims.insert(dims.end(), input.dims.begin() + axis + 1, input.dims.end());
  return one_shape(dims);
}

Result<Shapes> gather_nd(const OpView& v) {
  const Shape &input = v.shape(0), &indices = v.shape(1);
  SK_TRY(need_index_type(v, 1));
  const int32_t depth = indices.back(0);
  if (indices.rank() == 0 || depth < 1 || depth > input.rank()) {
    return error(ErrorCode::malformed, "index tuples of {} for {} dimensions", depth, input.rank());
  }
  std::vector<int64_t> dims(indices.dims.begin(), indices.dims.end() - 1);
  dims.insert(dims.end(), input.dims.begin() + depth, input.dims.end());
  return one_shape(dims);
}

Result<Shapes> topk(const OpView& v) {
  if (v.out(0).dtype != v.in(0).dtype) return error(ErrorCode::malformed, "the values change their type");
  if (v.out(1).dtype != DType::int32 && v.out(1).dtype != DType::int16) {
    return error(ErrorCode::malformed, "output {} holds no indices", describe_tensor(v.graph, v.op.outputs[1]));
  }
  if (v.shape(0).rank() == 0) return error(ErrorCode::malformed, "the input is a scalar");
  if (v.in(1).dtype == DType::int16) return Shapes{};
  SK_TRY_ASSIGN(const auto k, constant_int(v, 1));
  if (!k) return Shapes{};
  Shape shape = v.shape(0);
  if (*k < 0 || *k > shape.back(0)) {
    return error(ErrorCode::malformed, "the best {} of {} values", *k, shape.back(0));
  }
  shape.dims.back() = static_cast<int32_t>(*k);
  return Shapes{shape, shape};
}

Result<Shapes> reverse(const OpView& v) {
  SK_TRY_ASSIGN(const auto axes, constant_ints(v, 1));
  if (!axes) return Shapes{v.shape(0)};
  for (int64_t axis : *axes) SK_TRY(resolve_axis(axis, v.shape(0).rank()));
  return Shapes{v.shape(0)};
}

Result<Shapes> one_hot(const OpView& v) {
  SK_TRY(need_index_type(v, 0));
  for (size_t i : {1, 2, 3}) {
    if (v.shape(i).elems() != 1) return error(ErrorCode::malformed, "input {} is not a single value", i);
  }
  if (v.in(2).dtype != v.in(3).dtype || v.in(2).dtype != v.out(0).dtype) {
    return error(ErrorCode::malformed, "on and off values are of another type than the output");
  }
  SK_TRY_ASSIGN(const auto depth, constant_int(v, 1));
  if (!depth) return Shapes{};
  const Shape& indices = v.shape(0);
  std::vector<int64_t> dims(indices.dims.begin(), indices.dims.end());
  const int32_t given = v.op.as<OneHotAttrs>().axis;
  SK_TRY_ASSIGN(const int axis, resolve_axis(given, indices.rank() + 1));
  dims.insert(dims.begin() + axis, *depth);
  return one_shape(dims);
}

Result<Shapes> tile(const OpView& v) {
  SK_TRY_ASSIGN(const auto repeats, constant_ints(v, 1));
  if (!repeats) return Shapes{};
  const Shape& input = v.shape(0);
  if (repeats->size() != input.dims.size()) return too_many_values(v, 1);
  std::vector<int64_t> dims;
  for (size_t i = 0; i < input.dims.size(); ++i) {
    const auto product = checked_mul(input.dims[i], (*repeats)[i]);
    if (!product) return error(ErrorCode::malformed, "{} repeats of {}", (*repeats)[i], input.dims[i]);
    dims.push_back(*product);
  }
  return one_shape(dims);
}

Result<Shapes> broadcast_to(const OpView& v) {
  SK_TRY_ASSIGN(const auto dims, constant_ints(v, 1));
  if (!dims) return Shapes{};
  SK_TRY_ASSIGN(const Shapes wanted, one_shape(*dims));
  SK_TRY_ASSIGN(const Shapes both, broadcast_shapes(v.shape(0), wanted[0]));
  if (both[0] == wanted[0]) return both;
  return error(ErrorCode::malformed, "shape {} does not broadcast to {}", v.shape(0).to_string(),
               wanted[0].to_string());
}

Result<Shapes> fill(const OpView& v) {
  if (v.out(0).dtype != v.in(1).dtype) return error(ErrorCode::malformed, "the value changes its type");
  if (v.shape(1).elems() != 1) return error(ErrorCode::malformed, "more than one value");
  SK_TRY_ASSIGN(const auto dims, constant_ints(v, 0));
  if (!dims) return Shapes{};
  return one_shape(*dims);
}

Result<Shapes> shape(const OpView& v) {
  if (!is_index_type(v.out(0).dtype)) return error(ErrorCode::malformed, "the output holds no dimensions");
  return one_shape({v.shape(0).rank()});
}

}  // namespace skillet::ir::rules
