// LSTM in integers: 8-bit inputs, weights and outputs, 16-bit cells and gates, like TFLite's 8x8_16.
#include <algorithm>
#include <limits>

#include "graph/ref/fixed_int16.h"
#include "graph/ref/lstm.h"

namespace skillet::ref {
namespace {

using namespace ir::lstm_operand;

constexpr int kGateIntegerBits = 3;  // gates are Q3.12 before their activation

int16_t saturate16(int32_t x) { return static_cast<int16_t>(std::clamp<int32_t>(x, INT16_MIN, INT16_MAX)); }
int8_t saturate8(int32_t x) { return static_cast<int8_t>(std::clamp<int32_t>(x, INT8_MIN, INT8_MAX)); }

// Rows of int8 weights; the bias includes the contribution of the other operand's zero point.
struct IntegerRows {
  std::vector<int8_t> weights;
  std::vector<int32_t> bias;
  QuantizedMultiplier by;

  // The scaled sum of row `r` times `x`.
  int32_t dot(size_t r, const int8_t* x) const {
    const size_t depth = weights.size() / bias.size();
    int32_t sum = bias[r];
    for (size_t k = 0; k < depth; ++k) sum = wrapping_add(sum, weights[r * depth + k] * x[k]);
    return multiply_by_quantized_multiplier(sum, by);
  }
};

struct IntegerGate {
  IntegerRows input, recurrent;
  std::vector<int16_t> peephole;  // empty if absent
  QuantizedMultiplier peephole_by;

  bool empty() const { return input.bias.empty(); }
};

struct IntegerLstm {
  LstmSizes sizes;
  std::array<IntegerGate, kGates> gates;
  int cell_exponent = 0;  // a cell's unit is 2^cell_exponent
  int32_t cell_clip = 0, projection_clip = 0;
  QuantizedMultiplier hidden_by;
  int32_t hidden_zero_point = 0, output_zero_point = 0;
  IntegerRows projection;  // empty if absent

  void step(const int8_t* input, int8_t* output, int16_t* cell) const;

