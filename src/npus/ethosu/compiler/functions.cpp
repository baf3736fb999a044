// Elementwise functions of one operand: tables computed by the CPU kernels, and the chip's functions for int16
// (hardware specification, sections 4.8 and 8.7).
#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "graph/ref/all_bytes.h"
#include "graph/ref/int16_table.h"
#include "graph/ref/range.h"
#include "npu/driver.h"
#include "npus/ethosu/compiler/lower.h"

namespace skillet::npus::ethosu {
namespace {

using ir::OpKind;
using npu::Remedy;
using npu::Support;

constexpr uint32_t kTanh = 3, kSigmoid = 4;  // codes of hardware functions

// Elementwise functions with a CPU kernel.
constexpr OpKind kFunctions[] = {OpKind::relu, OpKind::relu6,    OpKind::relu_n1_to_1, OpKind::relu_0_to_1,
                                 OpKind::tanh, OpKind::logistic, OpKind::hard_swish,   OpKind::leaky_relu,
                                 OpKind::abs,  OpKind::elu,      OpKind::exp,          OpKind::gelu,
                                 OpKind::log,  OpKind::sqrt,     OpKind::rsqrt,        OpKind::byte_table};
constexpr std::pair<OpKind, ir::Activation> kClamps[] = {{OpKind::relu, ir::Activation::relu},
                                                         {OpKind::relu6, ir::Activation::relu6},
                                                         {OpKind::relu_n1_to_1, ir::Activation::relu_n1_to_1}};

// Entries of a table for int16 that give these results, by value as uint16; nothing if there is no such table.
std::optional<Table> wide_table(std::span<const uint8_t> results) {
  constexpr int kEntries = 512, kSteps = 128;
  Table out;
  for (int entry = 0; entry < kEntries; ++entry) {
    const auto result = [&](int step) {
      const auto at = static_cast<uint16_t>(entry * kSteps + INT16_MIN + step);
      return int32_t{load_le<int16_t>(&results[size_t{at} * 2])};
    };
    const int32_t base = result(0), rise = result(kSteps - 1) - base;
    const auto fits = [&](int32_t slope) {
      for (int step = 0; step < kSteps; ++step)
        if (base + ((slope * step + kSteps / 2) >> 7) != result(step)) return false;
      return true;
    };
    int32_t slope = rise * kSteps / (kSteps - 1) - 2;
    const int32_t last = slope + 4;
    while (slope <= last && !fits(slope)) ++slope;
    if (slope > last || slope < INT16_MIN || slope > INT16_MAX) return std::nullopt;
    out.resize(out.size() + 4);
    store_le(&out[out.size() - 4], static_cast<int16_t>(base));
    store_le(&out[out.size() - 2], static_cast<int16_t>(slope));
  }
  return out;
}

class Function {
 public:
  Function(const ir::Graph& graph, ir::OpId id) : graph_(graph), id_(id), op_(graph.op(id)) {}

  Lowered run() {
    for (const ir::TensorId id : {op_.inputs[0], op_.outputs[0]})
      if (Support one = is_activation(graph_.tensor(id)); !one.ok) return one;
    if (input().dtype != output().dtype)
      return Support::no(Remedy::one_type, "{} becomes {}; the chip's tables keep the type",
                         ir::dtype_name(input().dtype), ir::dtype_name(output().dtype));
    const auto map = whole_of(graph_, op_.inputs[0]);
    if (!map) return too_large(input());
    made_ = make_copy(id_, *map, *map);
    made_.output.tensor = op_.outputs[0];
    set_type_range(output(), made_);
    if (op_.kind == OpKind::leaky_relu && input().dtype == ir::DType::int16) return wide_leaky_relu();
    const Support taken = input().dtype == ir::DType::int16 ? wide() : bytes();
    return taken.ok ? Lowered(std::vector<Operation>{std::move(made_)}) : Lowered(taken);
  }

 private:
  const ir::Tensor& input() const { return graph_.tensor(op_.inputs[0]); }
  const ir::Tensor& output() const { return graph_.tensor(op_.outputs[0]); }

