// SVDF: filters that are a product of a filter over features and one over time. Float, float with int8 weights, and
// integer kernels: 8-bit inputs and outputs, 16-bit states and time weights.
#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "graph/ref/hybrid.h"
#include "graph/ref/kernel.h"

namespace skillet::ref {
namespace {

constexpr size_t kInput = 0, kFeatures = 1, kTime = 2, kBias = 3, kState = 4;

struct Sizes {
  size_t batches = 0, inputs = 0, filters = 0, memory = 0, units = 0;

  size_t rank() const { return filters / units; }
};

Sizes sizes_of(const Context& c) {
  const ir::Tensor &input = c.input(kInput), &time = c.input(kTime);
  return {dim(input, 0), dim(input, 1), dim(time, 0), dim(time, 1), dim(c.output(), 1)};
}

// Drops the oldest value of each filter's memory; the newest is the last.
template <typename T>
void forget_oldest(T* state, size_t count) {
  std::copy(state + 1, state + count, state);
}

template <typename T>
Result<std::vector<T>> constants(const Context& c, size_t input) {
  if (c.input(input).is_constant()) return c.input(input).values<T>();
  return c.unsupported("input {} is not constant", input);
}

// Sums over the memory of each filter, then over the filters of a unit; `state` is the state of one batch.
void finish_floats(const Sizes& n, const std::vector<float>& time, const std::vector<float>& bias,
                   const std::optional<FloatRange>& range, const float* state, float* out) {
  for (size_t u = 0; u < n.units; ++u) {
    float sum = bias.empty() ? 0.0F : bias[u];
    for (size_t f = u * n.rank(); f < (u + 1) * n.rank(); ++f) {
      float product = 0;
      for (size_t m = 0; m < n.memory; ++m) product += time[f * n.memory + m] * state[f * n.memory + m];
      sum += product;
    }
    out[u] = range ? std::max(range->min, std::min(sum, range->max)) : sum;
  }
}

// Shared by both float kernels, which differ in `feature(in, sums)`: the products of one batch with the filters.
template <typename Feature>
Result<KernelPtr> float_kernel(const Context& c, std::vector<float> time, Feature feature) {
  if (c.output().dtype != ir::DType::float32 || c.input(kState).dtype != ir::DType::float32)
    return c.unsupported("float32 input, {} state, {} output", ir::dtype_name(c.input(kState).dtype),
                         ir::dtype_name(c.output().dtype));
  std::vector<float> bias;
  if (c.has_input(kBias)) {
    if (c.input(kBias).dtype != ir::DType::float32) return c.unsupported("a bias that is not float32");
    SK_TRY_ASSIGN(bias, constants<float>(c, kBias));
  }
  std::optional<FloatRange> range;  // none: NaN stays too
  const ir::Activation activation = c.attrs<ir::SvdfAttrs>().activation;
  if (activation != ir::Activation::none) {
    SK_TRY_ASSIGN(range, float_activation_range(c, activation));
    if (activation == ir::Activation::relu) range->max = std::numeric_limits<float>::infinity();
  }
  return make_kernel([=, n = sizes_of(c), in = c.input_index(kInput), state = c.input_index(kState),
                      out = c.output_index(), sums = std::vector<float>(sizes_of(c).filters)](Tensors t) mutable {
    auto* states = elements<float>(t[state]);
    forget_oldest(states, n.batches * n.filters * n.memory);
    for (size_t b = 0; b < n.batches; ++b, states += n.filters * n.memory) {
      feature(elements<const float>(t[in]) + b * n.inputs, sums);
      for (size_t f = 0; f < n.filters; ++f) states[(f + 1) * n.memory - 1] = sums[f];
      finish_floats(n, time, bias, range, states, elements<float>(t[out]) + b * n.units);
    }
  });
}

Result<KernelPtr> prepare_float(const Context& c) {
  if (c.input(kTime).dtype != ir::DType::float32) return c.unsupported("weights of two types");
  SK_TRY_ASSIGN(std::vector<float> features, constants<float>(c, kFeatures));
  SK_TRY_ASSIGN(std::vector<float> time, constants<float>(c, kTime));
  const size_t inputs = sizes_of(c).inputs;
  return float_kernel(c, std::move(time), [features = std::move(features), inputs](const float* in, auto& sums) {
    for (size_t f = 0; f < sums.size(); ++f) {
      sums[f] = 0;
      for (size_t i = 0; i < inputs; ++i) sums[f] += features[f * inputs + i] * in[i];
    }
  });
}

// Time weights in bytes become floats; each batch has its own scale.
Result<KernelPtr> prepare_hybrid(const Context& c) {
  SK_TRY(need_hybrid_weights(c, kFeatures, 1));
  SK_TRY(need_hybrid_weights(c, kTime, 1));
  SK_TRY_ASSIGN(const std::vector<int8_t> stored, constants<int8_t>(c, kTime));
  std::vector<float> time(stored.size());
  const float time_scale = c.input(kTime).quant.scale();
  std::ranges::transform(stored, time.begin(), [&](int8_t w) { return static_cast<float>(w) * time_scale; });
  SK_TRY_ASSIGN(std::vector<int8_t> features, constants<int8_t>(c, kFeatures));
  return float_kernel(c, std::move(time),
                      [features = std::move(features), scale = c.input(kFeatures).quant.scale(),
                       asymmetric = c.attrs<ir::SvdfAttrs>().asymmetric_inputs,
                       bytes = std::vector<int8_t>(sizes_of(c).inputs)](const float* in, auto& sums) mutable {
                        const InputQuant quant = quantize_input(in, bytes.size(), asymmetric, bytes.data());
                        for (size_t f = 0; f < sums.size(); ++f) {
                          int32_t sum = 0;
                          for (size_t i = 0; i < bytes.size(); ++i)
                            sum += features[f * bytes.size() + i] * (bytes[i] - quant.zero_point);
                          sums[f] = static_cast<float>(sum) * (quant.scale * scale);
                        }
                      });
}

struct IntegerSvdf {
  Sizes n;
  std::vector<int8_t> features;
  std::vector<int16_t> time;
  std::vector<int32_t> bias;  // empty if absent
  int32_t input_zero_point = 0, output_zero_point = 0;
  QuantizedMultiplier to_state, to_output;

