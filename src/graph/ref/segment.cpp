// SEGMENT_SUM and the unsorted segment ops: each row is folded into its segment.
#include <algorithm>
#include <limits>

#include "graph/ref/indices.h"
#include "graph/ref/types.h"

namespace skillet::ref {
namespace {

// out = combine(out, value) for each value of a segment, starting with `initial`. The unsorted ops skip rows with a
// negative segment.
template <typename T, typename Combine>
KernelPtr segment_kernel(const Context& c, T initial, Combine combine) {
  const size_t rows = elem_count(c.input(1)), segments = dim(c.output(), 0);
  return make_kernel([=, op = c.describe(), row = elem_count(c.output()) / segments,
                      sorted = c.op().kind == ir::OpKind::segment_sum, type = c.input(1).dtype, in = c.input_index(0),
                      at = c.input_index(1), out = c.output_index()](Tensors t) -> Result<void> {
    T* to = elements<T>(t[out]);
    std::fill_n(to, segments * row, initial);
    int64_t last = -1;
    for (size_t r = 0; r < rows; ++r) {
      const int64_t segment = load_index(type, t[at], r);
      if (sorted && segment != last && segment != last + 1) {
        return error(ErrorCode::out_of_range, "{}: segment {} after {}", op, segment, last);
      }
      last = segment;
      if (!sorted && segment < 0) continue;
      if (!is_inside(segment, segments)) return outside(op, segment, segments);
      T* values = to + static_cast<size_t>(segment) * row;
      for (size_t k = 0; k < row; ++k) values[k] = combine(values[k], load_element<T>(t[in], r * row + k));
    }
    if (sorted && static_cast<size_t>(last + 1) != segments) {
      return error(ErrorCode::out_of_range, "{}: {} segments, but the output has {}", op, last + 1, segments);
    }
    return {};
  });
}

// Integers wrap around.
template <typename T, typename F>
auto wrapping(F f) {
  return [f](T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(f(static_cast<U>(x), static_cast<U>(y)));
    } else {
      return f(x, y);
    }
  };
}

template <typename Make>
Result<KernelPtr> of_type(const Context& c, Make make) {
  return with_one_of<float, int32_t>(c, c.input(0).dtype, make);
}

}  // namespace

Result<KernelPtr> prepare_segment_sum(const Context& c) {
  return of_type(c, [&](auto zero) {
    return segment_kernel(c, zero, wrapping<decltype(zero)>([](auto x, auto y) { return x + y; }));
  });
}

Result<KernelPtr> prepare_unsorted_segment_sum(const Context& c) {
  SK_TRY(c.constant_int(2));
  return prepare_segment_sum(c);
}

Result<KernelPtr> prepare_unsorted_segment_prod(const Context& c) {
  SK_TRY(c.constant_int(2));
  return of_type(
      c, [&]<typename T>(T) { return segment_kernel(c, T{1}, wrapping<T>([](auto x, auto y) { return x * y; })); });
}

Result<KernelPtr> prepare_unsorted_segment_max(const Context& c) {
  SK_TRY(c.constant_int(2));
  return of_type(c, [&]<typename T>(T) {
    return segment_kernel(c, std::numeric_limits<T>::lowest(), [](T x, T y) { return std::max(x, y); });
  });
}

Result<KernelPtr> prepare_unsorted_segment_min(const Context& c) {
  SK_TRY(c.constant_int(2));
  return of_type(c, [&]<typename T>(T) {
    return segment_kernel(c, std::numeric_limits<T>::max(), [](T x, T y) { return std::min(x, y); });
  });
}

}  // namespace skillet::ref
