// ADD, SUB, MUL, MAXIMUM, MINIMUM (hardware specification, section 4.9), and PRELU, composed of them.
#include <algorithm>
#include <cmath>

#include "base/fixed_point.h"
#include "npu/driver.h"
#include "npus/ethosu/compiler/lower.h"

namespace skillet::npus::ethosu {
namespace {

using ir::OpKind;
using npu::Remedy;
using npu::Support;

constexpr int kOperandBits = 20, kWideOperandBits = 15;  // left shift of the operands of ADD and SUB

class Pair {
 public:
  Pair(const ir::Graph& graph, ir::OpId id) : graph_(graph), op_(graph.op(id)) { operation_.op = id; }

  Lowered run() {
    for (const ir::TensorId id : {op_.inputs[0], op_.inputs[1], op_.outputs[0]})
      if (Support one = op_.kind == OpKind::prelu ? is_quantized(graph_.tensor(id)) : is_activation(graph_.tensor(id));
          !one.ok)
        return one;
    if (Support one = set_operands(); !one.ok) return one;
    if (op_.kind == OpKind::prelu) return prelu();
    return op_.kind == OpKind::maximum || op_.kind == OpKind::minimum ? pick() : arithmetic();
  }

 private:
  const ir::Tensor& input() const { return graph_.tensor(op_.inputs[0]); }
  const ir::Tensor& output() const { return graph_.tensor(op_.outputs[0]); }
  Lowered made() { return std::vector<Operation>{std::move(operation_)}; }

  // The operand with the output's shape is the chip's first; the other one may be repeated along axes.
  Support set_operands() {
    const ir::Tensor &a = input(), &b = graph_.tensor(op_.inputs[1]);
    const int64_t elems = output().shape.elems();
    operation_.is_swapped = a.shape.elems() != elems;
    const ir::TensorId large = op_.inputs[operation_.is_swapped ? 1 : 0];
    const ir::TensorId small = op_.inputs[operation_.is_swapped ? 0 : 1];
    if (graph_.tensor(large).shape.elems() != elems)
      return Support::no(Remedy::shapes, "'{}' and '{}' are both repeated; the chip repeats one of them", a.name,
                         b.name);
    const auto all = whole_of(graph_, op_.outputs[0]);
    if (!all) return too_large(output());
    operation_.output = *all;
    const Map& out = operation_.output;
    operation_.input = {.tensor = large,
                        .height = out.height,
                        .width = out.width,
                        .depth = out.depth,
                        .stride_y = out.stride_y,
                        .stride_x = out.stride_x,
                        .is_signed = out.is_signed,
                        .zero_point = graph_.tensor(large).quant.zero_point(),
                        .precision = out.precision};
    const auto second = whole_of(graph_, small);
    if (!second) return too_large(graph_.tensor(small));
    operation_.input2 = *second;
    if (graph_.tensor(small).shape.elems() == elems) {
      operation_.input2 = operation_.input;
      operation_.input2.tensor = small, operation_.input2.zero_point = graph_.tensor(small).quant.zero_point();
      return Support::yes();
    }
    const auto fits = [](uint32_t size, uint32_t whole) { return size == whole || size == 1; };
    if (!fits(second->height, out.height) || !fits(second->width, out.width) || !fits(second->depth, out.depth))
      return Support::no(Remedy::shapes, "'{}', {}, is repeated along images but not along rows",
                         graph_.tensor(small).name, graph_.tensor(small).shape.to_string());
    return Support::yes();
  }

  Lowered arithmetic() {
    if (Support one = set_limits(op_.as<ir::ActivationAttrs>().activation, output(), operation_); !one.ok) return one;
    const float a = input().quant.scale(), b = graph_.tensor(op_.inputs[1]).quant.scale(), out = output().quant.scale();
    const double twice_max = 2 * std::max(a, b);
    const bool is_product = op_.kind == OpKind::mul;
    // Float and double as in the reference kernels.
    const bool is_wide = operation_.is_wide();
    const int bits = is_wide ? kWideOperandBits : kOperandBits;
    const auto by =
        is_product ? quantize_multiplier(a * b / out) : quantize_multiplier(twice_max / ((1 << bits) * out));
    if (by.shift > (is_product && !is_wide ? kLeftMax - 8 : 0)) return too_steep(output());
    if (is_wide && !is_product && shifts_instead())
      return Support::no(Remedy::form, "its scales are powers of two: TensorFlow Lite's kernel shifts one operand");
    operation_.scale = scale_of(by);
    if (is_product) {
      operation_.unit = Unit::mul;
      return made();
    }
    operation_.unit = op_.kind == OpKind::add ? Unit::add : Unit::sub;
    // The operand with the smaller scale is scaled, the other is shifted.
    const bool scales_a = a < b;
    operation_.operand_scale = scales_a ? hw::OperandScale::a_32 : hw::OperandScale::b_32;
    operation_.operand = scale_of(quantize_multiplier(std::min(a, b) / twice_max));
    operation_.operand.shift -= static_cast<uint32_t>(bits);
    return made();
  }

