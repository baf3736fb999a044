// MEAN, SUM, REDUCE_MAX and similar ops, ARG_MAX, ARG_MIN.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "graph/ref/types.h"

namespace skillet::ref {
namespace {

// Maps input elements to outputs: the output index advances by `strides` along each input dimension, 0 if reduced.
struct ReducePlan {
  std::vector<size_t> dims, strides;
  size_t outputs = 1, reduced = 1;  // elements; input elements per output element
  // Divisor of a mean; the mean of no elements is 0, the zero point.
  int64_t divisor() const { return std::max<int64_t>(static_cast<int64_t>(reduced), 1); }
  // Numbers of outputs before and after the reduced dimensions, if those are adjacent; else `inner` is 0.
  size_t outer = 1, inner = 0;

  // Calls body(input index, output index) for every input element, in order.
  template <typename Body>
  void for_each(Body body) const {
    std::vector<size_t> at(dims.size());
    size_t out = 0;
    for (size_t in = 0; in < outputs * reduced; ++in) {
      body(in, out);
      for (size_t i = dims.size(); i-- > 0;) {
        out += strides[i];
        if (++at[i] < dims[i]) break;
        out -= dims[i] * strides[i];
        at[i] = 0;
      }
    }
  }
};

Result<ReducePlan> reduce_plan(const Context& c) {
  SK_TRY_ASSIGN(const auto axes, c.constant_ints(1));
  const ir::Shape& shape = c.input(0).shape;
  std::vector<bool> reduced(shape.dims.size());
  for (int64_t axis : axes) reduced[static_cast<size_t>(axis < 0 ? axis + shape.rank() : axis)] = true;
  ReducePlan plan;
  plan.strides.resize(shape.dims.size());
  for (size_t i = shape.dims.size(); i-- > 0;) {
    const auto size = static_cast<size_t>(shape.dims[i]);
    plan.strides[i] = reduced[i] ? 0 : plan.outputs;
    (reduced[i] ? plan.reduced : plan.outputs) *= size;
  }
  plan.dims.assign(shape.dims.begin(), shape.dims.end());
  const auto first = std::find(reduced.begin(), reduced.end(), true);
  const auto end = std::find(first, reduced.end(), false);
  if (std::find(end, reduced.end(), true) != reduced.end()) return plan;
  for (auto i = reduced.begin(); i != first; ++i) plan.outer *= plan.dims[static_cast<size_t>(i - reduced.begin())];
  plan.inner = plan.outputs / plan.outer;
  return plan;
}

template <typename T, typename Acc>
void add_up(const ReducePlan& plan, const uint8_t* in, std::vector<Acc>& sums) {
  const auto value = [in](size_t i) { return static_cast<Acc>(load_le<T>(in + i * sizeof(T))); };
  if (plan.inner == 0) return plan.for_each([&](size_t from, size_t to) { sums[to] += value(from); });
  size_t from = 0;
  for (size_t o = 0; o < plan.outer; ++o) {
    Acc* to = sums.data() + o * plan.inner;
    for (size_t r = 0; r < plan.reduced; ++r, from += plan.inner) {
      for (size_t i = 0; i < plan.inner; ++i) to[i] += value(from + i);
    }
  }
}

template <typename T, typename Acc, typename Finish>
KernelPtr reduce_kernel(const Context& c, ReducePlan plan, Finish finish) {
  return make_kernel([plan = std::move(plan), finish, in = c.input_index(0), out = c.output_index()](Tensors t) {
    std::vector<Acc> sums(plan.outputs);
    add_up<T>(plan, t[in].data(), sums);
    for (size_t i = 0; i < plan.outputs; ++i) elements<T>(t[out])[i] = finish(sums[i]);
  });
}

// Mean of quantized values: the sum, scaled by a fixed-point multiplier that includes the division.
struct QuantizedMean {
  int64_t count = 1;
  int32_t input_zero_point = 0, output_zero_point = 0;
  QuantizedMultiplier by;
  Range range;

