// Ops that treat all bytes of a channel alike (QUANTIZE, RELU6, MUL, ADD and SUB with constants) become a 1x1 depthwise
// convolution, if it gives the same byte for each of the 256. All are tested with the CPU kernels; a result within a
// step is accepted where the options allow it.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "graph/passes/lower/affine.h"
#include "graph/passes/lower/pointwise.h"

namespace skillet::passes {
namespace {

struct Affine {
  size_t input = 0;  // index of the op's computed input
  Factors factors;
};

Factors product(const ir::Tensor& factor, std::vector<int32_t> values) {
  Factors out{.weights = std::move(values), .biases = {}, .scale = factor.quant.scale()};
  if (factor.dtype == ir::DType::uint8) out.weight_zero = factor.quant.zero_point();
  return out;
}

// Biases are in 64ths of the input's steps; nothing if they are too large.
std::optional<Factors> sum(const ir::Tensor& from, const ir::Tensor& other, const std::vector<int32_t>& values,
                           int sign_from, int sign_other) {
  Factors out = ones(static_cast<int32_t>(values.size()), sign_from);
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
  std::optional<Factors> out;
  if (op.kind == ir::OpKind::mul) out = product(other, values);
  if (op.kind == ir::OpKind::add) out = sum(from, other, values, 1, 1);
  if (op.kind == ir::OpKind::sub) out = input == 0 ? sum(from, other, values, 1, -1) : sum(from, other, values, -1, 1);
  if (!out) return std::nullopt;
  out->activation = op.as<ir::ActivationAttrs>().activation;
  return Affine{input, std::move(*out)};
}

std::optional<Affine> affine_of(const Rewriter& rewriter, const ir::Op& op) {
  const auto clamped = [&](ir::Activation activation) {
    Affine out;
    out.factors.weights.assign(static_cast<size_t>(rewriter.tensor(op.inputs[0]).shape.back(0)), 1);
    out.factors.activation = activation;
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

// Rewrites to a result within a step, where the options allow it.
bool rewrite_closely(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  const ir::TensorId from = rewriter.may_be_off() ? affine_input(rewriter, old) : ir::kNoTensor;
  if (from == ir::kNoTensor || rewriter.level(id) == Level::proven || !rewriter.has_neighbour(id, from, old.outputs[0]))
    return false;
  std::vector<ir::Op> by = affine_within_a_step(rewriter, {old});
  if (by.empty()) {
    rewriter.drop();
    return false;
  }
  std::string text = fmt::format("{} becomes {} 1x1", ir::op_name(old), affine_name(by));
  return rewriter.replace(id, std::move(by), std::move(text), 1);
}

bool rewrite(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  const auto affine = old.inputs.empty() || old.outputs.empty() ? std::nullopt : affine_of(rewriter, old);
  if (!affine) return rewrite_closely(rewriter, id);
  const ir::TensorId from = old.inputs[affine->input], to = old.outputs[0];
  if (rewriter.level(id) == Level::proven || !rewriter.has_neighbour(id, from, to)) return false;
  if (!is_pointwise(rewriter.tensor(from), rewriter.tensor(to))) return rewrite_closely(rewriter, id);
  const auto op = pointwise(rewriter, from, to, affine->factors);
  if (op && rewriter.same_bytes({old}, {*op}, from, to)) {
    std::string text = fmt::format("{} becomes DEPTHWISE_CONV_2D 1x1", ir::op_name(old));
    if (rewriter.replace(id, {*op}, std::move(text))) return true;
  } else {
    rewriter.drop();
  }
  return rewrite_closely(rewriter, id);
}

}  // namespace

void lower_rescale_as_depthwise(ir::Graph& graph, const Target& target) {
  Rewriter rewriter(graph, target, "lower_rescale_as_depthwise");
  for (bool changed = true; changed;) {  // an op that the chip supports is a neighbour of the next one
    changed = false;
    rewriter.for_each_op([&](ir::OpId id) { changed |= rewrite(rewriter, id); });
  }
}

}  // namespace skillet::passes
