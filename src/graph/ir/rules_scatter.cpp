// Ops that place values by index, reduce rows by segment, or compute shapes.
#include <algorithm>
#include <cmath>

#include "graph/ir/rules.h"

namespace skillet::ir::rules {
namespace {

Error misfit(const OpView& v, size_t a, size_t b) {
  return error(ErrorCode::malformed, "input {} does not fit {}", describe_tensor(v.graph, v.op.inputs[a]),
               describe_tensor(v.graph, v.op.inputs[b]));
}

Result<void> need_scalar(const OpView& v, size_t input, DType dtype) {
  if (v.shape(input).elems() == 1 && v.in(input).dtype == dtype) return {};
  return error(ErrorCode::malformed, "input {} must be one {}", describe_tensor(v.graph, v.op.inputs[input]),
               dtype_name(dtype));
}

Result<void> need_output(const OpView& v, size_t output, DType dtype) {
  if (v.out(output).dtype == dtype) return {};
  return error(ErrorCode::malformed, "output {} must be {}", describe_tensor(v.graph, v.op.outputs[output]),
               dtype_name(dtype));
}

// A list of indices that a kernel reads at run time.
Result<void> need_list(const OpView& v, size_t input, int64_t size) {
  SK_TRY(need_index_type(v, input));
  if (v.shape(input).rank() == 1 && v.shape(input)[0] == size) return {};
  return error(ErrorCode::malformed, "input {} must be a list of {}", describe_tensor(v.graph, v.op.inputs[input]),
               size);
}

// True if the first `count` dimensions of both are equal.
bool same_start(const Shape& a, const Shape& b, int count) {
  return std::equal(a.dims.begin(), a.dims.begin() + count, b.dims.begin());
}

template <typename T>
Result<int64_t> range_size(const OpView& v) {
  const T start = v.in(0).values<T>()[0], limit = v.in(1).values<T>()[0], delta = v.in(2).values<T>()[0];
  if constexpr (std::is_floating_point_v<T>) {
    const T steps = std::ceil(std::abs((limit - start) / delta));
    if (!std::isfinite(steps) || (limit - start) * delta < 0 || steps > static_cast<T>(kMaxTensorElems)) {
      return error(ErrorCode::malformed, "no range from {} to {} by {}", start, limit, delta);
    }
    return static_cast<int64_t>(steps);
  } else {
    using U = uint64_t;
    const bool up = limit > start;
    const U far = up ? static_cast<U>(limit) - static_cast<U>(start) : static_cast<U>(start) - static_cast<U>(limit);
    const U step = delta > 0 ? static_cast<U>(delta) : U{0} - static_cast<U>(delta);
    if (delta == 0 || (far != 0 && up != (delta > 0)) || far / step > static_cast<U>(kMaxTensorElems)) {
      return error(ErrorCode::malformed, "no range from {} to {} by {}", start, limit, delta);
    }
    return static_cast<int64_t>(far / step + (far % step != 0 ? 1 : 0));
  }
}

}  // namespace

Result<Shapes> rank(const OpView& v) {
  SK_TRY(need_output(v, 0, DType::int32));
  return Shapes{Shape{}};
}

Result<Shapes> broadcast_args(const OpView& v) {
  for (size_t i : {0, 1}) SK_TRY(need_rank(v, i, 1));
  SK_TRY_ASSIGN(const auto a, constant_ints(v, 0));
  SK_TRY_ASSIGN(const auto b, constant_ints(v, 1));
  return one_shape({std::max(v.shape(0)[0], v.shape(1)[0])});
}

// The size of the result depends on values: unless they are constant there is no static shape.
Result<Shapes> range(const OpView& v) {
  for (size_t i : {0, 1, 2}) {
    if (v.shape(i).elems() != 1) return error(ErrorCode::malformed, "input {} is not a single value", i);
    if (!v.in(i).is_constant()) return Shapes{};
  }
  int64_t size = 0;
  switch (v.in(0).dtype) {
    case DType::float32: {
      SK_TRY_ASSIGN(size, range_size<float>(v));
      break;
    }
    case DType::int32: {
      SK_TRY_ASSIGN(size, range_size<int32_t>(v));
      break;
    }
    case DType::int64: {
      SK_TRY_ASSIGN(size, range_size<int64_t>(v));
      break;
    }
    default: return error(ErrorCode::unsupported, "type {}", dtype_name(v.in(0).dtype));
  }
  return one_shape({size});
}

Result<Shapes> where(const OpView& v) {
  SK_TRY(need_output(v, 0, DType::int64));
  const Tensor& condition = v.in(0);
  if (!condition.is_constant() || condition.dtype != DType::boolean) return Shapes{};
  const auto holds = std::count_if(condition.data.begin(), condition.data.end(), [](uint8_t b) { return b != 0; });
  return one_shape({holds, condition.shape.rank()});
}

Result<Shapes> local_response_normalization(const OpView& v) {
  SK_TRY(need_rank(v, 0, 4));
  const auto& attrs = v.op.as<LocalResponseNormalizationAttrs>();
  if (attrs.radius < 0) return error(ErrorCode::malformed, "radius {}", attrs.radius);
  for (float value : {attrs.bias, attrs.alpha, attrs.beta}) {
    if (!std::isfinite(value)) return error(ErrorCode::malformed, "bias, alpha or beta is {}", value);
  }
  return same_shape(v);
}

Result<Shapes> scatter_nd(const OpView& v) {
  SK_TRY(need_index_type(v, 0));
  if (v.in(1).dtype != v.out(0).dtype) return error(ErrorCode::malformed, "the updates change their type");
  SK_TRY_ASSIGN(const auto dims, constant_ints(v, 2));
  if (!dims) return Shapes{};
  SK_TRY_ASSIGN(Shapes shapes, one_shape(*dims));
  const Shape &indices = v.shape(0), &updates = v.shape(1);
  const int32_t depth = indices.back(0);
  if (indices.rank() == 0 || depth < 1 || depth > shapes[0].rank()) {
    return error(ErrorCode::malformed, "index tuples of {} for {} dimensions", depth, shapes[0].rank());
  }
  Shape expected = indices;
  expected.dims.pop_back();
  expected.dims.insert(expected.dims.end(), shapes[0].dims.begin() + depth, shapes[0].dims.end());
  if (updates == expected) return shapes;
  return error(ErrorCode::malformed, "input {} should have shape {}", describe_tensor(v.graph, v.op.inputs[1]),
               expected.to_string());
}

Result<Shapes> reverse_sequence(const OpView& v) {
  const auto& attrs = v.op.as<ReverseSequenceAttrs>();
  const int rank = v.shape(0).rank();
  for (int32_t axis : {attrs.axis, attrs.batch_axis}) {
    if (axis < 0 || axis >= rank)
      return error(ErrorCode::malformed, "axis {} is outside the {} dimensions", axis, rank);
  }
  if (attrs.axis == attrs.batch_axis)
    return error(ErrorCode::malformed, "sequences and batches on axis {}", attrs.axis);
  SK_TRY(need_list(v, 1, v.shape(0)[attrs.batch_axis]));
  return same_shape(v);
}

Result<Shapes> embedding_lookup(const OpView& v) {
  SK_TRY(need_index_type(v, 0));
  SK_TRY(need_rank(v, 0, 1));
  if (v.shape(1).rank() < 2) return error(ErrorCode::malformed, "rows of {} dimensions", v.shape(1).rank());
  Shape shape = v.shape(1);
  shape.dims[0] = v.shape(0)[0];
  return Shapes{std::move(shape)};
}

Result<Shapes> matrix_diag(const OpView& v) {
  if (v.shape(0).rank() == 0) return error(ErrorCode::malformed, "the input is a scalar");
  Shape shape = v.shape(0);
  shape.dims.push_back(shape.dims.back());
  return Shapes{std::move(shape)};
}

Result<Shapes> matrix_set_diag(const OpView& v) {
  const Shape& input = v.shape(0);
  if (input.rank() < 2) return error(ErrorCode::malformed, "the input has fewer than 2 dimensions");
  Shape diagonal = input;
  diagonal.dims.pop_back();
  diagonal.dims.back() = std::min(input.back(0), input.back(1));
  if (v.shape(1) != diagonal) return misfit(v, 1, 0);
  return same_shape(v);
}

Result<Shapes> segment_sum(const OpView& v) {
  if (v.shape(0).rank() == 0) return error(ErrorCode::malformed, "the input is a scalar");
  SK_TRY(need_list(v, 1, v.shape(0)[0]));
  SK_TRY_ASSIGN(const auto ids, constant_ints(v, 1));
  if (!ids) return Shapes{};
  int64_t last = -1;
  for (int64_t id : *ids) {
    if (id < 0 || (id != last && id != last + 1)) return error(ErrorCode::malformed, "segment {} after {}", id, last);
    last = id;
  }
  Shape shape = v.shape(0);
  SK_TRY_ASSIGN(shape.dims[0], dimension(last + 1, "the number of segments"));
  return Shapes{std::move(shape)};
}

Result<Shapes> unsorted_segment(const OpView& v) {
  const Shape &input = v.shape(0), &ids = v.shape(1);
  SK_TRY(need_index_type(v, 1));
  if (ids.rank() > input.rank() || !same_start(ids, input, ids.rank())) return misfit(v, 1, 0);
  SK_TRY_ASSIGN(const auto count, constant_int(v, 2));
  if (!count) return Shapes{};
  std::vector<int64_t> dims{*count};
  dims.insert(dims.end(), input.dims.begin() + ids.rank(), input.dims.end());
  return one_shape(dims);
}

Result<Shapes> dynamic_update_slice(const OpView& v) {
  const Shape &input = v.shape(0), &update = v.shape(1);
  if (v.in(1).dtype != v.in(0).dtype) return error(ErrorCode::malformed, "the update is of another type");
  if (update.rank() != input.rank()) return misfit(v, 1, 0);
  for (int i = 0; i < input.rank(); ++i) {
    if (update[i] > input[i]) return misfit(v, 1, 0);
  }
  SK_TRY(need_list(v, 2, input.rank()));
  return same_shape(v);
}

Result<Shapes> non_max_suppression(const OpView& v) {
  SK_TRY(need_rank(v, 0, 2));
  SK_TRY(need_rank(v, 1, 1));
  if (v.shape(0)[1] != 4 || v.shape(0)[0] != v.shape(1)[0]) return misfit(v, 0, 1);
  for (size_t i : {0, 1}) {
    if (v.in(i).dtype == DType::float32) continue;
    return error(ErrorCode::unsupported, "input {} is not float32", describe_tensor(v.graph, v.op.inputs[i]));
  }
  SK_TRY(need_scalar(v, 2, DType::int32));
  for (size_t i = 3; i < v.op.inputs.size(); ++i) SK_TRY(need_scalar(v, i, DType::float32));
  const bool scores = v.op.kind == OpKind::non_max_suppression_v5;
  SK_TRY(need_output(v, 0, DType::int32));
  if (scores) SK_TRY(need_output(v, 1, DType::float32));
  SK_TRY(need_output(v, scores ? 2 : 1, DType::int32));
  SK_TRY_ASSIGN(const auto most, constant_int(v, 2));
  if (!most) return Shapes{};
  SK_TRY_ASSIGN(const int32_t count, dimension(*most, "the number of boxes"));
  return scores ? Shapes{Shape{count}, Shape{count}, Shape{}} : Shapes{Shape{count}, Shape{}};
}

}  // namespace skillet::ir::rules