  int32_t operator()(int64_t sum) const {
    const auto centred = static_cast<int32_t>(sum - count * input_zero_point);
    const int32_t value = wrapping_add(multiply_by_quantized_multiplier(centred, by), output_zero_point);
    return std::clamp(value, range.min, range.max);
  }
};

Result<void> check_quantized(const Context& c) {
  return c.input(0).dtype == ir::DType::int16 ? c.need_int16(1) : c.need_quantized(1);
}

// finish(sum of raw values) computes each output.
template <typename Finish>
Result<KernelPtr> quantized_sums(const Context& c, const ReducePlan& plan, Finish finish) {
  return with_quantized(c.input(0).dtype, [&]<typename T>(T) {
    const auto typed = [finish](int64_t sum) { return static_cast<T>(finish(sum)); };
    constexpr size_t kFitsInt32 = size_t{1} << (sizeof(T) == 1 ? 23 : 15);
    return plan.reduced < kFitsInt32 ? reduce_kernel<T, int32_t>(c, plan, typed)
                                     : reduce_kernel<T, int64_t>(c, plan, typed);
  });
}

Result<KernelPtr> quantized_mean(const Context& c, const ReducePlan& plan) {
  SK_TRY(check_quantized(c));
  const ir::Quant &in = c.input(0).quant, &out = c.output().quant;
  const auto ratio = quantize_multiplier(static_cast<double>(in.scale()) / static_cast<double>(out.scale()));
  const QuantizedMean mean{.count = static_cast<int64_t>(plan.reduced),
                           .input_zero_point = in.zero_point(),
                           .output_zero_point = out.zero_point(),
                           .by = divide_multiplier(ratio, plan.divisor()),
                           .range = type_range(c.output().dtype)};
  return quantized_sums(c, plan, [mean](int64_t sum) { return mean(sum); });
}

// In float, as in TFLite's built-in kernels.
Result<KernelPtr> quantized_sum(const Context& c, const ReducePlan& plan) {
  SK_TRY(check_quantized(c));
  const ir::Quant &in = c.input(0).quant, &out = c.output().quant;
  const float scale = in.scale() / out.scale();
  const float zeros = static_cast<float>(-in.zero_point()) * scale * static_cast<float>(plan.reduced);
  return quantized_sums(c, plan, [=, zero = out.zero_point(), range = type_range(c.output().dtype)](int64_t sum) {
    return std::clamp(round_to_int(static_cast<float>(sum) * scale + zeros) + zero, range.min, range.max);
  });
}

// out = combine(out, value) for each value, starting with `initial`.
template <typename T, typename Combine>
KernelPtr fold_kernel(const Context& c, ReducePlan plan, T initial, Combine combine) {
  return make_kernel(
      [plan = std::move(plan), initial, combine, in = c.input_index(0), out = c.output_index()](Tensors t) {
        T* to = elements<T>(t[out]);
        std::fill_n(to, plan.outputs, initial);
        plan.for_each([&](size_t from, size_t at) { to[at] = combine(to[at], load_element<T>(t[in], from)); });
      });
}

// The extreme raw value; requires equal quantization. `better` is true if its first operand replaces the second.
template <typename Better>
Result<KernelPtr> extreme(const Context& c, Better better) {
  SK_TRY_ASSIGN(const ReducePlan plan, reduce_plan(c));
  if (c.input(0).dtype == ir::DType::boolean) return better(1, 0) ? prepare_reduce_any(c) : prepare_reduce_all(c);
  if (c.input(0).quant != c.output().quant) return c.unsupported("input and output have different quantization");
  return with_number(c, c.input(0).dtype, [&]<typename T>(T) -> Result<KernelPtr> {
    using Limits = std::numeric_limits<T>;
    const T initial = better(T{1}, T{0}) ? Limits::lowest() : Limits::max();
    return fold_kernel<T>(c, plan, initial, [better](T best, T value) { return better(value, best) ? value : best; });
  });
}

template <typename T, typename Index, typename Better>
KernelPtr arg_kernel(const Context& c, size_t outer, size_t size, size_t inner, Better better) {
  return make_kernel([=, in = c.input_index(0), out = c.output_index()](Tensors t) {
    for (size_t o = 0; o < outer * inner; ++o) {
      const size_t first = o / inner * size * inner + o % inner;
      size_t best = 0;
      for (size_t i = 1; i < size; ++i) {
        const T value = load_element<T>(t[in], first + i * inner);
        if (better(value, load_element<T>(t[in], first + best * inner))) best = i;
      }
      elements<Index>(t[out])[o] = static_cast<Index>(best);
    }
  });
}

// True and false are 1 and 0. One value other than `initial` decides.
Result<KernelPtr> reduce_booleans(const Context& c, bool initial) {
  SK_TRY_ASSIGN(const ReducePlan plan, reduce_plan(c));
  if (c.input(0).dtype != ir::DType::boolean) return c.unsupported("type {}", ir::dtype_name(c.input(0).dtype));
  return fold_kernel<uint8_t>(c, plan, initial, [initial](uint8_t so_far, uint8_t value) {
    return (value != 0) == initial ? so_far : static_cast<uint8_t>(!initial);
  });
}

}  // namespace

Result<KernelPtr> prepare_mean(const Context& c) {
  SK_TRY_ASSIGN(const ReducePlan plan, reduce_plan(c));
  if (c.input(0).dtype == ir::DType::float32) {
    return reduce_kernel<float, float>(c, plan, [n = static_cast<float>(plan.reduced)](float sum) { return sum / n; });
  }
  const auto integer_mean = [&]<typename T>(T) {
    return reduce_kernel<T, uint64_t>(
        c, plan, [n = plan.divisor()](uint64_t sum) { return static_cast<T>(static_cast<int64_t>(sum) / n); });
  };
  if (c.input(0).dtype == ir::DType::int32) return integer_mean(int32_t{});
  if (c.input(0).dtype == ir::DType::int64) return integer_mean(int64_t{});
  return quantized_mean(c, plan);
}

Result<KernelPtr> prepare_sum(const Context& c) {
  SK_TRY_ASSIGN(const ReducePlan plan, reduce_plan(c));
  if (c.input(0).dtype == ir::DType::float32) {
    return reduce_kernel<float, float>(c, plan, [](float sum) { return sum; });
  }
  const auto integer_sum = [&]<typename T>(T) {
    return reduce_kernel<T, std::make_unsigned_t<T>>(c, plan, [](auto sum) { return static_cast<T>(sum); });
  };
  if (c.input(0).dtype == ir::DType::int32) return integer_sum(int32_t{});
  if (c.input(0).dtype == ir::DType::int64) return integer_sum(int64_t{});
  if (c.input(0).dtype == ir::DType::boolean) return prepare_reduce_any(c);
  return quantized_sum(c, plan);
}

Result<KernelPtr> prepare_reduce_max(const Context& c) { return extreme(c, std::greater<>()); }
Result<KernelPtr> prepare_reduce_min(const Context& c) { return extreme(c, std::less<>()); }

Result<KernelPtr> prepare_reduce_prod(const Context& c) {
  SK_TRY_ASSIGN(const ReducePlan plan, reduce_plan(c));
  if (c.input(0).dtype == ir::DType::float32) return fold_kernel<float>(c, plan, 1, std::multiplies<>());
  if (c.input(0).dtype == ir::DType::boolean) return prepare_reduce_all(c);
  const auto integer_product = [&]<typename T>(T) {
    using U = std::make_unsigned_t<T>;
    return fold_kernel<T>(c, plan, 1, [](T x, T y) { return static_cast<T>(static_cast<U>(x) * static_cast<U>(y)); });
  };
  return with_one_of<int32_t, int64_t>(c, c.input(0).dtype, integer_product);
}

Result<KernelPtr> prepare_reduce_any(const Context& c) { return reduce_booleans(c, false); }
Result<KernelPtr> prepare_reduce_all(const Context& c) { return reduce_booleans(c, true); }

namespace {

template <typename Better>
Result<KernelPtr> prepare_arg(const Context& c, Better better) {
  SK_TRY_ASSIGN(int64_t axis, c.constant_int(1));
  const ir::Tensor& input = c.input(0);
  if (axis < 0) axis += input.shape.rank();
  size_t outer = 1, inner = 1;
  for (int i = 0; i < input.shape.rank(); ++i) {
    if (i < axis) outer *= dim(input, i);
    if (i > axis) inner *= dim(input, i);
  }
  const size_t size = dim(input, static_cast<int>(axis));
  const auto with_index = [&]<typename T>(T) -> Result<KernelPtr> {
    if (c.output().dtype == ir::DType::int64) return arg_kernel<T, int64_t>(c, outer, size, inner, better);
    return arg_kernel<T, int32_t>(c, outer, size, inner, better);
  };
  if (input.dtype == ir::DType::boolean) return with_index(uint8_t{});
  return with_one_of<float, int8_t, uint8_t, int32_t>(c, input.dtype, with_index);
}

}  // namespace

Result<KernelPtr> prepare_arg_max(const Context& c) { return prepare_arg(c, std::greater<>()); }
Result<KernelPtr> prepare_arg_min(const Context& c) { return prepare_arg(c, std::less<>()); }

}  // namespace skillet::ref