 private:
  std::vector<int16_t> gate(size_t index, const int8_t* input, const int8_t* output, const int16_t* cell) const;
  void update(const std::vector<int16_t>& forget, const std::vector<int16_t>& update, const std::vector<int16_t>& input,
              int16_t* cell) const;
  void project(const std::vector<int8_t>& hidden, int8_t* output) const;
};

std::vector<int16_t> IntegerLstm::gate(size_t index, const int8_t* input, const int8_t* output,
                                       const int16_t* cell) const {
  const IntegerGate& gate = gates[index];
  std::vector<int16_t> y(sizes.cells);
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = saturate16(gate.input.dot(i, input));
    y[i] = saturate16(wrapping_add(gate.recurrent.dot(i, output), y[i]));
    if (!gate.peephole.empty()) {
      const int32_t seen = multiply_by_quantized_multiplier(gate.peephole[i] * cell[i], gate.peephole_by);
      y[i] = saturate16(wrapping_add(seen, y[i]));
    }
    y[i] = index == kCellGate ? fixed_tanh(y[i], kGateIntegerBits) : fixed_logistic(y[i], kGateIntegerBits);
  }
  return y;
}

void IntegerLstm::update(const std::vector<int16_t>& forget, const std::vector<int16_t>& update,
                         const std::vector<int16_t>& input, int16_t* cell) const {
  for (size_t i = 0; i < sizes.cells; ++i) {
    const auto kept = static_cast<int16_t>(rounding_divide_by_pot(forget[i] * cell[i], 15));
    const auto added = static_cast<int16_t>(rounding_divide_by_pot(input[i] * update[i], 30 + cell_exponent));
    cell[i] = saturate16(kept + added);
    if (cell_clip > 0) cell[i] = static_cast<int16_t>(std::clamp<int32_t>(cell[i], -cell_clip, cell_clip));
  }
}

void IntegerLstm::project(const std::vector<int8_t>& hidden, int8_t* output) const {
  for (size_t i = 0; i < sizes.outputs; ++i) {
    output[i] = saturate8(wrapping_add(projection.dot(i, hidden.data()), output_zero_point));
    if (projection_clip > 0) {
      output[i] = static_cast<int8_t>(std::clamp<int32_t>(output[i], -projection_clip, projection_clip));
    }
  }
}

void IntegerLstm::step(const int8_t* input, int8_t* output, int16_t* cell) const {
  const auto forget = gate(kForgetGate, input, output, cell), added = gate(kCellGate, input, output, cell);
  std::vector<int16_t> in(sizes.cells);
  if (gates[kInputGate].empty()) {
    std::transform(forget.begin(), forget.end(), in.begin(),
                   [](int16_t f) { return static_cast<int16_t>(INT16_MAX - f); });
  } else {
    in = gate(kInputGate, input, output, cell);
  }
  update(forget, added, in, cell);
  const auto out = gate(kOutputGate, input, output, cell);
  std::vector<int8_t> hidden(sizes.cells);
  for (size_t i = 0; i < sizes.cells; ++i) {
    const int32_t product = out[i] * fixed_tanh(cell[i], 15 + cell_exponent);
    hidden[i] = saturate8(wrapping_add(multiply_by_quantized_multiplier(product, hidden_by), hidden_zero_point));
  }
  if (projection.bias.empty()) {
    std::copy(hidden.begin(), hidden.end(), output);
  } else {
    project(hidden, output);
  }
}

// A constant operand; empty if it is left out.
template <typename T>
Result<std::vector<T>> constants(const Context& c, size_t input, ir::DType dtype) {
  if (!c.has_input(input)) return std::vector<T>{};
  if (!c.input(input).is_constant() || c.input(input).dtype != dtype || c.input(input).quant.per_channel()) {
    return c.unsupported("input {} is not constant {} of one scale", input, ir::dtype_name(dtype));
  }
  return c.input(input).values<T>();
}

// Weights to multiply with values of `zero_point`; `bias` may be an operand that is left out.
Result<IntegerRows> integer_rows(const Context& c, size_t weights, size_t bias, int32_t zero_point, float scale) {
  IntegerRows rows{.by = quantize_multiplier(static_cast<double>(scale))};
  SK_TRY_ASSIGN(rows.weights, constants<int8_t>(c, weights, ir::DType::int8));
  if (c.input(weights).quant.zero_point() != 0) return c.unsupported("weights with a zero point");
  SK_TRY_ASSIGN(rows.bias, constants<int32_t>(c, bias, ir::DType::int32));
  const size_t count = dim(c.input(weights), 0), depth = rows.weights.size() / count;
  rows.bias.resize(count);
  for (size_t r = 0; r < count; ++r) {
    int32_t sum = 0;
    for (size_t k = 0; k < depth; ++k) sum += rows.weights[r * depth + k];
    rows.bias[r] = wrapping_add(rows.bias[r], -zero_point * sum);
  }
  return rows;
}

float scale_of(const Context& c, size_t input) { return c.input(input).quant.scale(); }

Result<IntegerGate> integer_gate(const Context& c, size_t index, double cell_scale) {
  IntegerGate gate;
  const size_t weights = kInputWeights + index, recurrent = kRecurrentWeights + index;
  if (!c.has_input(weights)) return gate;
  const float unit = std::ldexp(1.0F, kGateIntegerBits - 15);
  SK_TRY_ASSIGN(gate.input, integer_rows(c, weights, kBias + index, c.input(kInput).quant.zero_point(),
                                         scale_of(c, weights) * scale_of(c, kInput) / unit));
  SK_TRY_ASSIGN(gate.recurrent, integer_rows(c, recurrent, kLayerNorm, c.input(kOutputState).quant.zero_point(),
                                             scale_of(c, recurrent) * scale_of(c, kOutputState) / unit));
  const size_t peephole = kPeepholeOf[index];
  if (peephole == SIZE_MAX || !c.has_input(peephole)) return gate;
  SK_TRY_ASSIGN(gate.peephole, constants<int16_t>(c, peephole, ir::DType::int16));
  gate.peephole_by = quantize_multiplier(
      static_cast<float>(cell_scale * static_cast<double>(scale_of(c, peephole)) / static_cast<double>(unit)));
  return gate;
}

// The exponent of the cells' scale, which TFLite requires to be a power of two.
Result<int> cell_exponent(const Context& c) {
  int exponent = 0;
  const float scale = scale_of(c, kCellState);
  if (std::frexp(scale, &exponent) != 0.5F) return c.unsupported("cells with scale {}", scale);
  --exponent;
  constexpr int kLowest = -15, kHighest = -9;  // 0 to 6 integer bits
  if (exponent < kLowest || exponent > kHighest) return c.unsupported("cells with scale {}", scale);
  return exponent;
}

int32_t quantized_clip(float clip, float scale, int32_t max) {
  return clip > 0 ? static_cast<int32_t>(std::min(clip / scale, static_cast<float>(max))) : 0;
}

}  // namespace

Result<KernelPtr> prepare_integer_lstm(const Context& c) {
  const auto& attrs = c.attrs<ir::LstmAttrs>();
  SK_TRY(c.need_quantized(c.input(kInput)));
  SK_TRY(c.need_quantized(c.input(kOutputState)));
  if (attrs.hidden_scale <= 0) return c.unsupported("the hidden state has no quantization");
  IntegerLstm op{.sizes = lstm_sizes(c)};
  SK_TRY_ASSIGN(op.cell_exponent, cell_exponent(c));
  const double cell_scale = std::ldexp(1.0, op.cell_exponent);
  for (size_t i = 0; i < kGates; ++i) SK_TRY_INTO(op.gates[i], integer_gate(c, i, cell_scale));
  const ir::Quant& output = c.input(kOutputState).quant;
  op.cell_clip = quantized_clip(attrs.cell_clip, scale_of(c, kCellState), INT16_MAX);
  op.projection_clip = quantized_clip(attrs.projection_clip, output.scale(), INT8_MAX);
  const double unit = std::ldexp(1.0, -15);
  op.hidden_by = quantize_multiplier(static_cast<float>(unit / static_cast<double>(attrs.hidden_scale) * unit));
  op.hidden_zero_point = attrs.hidden_zero_point;
  op.output_zero_point = output.zero_point();
  if (c.has_input(kProjectionWeights))
    SK_TRY_INTO(op.projection, integer_rows(c, kProjectionWeights, kProjectionBias, attrs.hidden_zero_point,
                                            scale_of(c, kProjectionWeights) * attrs.hidden_scale / output.scale()));
  return steps_kernel<int8_t, int16_t>(c, std::move(op));
}

}  // namespace skillet::ref