  // True where the reference kernel of int16 shifts one operand, which rounds twice.
  bool shifts_instead() const {
    const float a = input().quant.scale(), b = graph_.tensor(op_.inputs[1]).quant.scale(), out = output().quant.scale();
    const auto is_power = [](float scale) {
      int exponent = 0;
      return std::frexp(scale, &exponent) == 0.5F;
    };
    return op_.as<ir::ActivationAttrs>().pot_scale_int16 && is_power(a) && is_power(b) && is_power(out) &&
           !(a == out && b == out);
  }

  // Bytes are compared without scaling.
  Lowered pick() {
    operation_.unit = op_.kind == OpKind::minimum ? Unit::min : Unit::max;
    operation_.input.zero_point = operation_.input2.zero_point = operation_.output.zero_point = 0;
    set_type_range(output(), operation_);
    return made();
  }

  // Negative values times their factors, and positive values; one part is always zero, so their sum adds no rounding.
  Lowered prelu() {
    const ir::Quant &in = input().quant, &alpha = graph_.tensor(op_.inputs[1]).quant, &out = output().quant;
    if (operation_.is_swapped)
      return Support::no(Remedy::shapes, "'{}' is repeated along axes of its factors", input().name);
    const auto identity = quantize_multiplier(in.scale() / out.scale());
    const auto slope = quantize_multiplier(in.scale() * alpha.scale() / out.scale());
    if (std::max(identity.shift, slope.shift) > kLeftMax - 8) return too_steep(output());
    const Map x = operation_.input;
    auto scratch = [&, at = static_cast<ir::TensorId>(graph_.tensors.size())](hw::Precision precision) mutable {
      Map map = x;
      map.tensor = at++, map.precision = precision;
      if (precision == hw::Precision::bits_8) return map;
      map.stride_x *= 2, map.stride_y *= 2, map.is_signed = true, map.zero_point = 0;
      return map;
    };
    const Map below = scratch(hw::Precision::bits_8);
    const Map scaled_below = scratch(hw::Precision::bits_16), scaled_above = scratch(hw::Precision::bits_16);
    Operation cut = make_copy(operation_.op, x, below);
    set_type_range(input(), cut);
    cut.most = in.zero_point();
    Operation times = operation_;
    times.unit = Unit::mul, times.scale = scale_of(slope);
    times.input = below, times.output = scaled_below;
    times.least = INT16_MIN, times.most = INT16_MAX;
    Operation above = make_copy(operation_.op, x, scaled_above);
    above.input.zero_point = in.zero_point();
    above.rounding = hw::Rounding::twice, above.scale = scale_of(identity);
    above.least = 0, above.most = INT16_MAX;
    Operation sum = operation_;
    sum.unit = Unit::add, sum.rounding = hw::Rounding::natural;
    sum.input = scaled_below, sum.input2 = scaled_above;
    set_type_range(output(), sum);
    const uint64_t elems = static_cast<uint64_t>(output().shape.elems());
    Lowered made(std::vector<Operation>{std::move(cut), std::move(times), std::move(above), std::move(sum)});
    made.scratch_bytes = {elems, 2 * elems, 2 * elems};
    return made;
  }

  const ir::Graph& graph_;
  const ir::Op& op_;
  Operation operation_;
};

}  // namespace

bool is_pair(OpKind kind) {
  constexpr OpKind kPairs[] = {OpKind::add, OpKind::sub, OpKind::mul, OpKind::maximum, OpKind::minimum, OpKind::prelu};
  return std::ranges::find(kPairs, kind) != std::end(kPairs);
}

Lowered lower_pair(const ir::Graph& graph, ir::OpId id) { return Pair(graph, id).run(); }

}  // namespace skillet::npus::ethosu