  // Any function from bytes to bytes.
  Support bytes() {
    const auto results = ref::of_each_byte(graph_, std::span(&op_, 1), op_.inputs[0], op_.outputs[0]);
    if (!results.ok()) return Support::no(npu::remedy_of_op(graph_, id_), "{}", results.error().message);
    made_.table.emplace(256);
    const size_t first = input().dtype == ir::DType::int8 ? 0x80 : 0;
    for (size_t i = 0; i < made_.table->size(); ++i) (*made_.table)[i] = (*results)[i ^ first];
    return Support::yes();
  }

  // A clamp, a function of the chip, or linear interpolation between 513 values.
  Support wide() {
    for (const auto& [kind, activation] : kClamps)
      if (op_.kind == kind) return clamp(activation);
    if (op_.kind == OpKind::tanh || op_.kind == OpKind::logistic) return sigmoid();
    const auto results = ref::of_each_int16(graph_, std::span(&op_, 1), op_.inputs[0], op_.outputs[0]);
    if (!results.ok()) return Support::no(npu::remedy_of_op(graph_, id_), "{}", results.error().message);
    made_.table = wide_table(*results);
    if (made_.table) return Support::yes();
    return Support::no(Remedy::form,
                       "for int16 it is not piecewise linear between 513 values, as the chip's tables are");
  }

  Support clamp(ir::Activation activation) {
    const auto by = quantize_multiplier(input().quant.scale() / output().quant.scale());
    if (by.shift > kLeftMax - 8) return too_steep(output());
    made_.rounding = hw::Rounding::twice, made_.scale = scale_of(by);
    return set_limits(activation, output(), made_);
  }

  // Positive values times one factor, and negative values times the other; one part is always zero, so their sum adds
  // no rounding.
  Lowered wide_leaky_relu() {
    const float alpha = op_.as<ir::LeakyReluAttrs>().alpha, in = input().quant.scale(), out = output().quant.scale();
    // Float and double as in the reference kernels.
    const double factor = in * alpha / out;
    const auto identity = quantize_multiplier(in / out), slope = quantize_multiplier(std::abs(factor));
    if (std::max(identity.shift, slope.shift) > kLeftMax - 8) return too_steep(output());
    Operation above = made_, below = made_, sum = made_;
    const auto scratch = static_cast<ir::TensorId>(graph_.tensors.size());
    above.rounding = below.rounding = hw::Rounding::twice;
    above.output.tensor = scratch, above.scale = scale_of(identity), above.least = 0;
    below.output.tensor = scratch + 1, below.scale = scale_of(slope), below.most = 0;
    sum.unit = factor < 0 ? Unit::sub : Unit::add;
    sum.input = above.output, sum.input2 = below.output, sum.scale = {};
    Lowered made(std::vector<Operation>{std::move(above), std::move(below), std::move(sum)});
    made.scratch_bytes.assign(2, static_cast<uint64_t>(output().bytes()));
    return made;
  }

  Support sigmoid() {
    if (output().quant.scale() != 1.0F / 32768)
      return Support::no(Remedy::reconvert, "'{}' has scale {}; TensorFlow Lite's kernel has 1/32768", output().name,
                         output().quant.scale());
    const ref::SigmoidInput by = ref::sigmoid_input(input().quant.scale());
    made_.scale = {static_cast<uint32_t>(by.multiplier), static_cast<uint32_t>(by.right_shift)};
    made_.function = op_.kind == OpKind::tanh ? kTanh : kSigmoid;
    return Support::yes();
  }

  const ir::Graph& graph_;
  ir::OpId id_;
  const ir::Op& op_;
  Operation made_;
};

}  // namespace

bool is_function(OpKind kind) { return std::ranges::find(kFunctions, kind) != std::end(kFunctions); }
Lowered lower_function(const ir::Graph& graph, ir::OpId id) { return Function(graph, id).run(); }

}  // namespace skillet::npus::ethosu
