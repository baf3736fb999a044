// What treats each channel's bytes alike (QUANTIZE, RELU6, MUL, ADD and SUB with constants) as a depthwise convolution
// of 1x1, where that gives the same byte for each of the 256: all are tried with the CPU kernels.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "passes/rewrite.h"
#include "ref/ref.h"

namespace skillet::passes {
namespace {

// Whose constants are tried with 256 bytes each.
constexpr int32_t kChannelsMax = 4096;

// byte * weight + bias, by channel, at a scale.
struct Affine {
  size_t input = 0;  // of the op: what is computed
  std::vector<int32_t> weights, biases;
  int32_t weight_zero = 0;
  float scale = 1;
  ir::Activation activation = ir::Activation::none;
};

// A constant operand by channel, less its zero point; empty: it is not that.
std::vector<int32_t> by_channel(const ir::Tensor& tensor, int32_t channels) {
  const int64_t count = tensor.shape.elems();
  if (!tensor.is_constant() || !ir::is_8bit(tensor.dtype) || tensor.quant.scales.size() != 1 ||
      (count != 1 && (count != channels || tensor.shape.back(0) != channels)))
    return {};
  std::vector<int32_t> out;
  for (int32_t i = 0; i < channels; ++i) {
    const uint8_t byte = tensor.data[count == 1 ? 0 : static_cast<size_t>(i)];
    const int32_t value = tensor.dtype == ir::DType::int8 ? static_cast<int8_t>(byte) : byte;
    out.push_back(value - tensor.quant.zero_point());
  }
  return out;
}

Affine product(const ir::Tensor& factor, std::vector<int32_t> values) {
  Affine out{.weights = std::move(values), .scale = factor.quant.scale()};
  if (factor.dtype == ir::DType::uint8) out.weight_zero = factor.quant.zero_point();
  return out;
}

// Biases count in 64ths of the input's steps.
std::optional<Affine> sum(const ir::Tensor& from, const ir::Tensor& other, const std::vector<int32_t>& values,
                          int sign_from, int sign_other) {
  constexpr int32_t kFine = 64;
  Affine out{.weights = std::vector<int32_t>(values.size(), sign_from * kFine), .scale = 1.0F / kFine};
  if (from.dtype == ir::DType::uint8) out.weight_zero = 128;
  const double step = static_cast<double>(other.quant.scale()) / static_cast<double>(from.quant.scale()) * kFine;
  for (const int32_t value : values) {
    const double bias = std::round(sign_other * value * step);
    if (!(std::abs(bias) < 1 << 20)) return std::nullopt;
    out.biases.push_back(static_cast<int32_t>(bias));
  }
  return out;
}

std::optional<Affine> with_constant(const Rewriter& rewriter, const ir::Op& op) {
  const size_t input = rewriter.tensor(op.inputs[0]).is_constant() ? 1 : 0;
  const ir::Tensor &from = rewriter.tensor(op.inputs[input]), &other = rewriter.tensor(op.inputs[1 - input]);
  const std::vector<int32_t> values = by_channel(other, from.shape.back(0));
  if (values.empty() || from.dtype != other.dtype) return std::nullopt;
  std::optional<Affine> out;
  if (op.kind == ir::OpKind::mul) out = product(other, values);
  if (op.kind == ir::OpKind::add) out = sum(from, other, values, 1, 1);
  if (op.kind == ir::OpKind::sub) out = input == 0 ? sum(from, other, values, 1, -1) : sum(from, other, values, -1, 1);
  if (!out) return std::nullopt;
  out->input = input;
  out->activation = op.as<ir::ActivationAttrs>().activation;
  return out;
}

std::optional<Affine> affine_of(const Rewriter& rewriter, const ir::Op& op) {
  const auto clamped = [&](ir::Activation activation) {
    Affine out{.weights = std::vector<int32_t>(static_cast<size_t>(rewriter.tensor(op.inputs[0]).shape.back(0)), 1)};
    out.activation = activation;
    return out;
  };
  switch (op.kind) {
    case ir::OpKind::quantize: return clamped(ir::Activation::none);
    case ir::OpKind::relu: return clamped(ir::Activation::relu);
    case ir::OpKind::relu6: return clamped(ir::Activation::relu6);
    case ir::OpKind::relu_n1_to_1: return clamped(ir::Activation::relu_n1_to_1);
    case ir::OpKind::mul:
    case ir::OpKind::add:
    case ir::OpKind::sub: return with_constant(rewriter, op);
    default: return std::nullopt;
  }
}

// Empty: a weight fits no byte.
std::optional<ir::Op> depthwise(Rewriter& rewriter, const ir::Op& old, const Affine& affine) {
  const ir::Tensor from = rewriter.tensor(old.inputs[affine.input]), to = rewriter.tensor(old.outputs[0]);
  const int32_t lowest = from.dtype == ir::DType::int8 ? -128 : 0;
  Bytes bytes, biases(4 * affine.biases.size());
  for (const int32_t weight : affine.weights) {
    const int32_t byte = weight + affine.weight_zero;
    if (byte < lowest || byte > lowest + 255) return std::nullopt;
    bytes.push_back(static_cast<uint8_t>(byte));
  }
  for (size_t i = 0; i < affine.biases.size(); ++i) store_le(biases.data() + 4 * i, affine.biases[i]);
  const auto channels = static_cast<int32_t>(affine.weights.size());
  ir::ConvAttrs attrs{.padding = ir::Padding::valid};
  attrs.activation = affine.activation;
  ir::Op op{.kind = ir::OpKind::depthwise_conv_2d, .attrs = attrs};
  op.inputs = {old.inputs[affine.input],
               rewriter.add_constant(to.name + "/factors", from.dtype, {1, 1, 1, channels}, std::move(bytes),
                                     {{affine.scale}, {affine.weight_zero}, 0}),
               ir::kNoTensor};
  if (!affine.biases.empty())
    op.inputs[2] = rewriter.add_constant(to.name + "/offsets", ir::DType::int32, {channels}, std::move(biases),
                                         {{from.quant.scale() * affine.scale}, {0}, 0});
  op.outputs = old.outputs;
  return op;
}

// What the CPU makes of each byte in each channel; empty: it has no kernel for the op.
Bytes all_results(const Rewriter& rewriter, ir::Op op, size_t input) {
  constexpr int32_t kBytes = 256;
  ir::Graph graph;
  const int32_t channels = rewriter.tensor(op.inputs[input]).shape.back(0);
  const auto add = [&](ir::TensorId& id, bool varies) {
    if (id == ir::kNoTensor) return;
    ir::Tensor tensor = rewriter.tensor(id);
    if (varies) tensor.shape = {1, 1, kBytes, channels};
    id = graph.add_tensor(std::move(tensor));
  };
  for (size_t i = 0; i < op.inputs.size(); ++i) add(op.inputs[i], i == input);
  add(op.outputs[0], true);
  graph.inputs = {op.inputs[input]};
  graph.outputs = op.outputs;
  graph.add_op(op);
  auto cpu = ref::Interpreter::create(graph);
  if (!cpu.ok()) return {};
  const std::span<uint8_t> bytes = cpu->tensor(graph.inputs[0]);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i / static_cast<size_t>(channels));
  if (!cpu->run().ok()) return {};
  const std::span<uint8_t> results = cpu->tensor(graph.outputs[0]);
  return Bytes(results.begin(), results.end());
}

// Alone on the NPU it would cost two crossings and save nothing.
bool has_neighbour(Rewriter& rewriter, ir::TensorId from, ir::TensorId to) {
  const ir::OpId producer = rewriter.producer(from);
  if (producer >= 0 && rewriter.level(producer) != Level::refused) return true;
  return std::ranges::any_of(rewriter.readers(to),
                             [&](ir::OpId reader) { return rewriter.level(reader) != Level::refused; });
}

bool rewrite(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  const auto affine = old.inputs.empty() || old.outputs.empty() ? std::nullopt : affine_of(rewriter, old);
  if (!affine) return false;
  const ir::TensorId from = old.inputs[affine->input], to = old.outputs[0];
  const ir::Tensor &in = rewriter.tensor(from), &out = rewriter.tensor(to);
  if (!is_computed_byte(in) || !is_computed_byte(out) || in.dtype != out.dtype || in.shape != out.shape ||
      in.shape.rank() != 4 || in.shape[3] > kChannelsMax || in.shape.elems() == 0 ||
      rewriter.level(id) == Level::proven || !has_neighbour(rewriter, from, to))
    return false;
  const auto op = depthwise(rewriter, old, *affine);
  if (!op) return false;
  const Bytes wanted = all_results(rewriter, old, affine->input);
  if (wanted.empty() || wanted != all_results(rewriter, *op, 0)) {
    rewriter.drop();
    return false;
  }
  return rewriter.replace({.ops = {id},
                           .kept = id,
                           .by = {*op},
                           .text = fmt::format("{} becomes DEPTHWISE_CONV_2D 1x1", ir::op_name(old))});
}

}  // namespace

Result<void> rescale_to_depthwise(ir::Graph& graph, const Target& target) {
  Rewriter rewriter(graph, target, "rescale_to_depthwise");
  for (bool changed = true; changed;) {  // one that the chip takes is a neighbour of the next
    changed = false;
    rewriter.for_each_op([&](ir::OpId id) { changed |= rewrite(rewriter, id); });
  }
  return {};
}

}  // namespace skillet::passes
