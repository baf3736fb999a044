#include "frontend/onnx/units.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

namespace skillet::onnx {
namespace {

constexpr std::string_view kMicrosoft = "com.microsoft";

bool is_of(const Node& node, std::string_view op) { return node.op == op && !is_foreign(node); }

Result<ir::Quant> quant_of(const Model& model, int scale, int zero, int64_t axis) {
  ir::Quant quant;
  const auto scales = scale == kNone ? std::nullopt : numbers(model.value(scale));
  if (!scales || scales->empty() || model.value(scale).dtype != ir::DType::float32)
    return error(ErrorCode::unsupported, "its scale is not a constant of float32");
  for (const double one : *scales) {
    if (!(one > 0) || !std::isfinite(one)) return error(ErrorCode::unsupported, "its scale is {}", one);
    quant.scales.push_back(static_cast<float>(one));
  }
  quant.zero_points.assign(scales->size(), 0);
  if (zero != kNone) {
    const auto zeros = integers(model.value(zero));
    if (!zeros || zeros->size() != scales->size())
      return error(ErrorCode::unsupported, "its zero point is not a constant that fits its scale");
    for (size_t i = 0; i < zeros->size(); ++i) quant.zero_points[i] = static_cast<int32_t>((*zeros)[i]);
  }
  if (quant.per_channel()) quant.axis = static_cast<int32_t>(axis);
  return quant;
}

// Operands of QLinear... nodes: 3 inputs for each value, or 2 if the last zero point is left out.
struct QLinear {
  std::string_view name, op;
  std::array<int, 2> operands;  // positions of values, kNone: one only; the scale and the zero point follow each
  int output;                   // position of the output's scale
  int bias = kNone;
};
constexpr std::array kQLinear = {
    QLinear{"QLinearConv", "Conv", {0, 3}, 6, 8},
    QLinear{"QLinearMatMul", "MatMul", {0, 3}, 6},
    QLinear{"QGemm", "Gemm", {0, 3}, 7, 6},
    QLinear{"QLinearAdd", "Add", {0, 3}, 6},
    QLinear{"QLinearMul", "Mul", {0, 3}, 6},
    QLinear{"QLinearGlobalAveragePool", "GlobalAveragePool", {0, kNone}, 3},
    QLinear{"QLinearAveragePool", "AveragePool", {0, kNone}, 3},
    QLinear{"QLinearSigmoid", "Sigmoid", {0, kNone}, 3},
    QLinear{"QLinearLeakyRelu", "LeakyRelu", {0, kNone}, 3},
    QLinear{"QLinearSoftmax", "Softmax", {0, kNone}, 3},
};

// Operations that only move values: integers without a scale of their own have the scale of the input.
constexpr std::array kMoves = {"MaxPool",   "Reshape", "Flatten", "Squeeze", "Unsqueeze",
                               "Transpose", "Slice",   "Split",   "Resize",  "Concat"};

class Finder {
 public:
  Finder(const Model& model, const Links& links) : model_(model), links_(links), quant_(model.values.size()) {}

  std::vector<Unit> run() {
    for (size_t i = 0; i < model_.nodes.size(); ++i) note_quant(model_.nodes[i]);
    std::vector<Unit> units;
    for (size_t i = 0; i < model_.nodes.size(); ++i) {
      const int id = static_cast<int>(i);
      const Node& node = model_.node(id);
      if (is_quantize(node) || is_dequantize(node) || node.is_taken || merged_.contains(id)) continue;
      units.push_back(unit(id));
    }
    return units;
  }

 private:
  int at(const Node& node, int position) const {
    return position >= 0 && position < static_cast<int>(node.inputs.size()) ? node.inputs[static_cast<size_t>(position)]
                                                                            : kNone;
  }

  // Records the quantization of the integers that a node quantizes to or dequantizes from.
  void note_quant(const Node& node) {
    if (!is_quantize(node) && !is_dequantize(node)) return;
    auto quant = quant_of_node(model_, node);
    const int integer = !quant.ok() ? kNone : is_quantize(node) ? node.outputs[0] : node.inputs[0];
    if (integer != kNone && !quant->per_channel()) quant_[static_cast<size_t>(integer)] = *quant;
  }

  Unit unit(int id) {
    const Node& node = model_.node(id);
    Unit unit{.node = id, .nodes = {id}, .op = node.op};
    Result<void> done =
        is_foreign(node) ? error(ErrorCode::unsupported, "it is of the domain {}", node.domain) : Result<void>();
    if (done.ok()) {
      const auto row = std::ranges::find(kQLinear, std::string_view(node.op), &QLinear::name);
      if (row != kQLinear.end())
        done = read_qlinear(unit, node, *row);
      else if (node.op == "QLinearConcat")
        done = read_concat(unit, node);
      else
        done = read_qdq(unit, node);
    }
    if (!done.ok()) unit.refusal = done.error().message;
    std::ranges::sort(unit.nodes);
    unit.nodes.erase(std::unique(unit.nodes.begin(), unit.nodes.end()), unit.nodes.end());
    for (const Operand& out : unit.outputs) {
      if (out.value != kNone) quant_[static_cast<size_t>(out.value)] = out.quant;
    }
    if (unit.refusal.empty()) merged_.insert(unit.nodes.begin(), unit.nodes.end());
    return unit;
  }

