// LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM: choice of the kernel, and the float32 kernel.
#include "graph/ref/lstm.h"

#include <algorithm>

namespace skillet::ref {
namespace {

using namespace ir::lstm_operand;

float apply(ir::Activation activation, float x) {
  switch (activation) {
    case ir::Activation::relu: return std::max(x, 0.0F);
    case ir::Activation::relu_n1_to_1: return std::clamp(x, -1.0F, 1.0F);
    case ir::Activation::relu6: return std::clamp(x, 0.0F, 6.0F);
    case ir::Activation::tanh: return std::tanh(x);
    default: return x;
  }
}

float logistic(float x) { return 1.0F / (1.0F + std::exp(-x)); }

// y[r] += sum over k of weights[r][k] * x[k]
void add_product(const std::vector<float>& weights, const float* x, size_t depth, std::vector<float>& y) {
  for (size_t r = 0; r < y.size(); ++r) {
    float sum = 0;
    for (size_t k = 0; k < depth; ++k) sum += weights[r * depth + k] * x[k];
    y[r] += sum;
  }
}

void clip(std::vector<float>& values, float limit) {
  if (limit <= 0) return;
  for (float& value : values) value = std::clamp(value, -limit, limit);
}

struct FloatGate {
  std::vector<float> weights, recurrent, bias, peephole;  // empty if absent
};

struct FloatLstm {
  LstmSizes sizes;
  ir::LstmAttrs attrs;
  std::array<FloatGate, kGates> gates;
  std::vector<float> projection, projection_bias;

  // One step of one batch; `output` and `cell` are its states.
  void step(const float* input, float* output, float* cell) const;

 private:
  std::vector<float> gate(size_t index, const float* input, const float* output, const float* cell) const;
};

std::vector<float> FloatLstm::gate(size_t index, const float* input, const float* output, const float* cell) const {
  const FloatGate& gate = gates[index];
  std::vector<float> y = gate.bias;
  add_product(gate.weights, input, sizes.inputs, y);
  add_product(gate.recurrent, output, sizes.outputs, y);
  for (size_t i = 0; i < gate.peephole.size(); ++i) y[i] += gate.peephole[i] * cell[i];
  for (float& value : y) value = index == kCellGate ? apply(attrs.activation, value) : logistic(value);
  return y;
}

void FloatLstm::step(const float* input, float* output, float* cell) const {
  const auto forget = gate(kForgetGate, input, output, cell), update = gate(kCellGate, input, output, cell);
  std::vector<float> in(sizes.cells);
  if (gates[kInputGate].weights.empty()) {
    std::transform(forget.begin(), forget.end(), in.begin(), [](float f) { return 1.0F - f; });
  } else {
    in = gate(kInputGate, input, output, cell);
  }
  std::vector<float> next(sizes.cells);
  for (size_t i = 0; i < sizes.cells; ++i) next[i] = cell[i] * forget[i] + update[i] * in[i];
  clip(next, attrs.cell_clip);
  std::copy(next.begin(), next.end(), cell);
  std::vector<float> hidden = gate(kOutputGate, input, output, cell);
  for (size_t i = 0; i < sizes.cells; ++i) hidden[i] *= apply(attrs.activation, cell[i]);
  if (!projection.empty()) {
    std::vector<float> projected = projection_bias;
    projected.resize(sizes.outputs);
    add_product(projection, hidden.data(), sizes.cells, projected);
    hidden = std::move(projected);
    clip(hidden, attrs.projection_clip);
  }
  std::copy(hidden.begin(), hidden.end(), output);
}

// Values of an operand; empty if it is left out.
Result<std::vector<float>> floats(const Context& c, size_t input) {
  if (!c.has_input(input)) return std::vector<float>{};
  if (!c.input(input).is_constant() || c.input(input).dtype != ir::DType::float32) {
    return c.unsupported("input {} is not constant float32", input);
  }
  return c.input(input).values<float>();
}

}  // namespace

LstmSizes lstm_sizes(const Context& c) {
  const ir::Shape& input = c.input(kInput).shape;
  LstmSizes sizes{.inputs = static_cast<size_t>(input.back(0)),
                  .cells = dim(c.input(kInputWeights + kOutputGate), 0),
                  .outputs = dim(c.input(kRecurrentWeights + kOutputGate), 1)};
  sizes.time_major = input.rank() == 2 || c.attrs<ir::LstmAttrs>().time_major;
  sizes.batch = static_cast<size_t>(input[input.rank() == 3 && sizes.time_major ? 1 : 0]);
  if (input.rank() == 3) sizes.steps = static_cast<size_t>(input[sizes.time_major ? 0 : 1]);
  return sizes;
}

Result<KernelPtr> prepare_float_lstm(const Context& c) {
  FloatLstm op{.sizes = lstm_sizes(c), .attrs = c.attrs<ir::LstmAttrs>()};
  for (size_t i = 0; i < kGates; ++i) {
    SK_TRY_ASSIGN(op.gates[i].weights, floats(c, kInputWeights + i));
    SK_TRY_ASSIGN(op.gates[i].recurrent, floats(c, kRecurrentWeights + i));
    SK_TRY_ASSIGN(op.gates[i].bias, floats(c, kBias + i));
    if (i == kCellGate) continue;
    SK_TRY_ASSIGN(op.gates[i].peephole, floats(c, kPeepholeOf[i]));
  }
  SK_TRY_ASSIGN(op.projection, floats(c, kProjectionWeights));
  SK_TRY_ASSIGN(op.projection_bias, floats(c, kProjectionBias));
  return steps_kernel<float, float>(c, std::move(op));
}

Result<KernelPtr> prepare_lstm(const Context& c) {
  for (size_t i = 0; i < kGates; ++i) {
    if (c.has_input(kLayerNorm + i)) return c.unsupported("layer normalization");
  }
  const ir::DType type = c.input(kInput).dtype, weights = c.input(kInputWeights + kOutputGate).dtype;
  const ir::DType output_state = c.input(kOutputState).dtype, cell_state = c.input(kCellState).dtype;
  if (c.output().dtype != type || output_state != type) return c.unsupported("states of a different type");
  if (type == ir::DType::float32 && weights == type && cell_state == type) return prepare_float_lstm(c);
  if (type == ir::DType::int8 && weights == type && cell_state == ir::DType::int16) return prepare_integer_lstm(c);
  return c.unsupported("{} input, {} weights, {} cells", ir::dtype_name(type), ir::dtype_name(weights),
                       ir::dtype_name(cell_state));
}
Result<KernelPtr> prepare_unidirectional_sequence_lstm(const Context& c) { return prepare_lstm(c); }

}  // namespace skillet::ref
