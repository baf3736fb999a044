// Ops whose result depends only on shapes and constants: RANK, SHAPE, BROADCAST_ARGS, RANGE, WHERE, ZEROS_LIKE; and
// FILL.
#include <algorithm>

#include "graph/ref/indices.h"
#include "graph/ref/types.h"

namespace skillet::ref {
namespace {

// An output that is the same in every run.
template <typename T>
KernelPtr values_kernel(const Context& c, std::vector<T> values) {
  return make_kernel([values = std::move(values), out = c.output_index()](Tensors t) {
    std::copy(values.begin(), values.end(), elements<T>(t[out]));
  });
}

Error needs_constant(const Context& c, size_t input) {
  return c.unsupported("the size of its output depends on values of '{}', which is not constant", c.input(input).name);
}

template <typename T>
KernelPtr range_kernel(const Context& c) {
  T value = load_element<T>(c.input(0).data, 0);
  const T delta = load_element<T>(c.input(2).data, 0);
  std::vector<T> values(elem_count(c.output()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = value;
    if (i + 1 < values.size()) value += delta;  // not added after the last value: no overflow
  }
  return values_kernel(c, std::move(values));
}

}  // namespace

Result<KernelPtr> prepare_rank(const Context& c) {
  return values_kernel(c, std::vector<int32_t>{c.input(0).shape.rank()});
}

Result<KernelPtr> prepare_broadcast_args(const Context& c) {
  const bool wide = c.output().dtype == ir::DType::int64;
  return make_kernel([op = c.describe(), wide, type = c.output().dtype, a_size = elem_count(c.input(0)),
                      b_size = elem_count(c.input(1)), a = c.input_index(0), b = c.input_index(1),
                      out = c.output_index()](Tensors t) -> Result<void> {
    const size_t rank = std::max(a_size, b_size);
    for (size_t i = 0; i < rank; ++i) {  // from last to first
      const int64_t x = i < a_size ? load_index(type, t[a], a_size - 1 - i) : 1;
      const int64_t y = i < b_size ? load_index(type, t[b], b_size - 1 - i) : 1;
      if (x != y && x != 1 && y != 1) {
        return error(ErrorCode::out_of_range, "{}: {} and {} do not broadcast", op, x, y);
      }
      const int64_t size = x == 1 ? y : x;
      if (wide) elements<int64_t>(t[out])[rank - 1 - i] = size;
      if (!wide) elements<int32_t>(t[out])[rank - 1 - i] = static_cast<int32_t>(size);
    }
    return {};
  });
}

Result<KernelPtr> prepare_range(const Context& c) {
  for (size_t i : {0, 1, 2}) {
    if (!c.input(i).is_constant()) return needs_constant(c, i);
  }
  return with_one_of<float, int32_t, int64_t>(c, c.output().dtype,
                                              [&](auto type) { return range_kernel<decltype(type)>(c); });
}

Result<KernelPtr> prepare_where(const Context& c) {
  const ir::Tensor& condition = c.input(0);
  if (!condition.is_constant()) return needs_constant(c, 0);
  if (condition.dtype != ir::DType::boolean) return c.unsupported("type {}", ir::dtype_name(condition.dtype));
  std::vector<int64_t> places;
  const auto rank = static_cast<size_t>(condition.shape.rank());
  for (size_t i = 0; i < elem_count(condition); ++i) {
    if (condition.data[i] == 0) continue;
    places.resize(places.size() + rank);
    size_t rest = i;
    for (size_t k = rank; k-- > 0;) {
      places[places.size() - rank + k] = static_cast<int64_t>(rest % dim(condition, static_cast<int>(k)));
      rest /= dim(condition, static_cast<int>(k));
    }
  }
  return values_kernel(c, std::move(places));
}

Result<KernelPtr> prepare_fill(const Context& c) {
  SK_TRY(c.constant_ints(0));
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.output()));
  return make_kernel([bytes, in = c.input_index(1), out = c.output_index()](Tensors t) {
    for (size_t i = 0; i < t[out].size(); ++i) t[out][i] = t[in][i % bytes];
  });
}

Result<KernelPtr> prepare_shape(const Context& c) {
  const bool wide = c.output().dtype == ir::DType::int64;
  return make_kernel([wide, dims = c.input(0).shape.dims, out = c.output_index()](Tensors t) {
    for (size_t i = 0; i < dims.size(); ++i) {
      if (wide) elements<int64_t>(t[out])[i] = dims[i];
      if (!wide) elements<int32_t>(t[out])[i] = dims[i];
    }
  });
}

Result<KernelPtr> prepare_zeros_like(const Context& c) {
  return make_kernel([out = c.output_index()](Tensors t) { std::fill(t[out].begin(), t[out].end(), uint8_t{0}); });
}

}  // namespace skillet::ref