  Result<void> read_qlinear(Unit& unit, const Node& node, const QLinear& row) {
    unit.op = row.op;
    for (const int position : row.operands) {
      if (position != kNone) SK_TRY(add_operand(unit.inputs, node, position, position + 1));
    }
    for (Operand& one : unit.inputs) {
      const bool by_column = row.op == "MatMul" || (row.op == "Gemm" && int_of(node, "transB", 0) == 0);
      if (one.quant.per_channel() && by_column) one.quant.axis = 1;
    }
    if (at(node, row.bias) != kNone) unit.inputs.push_back({at(node, row.bias), {}});
    return add_output(unit, node, row.output);
  }

  Result<void> read_concat(Unit& unit, const Node& node) {
    unit.op = "Concat";
    for (int i = 2; i < static_cast<int>(node.inputs.size()); i += 3) SK_TRY(add_operand(unit.inputs, node, i, i + 1));
    return add_output(unit, node, 0);
  }

  Result<void> add_output(Unit& unit, const Node& node, int scale) {
    SK_TRY_ASSIGN(ir::Quant quant, quant_of(model_, at(node, scale), at(node, scale + 1), 0));
    if (quant.per_channel()) return error(ErrorCode::unsupported, "its output has a scale per channel");
    if (node.outputs.empty() || node.outputs[0] == kNone) return error(ErrorCode::malformed, "it has no output");
    unit.outputs.push_back({node.outputs[0], std::move(quant)});
    return {};
  }

  Result<void> add_operand(std::vector<Operand>& to, const Node& node, int value, int scale) {
    SK_TRY_ASSIGN(ir::Quant quant, quant_of(model_, at(node, scale), at(node, scale + 1), 0));
    to.push_back({at(node, value), std::move(quant)});
    return {};
  }

  // Weights of convolutions have output channels first, those of matrices last.
  Result<void> read_qdq(Unit& unit, const Node& node) {
    for (const int value : node.inputs) SK_TRY(read_input(unit, value));
    for (const int value : node.outputs) SK_TRY(read_output(unit, node, value));
    return {};
  }

  Result<void> read_input(Unit& unit, int value) {
    Operand operand{.value = value, .quant = {}};
    const int producer = value == kNone ? kNone : links_.producer[static_cast<size_t>(value)];
    if (producer != kNone && is_dequantize(model_.node(producer))) {
      SK_TRY_ASSIGN(operand.quant, quant_of_node(model_, model_.node(producer)));
      operand.value = model_.node(producer).inputs[0];
      // A DequantizeLinear with other readers or another provider stays with the host; the unit reads its input.
      const bool is_shared = links_.consumers[static_cast<size_t>(value)].size() != 1 || model_.value(value).is_output;
      if (!is_shared && !model_.node(producer).is_taken) unit.nodes.push_back(producer);
    } else if (value != kNone && model_.value(value).is_8bit() && is_move(unit)) {
      operand.quant = quant_[static_cast<size_t>(value)];
    }
    unit.inputs.push_back(std::move(operand));
    return {};
  }

  static bool is_move(const Unit& unit) { return std::ranges::count(kMoves, unit.op) != 0; }

  Result<void> read_output(Unit& unit, const Node& node, int value) {
    if (value == kNone) return {};
    if (model_.value(value).is_8bit() && is_move(unit) && !unit.inputs.empty()) {
      const auto is_other = [&](const Operand& one) { return one.quant != unit.inputs[0].quant; };
      if (unit.op == "Concat" && std::ranges::any_of(unit.inputs, is_other))
        return error(ErrorCode::unsupported, "it concatenates integers with different scales unchanged");
      unit.outputs.push_back({value, unit.inputs[0].quant});
      return {};
    }
    const int before = value;
    SK_TRY_ASSIGN(const int quantize, only_reader(value));
    if (is_of(model_.node(quantize), "Relu") || is_of(model_.node(quantize), "Clip")) {
      const int activation = quantize;
      const std::vector<int>& made = model_.node(activation).outputs;
      SK_TRY_ASSIGN(const int after, only_reader(made.empty() ? kNone : made[0]));
      if (is_quantize(model_.node(after)) && node.outputs.size() == 1) {
        SK_TRY_ASSIGN(const ir::Quant quant, quant_of_node(model_, model_.node(after)));
        SK_TRY(set_activation(unit, model_.node(activation), quant, model_.value(model_.node(after).outputs[0]).dtype));
        unit.nodes.push_back(activation);
        return quantized_by(unit, after);
      }
    }
    if (!is_quantize(model_.node(quantize)))
      return error(ErrorCode::unsupported, "its output '{}' is not quantized", model_.value(before).name);
    return quantized_by(unit, quantize);
  }

  Result<void> quantized_by(Unit& unit, int quantize) {
    SK_TRY_ASSIGN(ir::Quant quant, quant_of_node(model_, model_.node(quantize)));
    if (quant.per_channel()) return error(ErrorCode::unsupported, "its output has a scale per channel");
    unit.nodes.push_back(quantize);
    unit.outputs.push_back({model_.node(quantize).outputs[0], std::move(quant)});
    return {};
  }

