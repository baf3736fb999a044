// Comparisons, logic, and SELECT: ops that compute booleans or select by them.
#include <algorithm>
#include <functional>

#include "graph/ref/broadcast.h"
#include "graph/ref/types.h"

namespace skillet::ref {
namespace {

// out = f(a, b) as a boolean; `read_a` and `read_b` load an element.
template <typename ReadA, typename ReadB, typename F>
KernelPtr boolean_kernel(const Context& c, ReadA read_a, ReadB read_b, F f) {
  return make_kernel([=, broadcast = Broadcast(c.input(0).shape, c.input(1).shape), a = c.input_index(0),
                      b = c.input_index(1), out = c.output_index()](Tensors t) {
    broadcast.for_each_row([&](size_t a_at, size_t a_step, size_t b_at, size_t b_step, size_t out_at) {
      for (size_t i = 0; i < broadcast.row_elems(); ++i) {
        t[out][out_at + i] = f(read_a(t[a], a_at + i * a_step), read_b(t[b], b_at + i * b_step)) ? 1 : 0;
      }
    });
  });
}

// 8-bit values in units of 2^-8, as TFLite compares tensors of different scales.
struct ScaledTable {
  std::array<int32_t, 256> values{};
  int32_t operator()(std::span<const uint8_t> bytes, size_t i) const { return values[bytes[i]]; }
};

ScaledTable scaled_table(const ir::Tensor& tensor) {
  constexpr int kLeftShift = 8;
  const auto by = quantize_multiplier(static_cast<double>(tensor.quant.scale()));
  ScaledTable table;
  for (int raw = 0; raw < 256; ++raw) {
    const int32_t value =
        (tensor.dtype == ir::DType::int8 ? static_cast<int8_t>(raw) : raw) - tensor.quant.zero_point();
    table.values[static_cast<size_t>(raw)] = multiply_by_quantized_multiplier(value * (1 << kLeftShift), by);
  }
  return table;
}

// The order of two values, as one bit. A comparison is the set of orders for which it is true.
enum Order : unsigned { kLess = 1, kEqual = 2, kGreater = 4, kUnordered = 8 };
struct IsOneOf {
  unsigned orders;
  template <typename T>
  bool operator()(T a, T b) const {
    return ((a < b ? kLess : a == b ? kEqual : a > b ? kGreater : kUnordered) & orders) != 0;
  }
};

Result<KernelPtr> quantized_comparison(const Context& c, IsOneOf f) {
  for (size_t i : {0, 1}) {
    SK_TRY(c.need_quantized(c.input(i)));
    // TFLite requires a multiplier below 1.
    if (c.input(i).quant.scale() >= 1) return c.unsupported("scale {}", c.input(i).quant.scale());
  }
  return boolean_kernel(c, scaled_table(c.input(0)), scaled_table(c.input(1)), f);
}

Result<KernelPtr> comparison(const Context& c, unsigned orders) {
  const IsOneOf f{orders};
  if (ir::is_8bit(c.input(0).dtype) && !c.input(0).quant.empty()) return quantized_comparison(c, f);
  return with_type(c, c.input(0).dtype, [&]<typename T>(T) -> Result<KernelPtr> {
    return boolean_kernel(c, load_value<T>, load_value<T>, f);
  });
}

template <typename F>
Result<KernelPtr> logic(const Context& c, F f) {
  if (c.input(0).dtype != ir::DType::boolean) return c.unsupported("type {}", ir::dtype_name(c.input(0).dtype));
  return boolean_kernel(c, load_value<bool>, load_value<bool>, f);
}

// The element of an operand that each output element reads: operands are repeated to the output's shape.
std::vector<uint32_t> repeated_indices(const ir::Shape& operand, const ir::Shape& output) {
  ir::Shape shape = operand;
  shape.dims.insert(shape.dims.begin(), output.dims.size() - shape.dims.size(), 1);
  std::vector<uint32_t> indices{0};
  for (int i = 0; i < output.rank(); ++i) {
    std::vector<uint32_t> next;
    next.reserve(indices.size() * static_cast<size_t>(output[i]));
    for (const uint32_t index : indices) {
      for (int32_t k = 0; k < output[i]; ++k) {
        next.push_back(index * static_cast<uint32_t>(shape[i]) + (shape[i] == 1 ? 0U : static_cast<uint32_t>(k)));
      }
    }
    indices = std::move(next);
  }
  return indices;
}

}  // namespace

Result<KernelPtr> prepare_equal(const Context& c) { return comparison(c, kEqual); }
Result<KernelPtr> prepare_not_equal(const Context& c) { return comparison(c, kLess | kGreater | kUnordered); }
Result<KernelPtr> prepare_greater(const Context& c) { return comparison(c, kGreater); }
Result<KernelPtr> prepare_greater_equal(const Context& c) { return comparison(c, kGreater | kEqual); }
Result<KernelPtr> prepare_less(const Context& c) { return comparison(c, kLess); }
Result<KernelPtr> prepare_less_equal(const Context& c) { return comparison(c, kLess | kEqual); }
Result<KernelPtr> prepare_logical_and(const Context& c) { return logic(c, std::logical_and<>()); }
Result<KernelPtr> prepare_logical_or(const Context& c) { return logic(c, std::logical_or<>()); }

Result<KernelPtr> prepare_logical_not(const Context& c) {
  if (c.input(0).dtype != ir::DType::boolean) return c.unsupported("type {}", ir::dtype_name(c.input(0).dtype));
  return make_kernel([in = c.input_index(0), out = c.output_index()](Tensors t) {
    std::transform(t[in].begin(), t[in].end(), t[out].begin(), [](uint8_t v) { return v == 0 ? 1 : 0; });
  });
}

Result<KernelPtr> prepare_select(const Context& c) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.output()));
  const ir::Shape& output = c.output().shape;
  constexpr size_t kMaxElems = size_t{1} << 28;
  if (elem_count(c.output()) > kMaxElems) return c.unsupported("{} elements are too many", elem_count(c.output()));
  ir::Shape condition = c.input(0).shape;
  // SELECT's list of conditions has one per row, not per column.
  const bool by_row = c.op().kind == ir::OpKind::select && condition != output && condition.rank() == 1;
  if (by_row) condition.dims.resize(output.dims.size(), 1);
  return make_kernel([bytes, which = repeated_indices(condition, output),
                      from_a = repeated_indices(c.input(1).shape, output),
                      from_b = repeated_indices(c.input(2).shape, output), condition_at = c.input_index(0),
                      a = c.input_index(1), b = c.input_index(2), out = c.output_index()](Tensors t) {
    for (size_t i = 0; i < which.size(); ++i) {
      const bool first = t[condition_at][which[i]] != 0;
      const uint8_t* from = first ? t[a].data() + from_a[i] * bytes : t[b].data() + from_b[i] * bytes;
      std::copy_n(from, bytes, t[out].data() + i * bytes);
    }
  });
}
Result<KernelPtr> prepare_select_v2(const Context& c) { return prepare_select(c); }

}  // namespace skillet::ref