  void see(const int8_t* in, int16_t* state) const {
    for (size_t f = 0; f < n.filters; ++f) {
      int32_t sum = 0;
      for (size_t i = 0; i < n.inputs; ++i)
        sum = wrapping_add(sum, features[f * n.inputs + i] * (in[i] - input_zero_point));
      const int32_t value = multiply_by_quantized_multiplier(sum, to_state);
      state[(f + 1) * n.memory - 1] = static_cast<int16_t>(std::clamp<int32_t>(value, INT16_MIN, INT16_MAX));
    }
  }
  void finish(const int16_t* state, int8_t* out) const {
    for (size_t u = 0; u < n.units; ++u) {
      int32_t sum = bias.empty() ? 0 : bias[u];
      for (size_t i = u * n.rank() * n.memory; i < (u + 1) * n.rank() * n.memory; ++i)
        sum = wrapping_add(sum, time[i] * state[i]);
      const int32_t value = wrapping_add(multiply_by_quantized_multiplier(sum, to_output), output_zero_point);
      out[u] = static_cast<int8_t>(std::clamp<int32_t>(value, INT8_MIN, INT8_MAX));
    }
  }
};

Result<KernelPtr> prepare_integers(const Context& c) {
  const ir::Tensor &input = c.input(kInput), &features = c.input(kFeatures), &time = c.input(kTime);
  const ir::Tensor &state = c.input(kState), &output = c.output();
  SK_TRY(c.need_quantized(input));
  SK_TRY(c.need_quantized(output));
  for (const ir::Tensor* one : {&features, &time, &state}) {
    if (one->quant.scales.size() != 1 || one->quant.zero_point() != 0)
      return c.unsupported("{} scales or a zero point of '{}'", one->quant.scales.size(), one->name);
  }
  const bool types = features.dtype == ir::DType::int8 && time.dtype == ir::DType::int16 &&
                     state.dtype == ir::DType::int16 && output.dtype == ir::DType::int8;
  if (!types)
    return c.unsupported("int8 input, {} features, {} time, {} state, {} output", ir::dtype_name(features.dtype),
                         ir::dtype_name(time.dtype), ir::dtype_name(state.dtype), ir::dtype_name(output.dtype));
  IntegerSvdf op{.n = sizes_of(c),
                 .input_zero_point = input.quant.zero_point(),
                 .output_zero_point = output.quant.zero_point(),
                 .to_state = quantize_multiplier(input.quant.scale() * features.quant.scale() / state.quant.scale()),
                 .to_output = quantize_multiplier(state.quant.scale() * time.quant.scale() / output.quant.scale())};
  SK_TRY_ASSIGN(op.features, constants<int8_t>(c, kFeatures));
  SK_TRY_ASSIGN(op.time, constants<int16_t>(c, kTime));
  if (c.has_input(kBias)) {
    if (c.input(kBias).dtype != ir::DType::int32) return c.unsupported("a bias that is not int32");
    SK_TRY_ASSIGN(op.bias, constants<int32_t>(c, kBias));
  }
  return make_kernel([op = std::move(op), in = c.input_index(kInput), state = c.input_index(kState),
                      out = c.output_index()](Tensors t) {
    auto* states = elements<int16_t>(t[state]);
    forget_oldest(states, op.n.batches * op.n.filters * op.n.memory);
    for (size_t b = 0; b < op.n.batches; ++b, states += op.n.filters * op.n.memory) {
      op.see(elements<const int8_t>(t[in]) + b * op.n.inputs, states);
      op.finish(states, elements<int8_t>(t[out]) + b * op.n.units);
    }
  });
}

}  // namespace

Result<KernelPtr> prepare_svdf(const Context& c) {
  const ir::DType input = c.input(kInput).dtype, features = c.input(kFeatures).dtype;
  if (is_hybrid(c, kInput, kFeatures)) return prepare_hybrid(c);
  if (input == ir::DType::float32 && features == input) return prepare_float(c);
  if (input == ir::DType::int8) return prepare_integers(c);
  return c.unsupported("{} input, {} features", ir::dtype_name(input), ir::dtype_name(features));
}

}  // namespace skillet::ref