  Result<int> only_reader(int value) const {
    if (value == kNone) return error(ErrorCode::malformed, "it has no output");
    const auto& readers = links_.consumers[static_cast<size_t>(value)];
    if (readers.size() != 1 || model_.value(value).is_output || model_.node(readers[0]).is_taken)
      return error(ErrorCode::unsupported, "its output '{}' is not quantized, or also used unquantized",
                   model_.value(value).name);
    return readers[0];
  }

  // Limits that the output's type has anyway are ignored.
  Result<void> set_activation(Unit& unit, const Node& node, const ir::Quant& quant, ir::DType dtype) const {
    double low = 0, high = std::numeric_limits<double>::infinity();
    if (node.op == "Clip") {
      low = -high;
      for (int i = 1; i <= 2; ++i) {
        const auto limit = at(node, i) == kNone ? std::nullopt : limit_of(at(node, i));
        if (at(node, i) != kNone && !limit)
          return error(ErrorCode::unsupported, "the limits of its Clip are not constants");
        if (limit) (i == 1 ? low : high) = *limit;
      }
      low = std::max<double>(low, float_of(node, "min", -std::numeric_limits<float>::infinity()));
      high = std::min<double>(high, float_of(node, "max", std::numeric_limits<float>::infinity()));
    }
    const int least = dtype == ir::DType::int8 ? -128 : 0;
    const auto stored = [&](double limit) { return std::nearbyint(limit / quant.scale()) + quant.zero_point(); };
    if (stored(low) <= least) low = -std::numeric_limits<double>::infinity();
    if (stored(high) >= least + 255) high = std::numeric_limits<double>::infinity();
    if (std::isinf(low) && std::isinf(high)) return {};
    const bool from_zero = low == 0 || (std::isinf(low) && stored(0) <= least);  // the type stores no values below 0
    if (low == 0 && std::isinf(high)) unit.activation = ir::Activation::relu;
    if (high == 6 && from_zero) unit.activation = ir::Activation::relu6;
    if (unit.activation == ir::Activation::none)
      return error(ErrorCode::unsupported, "its Clip is to {} and {}, not 0 and 6", low, high);
    return {};
  }

  // The value of a constant, dequantized if necessary.
  std::optional<double> limit_of(int value) const {
    const int producer = links_.producer[static_cast<size_t>(value)];
    if (producer != kNone && is_dequantize(model_.node(producer))) {
      const auto quant = quant_of_node(model_, model_.node(producer));
      const auto stored = numbers(model_.value(model_.node(producer).inputs[0]));
      if (!quant.ok() || !stored || stored->size() != 1) return std::nullopt;
      return (stored->front() - quant->zero_point()) * quant->scale();
    }
    const auto read = numbers(model_.value(value));
    return read && read->size() == 1 ? std::optional(read->front()) : std::nullopt;
  }

  const Model& model_;
  const Links& links_;
  std::vector<ir::Quant> quant_;  // by value; empty: unknown
  std::set<int> merged_;          // nodes of earlier units
};

}  // namespace

std::vector<Unit> units_of(const Model& model, const Links& links) { return Finder(model, links).run(); }

ir::DType type_of(std::span<const Unit> units) {
  for (const Unit& unit : units) {
    for (const Operand& operand : unit.inputs) {
      if (operand.quant.per_channel()) return ir::DType::int8;
    }
  }
  return ir::DType::uint8;
}

bool is_foreign(const Node& node) {
  return !node.domain.empty() && node.domain != "ai.onnx" && node.domain != kMicrosoft;
}
bool is_quantize(const Node& node) { return is_of(node, "QuantizeLinear"); }
bool is_dequantize(const Node& node) { return is_of(node, "DequantizeLinear"); }

Result<ir::Quant> quant_of_node(const Model& model, const Node& node) {
  if (node.inputs.size() < 2 || node.inputs[0] == kNone || node.outputs.empty() || node.outputs[0] == kNone)
    return error(ErrorCode::malformed, "{} '{}' lacks operands", node.op, node.name);
  if (int_of(node, "block_size", 0) != 0) return error(ErrorCode::unsupported, "'{}' has scales of blocks", node.name);
  const int zero = node.inputs.size() > 2 ? node.inputs[2] : kNone;
  const Value& integer = model.value(is_quantize(node) ? node.outputs[0] : node.inputs[0]);
  const ir::DType dtype = zero == kNone ? integer.dtype : model.value(zero).dtype;
  if (dtype == ir::DType::int16 || dtype == ir::DType::uint16)
    return error(ErrorCode::unsupported, "{}: only 8 bits are taken", ir::dtype_name(dtype));
  SK_TRY_ASSIGN(ir::Quant quant, quant_of(model, node.inputs[1], zero, int_of(node, "axis", 1)));
  if (quant.per_channel() && quant.axis < 0 && integer.dims) quant.axis += static_cast<int32_t>(integer.dims->size());
  return quant;
}

}  // namespace skillet::onnx
