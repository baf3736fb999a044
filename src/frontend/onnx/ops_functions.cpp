// Functions of float32 that have no operation of their own, made of several.
#include <algorithm>
#include <array>
#include <cmath>

#include "frontend/onnx/file_ops.h"

namespace skillet::onnx {

using ir::OpKind;
using ir::TensorId;

namespace {

// Operations on tensors of one shape; a number is broadcast.
class Maker {
 public:
  explicit Maker(Lowering& l) : l_(l) {}

  TensorId number(float value) const { return onnx::number(l_, value); }
  float attribute(const char* name, float otherwise) const { return float_of(l_.node(), name, otherwise); }

  TensorId of(OpKind kind, TensorId x) const {
    const TensorId to = like(l_, x);
    l_.emit(kind, ir::NoAttrs{}, {x}, to);
    return to;
  }
  TensorId add(TensorId a, TensorId b) const { return arithmetic(l_, OpKind::add, a, b, like(l_, a)); }
  TensorId subtract(TensorId a, TensorId b, TensorId shape) const {
    return arithmetic(l_, OpKind::sub, a, b, like(l_, shape));
  }
  TensorId multiply(TensorId a, TensorId b) const { return arithmetic(l_, OpKind::mul, a, b, like(l_, a)); }
  TensorId multiply(TensorId a, float b) const { return b == 1 ? a : multiply(a, number(b)); }
  TensorId divide(TensorId a, TensorId b, TensorId shape) const {
    return arithmetic(l_, OpKind::div, a, b, like(l_, shape));
  }
  TensorId minimum(TensorId a, float b) const { return pick(OpKind::minimum, a, number(b)); }
  TensorId above(TensorId x, float limit) const {  // x where it is above the limit, else 0
    const TensorId is_above = l_.temporary_of(ir::DType::boolean, l_.graph.tensor(x).shape.dims), to = like(l_, x);
    l_.emit(OpKind::greater, ir::NoAttrs{}, {x, number(limit)}, is_above);
    l_.emit(OpKind::select_v2, ir::NoAttrs{}, {is_above, x, number(0)}, to);
    return to;
  }

 private:
  TensorId pick(OpKind kind, TensorId a, TensorId b) const {
    const TensorId to = like(l_, a);
    l_.emit(kind, ir::NoAttrs{}, {a, b}, to);
    return to;
  }

