// Ops along one axis that depend on order: TOPK_V2 and CUMSUM.
#include <algorithm>
#include <limits>
#include <numeric>
#include <type_traits>

#include "graph/ref/types.h"

namespace skillet::ref {
namespace {

// NaN sorts last, so that the order is total.
template <typename T>
T sort_key(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value) ? -std::numeric_limits<T>::infinity() : value;
  return value;
}

// The k largest of each row; equal values in order of their index.
template <typename T, typename Index>
KernelPtr topk_kernel(const Context& c) {
  return make_kernel([rows = elem_count(c.output()) / dim(c.output(), c.output().shape.rank() - 1),
                      size = static_cast<size_t>(c.input(0).shape.back(0)),
                      k = static_cast<size_t>(c.output().shape.back(0)), in = c.input_index(0),
                      values = c.output_index(0), indices = c.output_index(1)](Tensors t) {
    std::vector<size_t> order(size);
    for (size_t r = 0; r < rows; ++r) {
      const auto value = [&](size_t i) { return load_element<T>(t[in], r * size + i); };
      std::iota(order.begin(), order.end(), size_t{0});
      std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(k), order.end(), [&](size_t x, size_t y) {
        const T a = sort_key(value(x)), b = sort_key(value(y));
        return a > b || (a == b && x < y);
      });
      for (size_t i = 0; i < k; ++i) {
        elements<T>(t[values])[r * k + i] = value(order[i]);
        elements<Index>(t[indices])[r * k + i] = static_cast<Index>(order[i]);
      }
    }
  });
}

struct Scan {
  size_t outer = 1, size = 1, inner = 1;
  bool exclusive = false, reverse = false;
};

template <typename T>
KernelPtr cumsum_kernel(const Context& c, const Scan& scan) {
  // Integers wrap around.
  using Sum = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::common_type<T>>::type;
  return make_kernel([scan, in = c.input_index(0), out = c.output_index()](Tensors t) {
    for (size_t i = 0; i < scan.outer * scan.inner; ++i) {
      const size_t first = i / scan.inner * scan.size * scan.inner + i % scan.inner;
      Sum sum = 0;
      for (size_t k = 0; k < scan.size; ++k) {
        const size_t at = first + (scan.reverse ? scan.size - 1 - k : k) * scan.inner;
        const Sum before = sum;
        sum += static_cast<Sum>(load_element<T>(t[in], at));
        elements<T>(t[out])[at] = static_cast<T>(scan.exclusive ? before : sum);
      }
    }
  });
}

}  // namespace

Result<KernelPtr> prepare_topk_v2(const Context& c) {
  if (!c.input(1).is_constant()) return c.unsupported("k is not constant");
  // The shape rules read no k of 16 bits.
  ir::Shape whole = c.output().shape;
  if (whole.rank() > 0) whole.dims.back() = c.input(0).shape.back(0);
  if (whole != c.input(0).shape || c.output(1).shape != c.output().shape ||
      c.output().shape.back(0) > c.input(0).shape.back(0))
    return c.unsupported("the best {} of {}", c.output().shape.to_string(), c.input(0).shape.to_string());
  const bool narrow = c.output(1).dtype == ir::DType::int16;
  return with_number(c, c.input(0).dtype, [&]<typename T>(T) -> Result<KernelPtr> {
    return narrow ? topk_kernel<T, int16_t>(c) : topk_kernel<T, int32_t>(c);
  });
}

Result<KernelPtr> prepare_cumsum(const Context& c) {
  SK_TRY_ASSIGN(int64_t axis, c.constant_int(1));
  if (axis < 0) axis += c.input(0).shape.rank();
  Scan scan{.exclusive = c.attrs<ir::CumsumAttrs>().exclusive, .reverse = c.attrs<ir::CumsumAttrs>().reverse};
  for (int i = 0; i < c.input(0).shape.rank(); ++i) {
    (i < axis ? scan.outer : i == axis ? scan.size : scan.inner) *= dim(c.input(0), i);
  }
  return with_one_of<float, int32_t, int64_t>(c, c.input(0).dtype,
                                              [&](auto type) { return cumsum_kernel<decltype(type)>(c, scan); });
}

}  // namespace skillet::ref