  Lowering& l_;
};

using Function = TensorId (*)(const Maker& m, TensorId x);

// The last operation of the function writes the output.
template <Function function>
Result<void> made(Lowering& l) {
  SK_TRY(needs_float(l));
  SK_TRY_ASSIGN(const InOut io, in_out(l));
  function(Maker(l), io.from);
  l.graph.ops.back().outputs = {io.to};
  return {};
}

TensorId softplus(const Maker& m, TensorId x) {
  const TensorId small = m.of(OpKind::exp, m.of(OpKind::neg, m.of(OpKind::abs, x)));
  return m.add(m.of(OpKind::relu, x), m.of(OpKind::log, m.add(small, m.number(1))));
}
TensorId mish(const Maker& m, TensorId x) { return m.multiply(x, m.of(OpKind::tanh, softplus(m, x))); }
TensorId softsign(const Maker& m, TensorId x) { return m.divide(x, m.add(m.of(OpKind::abs, x), m.number(1)), x); }

// x above 0, else factor * (exp(x / divisor) - 1).
TensorId exponential(const Maker& m, TensorId x, float factor, float divisor) {
  const TensorId below = m.of(OpKind::elu, m.multiply(m.minimum(x, 0), 1 / divisor));
  return m.add(m.of(OpKind::relu, x), m.multiply(below, factor));
}
TensorId elu(const Maker& m, TensorId x) { return exponential(m, x, m.attribute("alpha", 1), 1); }
TensorId celu(const Maker& m, TensorId x) {
  const float alpha = m.attribute("alpha", 1);
  return exponential(m, x, alpha, alpha);
}
TensorId selu(const Maker& m, TensorId x) {
  const TensorId y = exponential(m, x, m.attribute("alpha", 1.67326319F), 1);
  return m.multiply(y, m.number(m.attribute("gamma", 1.05070102F)));
}
TensorId thresholded_relu(const Maker& m, TensorId x) { return m.above(x, m.attribute("alpha", 1)); }
TensorId tan(const Maker& m, TensorId x) { return m.divide(m.of(OpKind::sin, x), m.of(OpKind::cos, x), x); }
TensorId reciprocal(const Maker& m, TensorId x) { return m.divide(m.number(1), x, x); }
TensorId swish(const Maker& m, TensorId x) {
  return m.multiply(x, m.of(OpKind::logistic, m.multiply(x, m.attribute("alpha", 1))));
}
TensorId hard_sigmoid(const Maker& m, TensorId x) {
  const TensorId scaled = m.multiply(x, m.number(m.attribute("alpha", 0.2F)));
  return m.of(OpKind::relu_0_to_1, m.add(scaled, m.number(m.attribute("beta", 0.5F))));
}

// Formula 7.1.26 of Abramowitz and Stegun, Handbook of Mathematical Functions: error at most 1.5e-7.
TensorId erf(const Maker& m, TensorId x) {
  const TensorId scaled = m.multiply(m.of(OpKind::abs, x), m.number(0.3275911F));
  const TensorId t = m.divide(m.number(1), m.add(scaled, m.number(1)), x);
  TensorId sum = m.multiply(t, m.number(1.061405429F));
  for (const float factor : {-1.453152027F, 1.421413741F, -0.284496736F, 0.254829592F})
    sum = m.multiply(m.add(sum, m.number(factor)), t);
  const TensorId tail = m.multiply(sum, m.of(OpKind::exp, m.of(OpKind::neg, m.of(OpKind::square, x))));
  return m.multiply(m.of(OpKind::sign, x), m.subtract(m.number(1), tail, x));
}

// alpha * a * b + beta * c, where c may have any shape.
Result<void> general_gemm(Lowering& l) {
  SK_TRY_ASSIGN(const TensorId a, l.read(0, Layout::plain));
  SK_TRY_ASSIGN(const TensorId b, l.read(1, Layout::plain));
  SK_TRY_ASSIGN(const TensorId to, l.write(0, Layout::plain));
  const Maker m(l);
  const TensorId product = like(l, to);
  l.emit(OpKind::batch_matmul,
         ir::BatchMatmulAttrs{.transpose_a = int_of(l.node(), "transA", 0) != 0,
                              .transpose_b = int_of(l.node(), "transB", 0) != 0},
         {a, b}, product);
  const TensorId scaled = m.multiply(product, m.number(m.attribute("alpha", 1)));
  if (l.input(2) != nullptr) {
    SK_TRY_ASSIGN(const TensorId plus, l.read(2, Layout::plain));
    m.add(scaled, m.multiply(plus, m.attribute("beta", 1)));
  }
  l.graph.ops.back().outputs = {to};
  return {};
}

// As a layer with a bias for each channel, if it is one.
Result<void> gemm(Lowering& l) {
  const auto value = [&](size_t i) { return l.input(i) == nullptr ? nullptr : &l.model().value(l.input(i)->value); };
  const auto is_float = [&](size_t i) { return value(i) == nullptr || value(i)->dtype == ir::DType::float32; };
  SK_TRY_ASSIGN(const auto out, l.dims(l.unit().outputs.at(0).value));
  const bool has_bias_by_channel =
      value(2) == nullptr || (value(2)->is_constant && value(2)->dims == std::vector<int64_t>{out.back()});
  const bool is_layer = has_bias_by_channel && float_of(l.node(), "alpha", 1) == 1 &&
                        float_of(l.node(), "beta", 1) == 1 && int_of(l.node(), "transA", 0) == 0;
  if (!is_layer && is_float(0) && is_float(1) && is_float(2) && l.unit().activation == ir::Activation::none)
    return general_gemm(l);
  return std::ranges::find(weighted_ops(), std::string_view("Gemm"), &LowerRow::op)->lower(l);
}

constexpr std::array kRows = {
    LowerRow{"Softplus", made<softplus>},
    LowerRow{"Softsign", made<softsign>},
    LowerRow{"Mish", made<mish>},
    LowerRow{"Elu", made<elu>},
    LowerRow{"Celu", made<celu>},
    LowerRow{"Selu", made<selu>},
    LowerRow{"ThresholdedRelu", made<thresholded_relu>},
    LowerRow{"Tan", made<tan>},
    LowerRow{"Reciprocal", made<reciprocal>},
    LowerRow{"Swish", made<swish>},
    LowerRow{"HardSigmoid", made<hard_sigmoid>},
    LowerRow{"Erf", made<erf>},
    LowerRow{"Gemm", gemm, true},
};

}  // namespace

std::span<const LowerRow> function_ops() { return kRows; }

}  // namespace skillet::onnx
