#include "frontend/onnx/import.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/log.h"
#include "base/text.h"
#include "frontend/onnx/file_ops.h"
#include "frontend/onnx/lowering.h"
#include "frontend/onnx/settle.h"
#include "graph/ref/ref.h"

namespace skillet::onnx {
namespace {

Result<void> has_kernel(const ir::Graph& alone) {
  const auto kernel = ref::prepare(alone, 0);
  return kernel.ok() ? Result<void>() : kernel.error();
}

// int8 if a matrix is multiplied by a computed matrix: the CPU kernel needs int8.
ir::DType type_for(const Model& model, const std::vector<Unit>& units) {
  const auto is_product = [&](const Unit& unit) {
    return unit.op == "MatMul" && unit.refusal.empty() && unit.inputs.size() > 1 && unit.inputs[1].value != kNone &&
           !model.value(unit.inputs[1].value).is_constant;
  };
  return std::ranges::any_of(units, is_product) ? ir::DType::int8 : type_of(units);
}

// Checks operations before version 7, where values per channel are marked by `axis` or, for PRelu, by their count
// alone.
Result<void> check_old_rules(const Model& model) {
  constexpr std::array kByAxis = {"Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less"};
  for (const Node& node : model.nodes) {
    if (node.since >= 7 || !node.domain.empty()) continue;
    const bool is_by_axis = std::ranges::count(kByAxis, node.op) != 0 && int_of(node, "broadcast", 0) != 0 &&
                            node.attributes.contains("axis");
    const bool has_slope = node.op == "PRelu" && node.inputs.size() > 1 && node.inputs[1] != kNone;
    const auto slope = has_slope ? numbers(model.value(node.inputs[1])) : std::nullopt;
    if (is_by_axis || (has_slope && (!slope || slope->size() != 1)))
      return error(ErrorCode::unsupported,
                   "node '{}' {}: it broadcasts as in operator set {}: convert the model to 7 or later",
                   printable(node.name), printable(node.op), node.since);
  }
  return {};
}

class Importer {
 public:
  Importer(ModelFile file, const ImportOptions& options)
      : file_(std::move(file)),
        model_(file_.model),
        options_(options),
        links_(links_of(model_)),
        units_(units_of(model_, links_)),
        whole_{links_, {plain_ops(), function_ops(), axis_ops(), recurrent_ops()}, has_kernel},
        lowering_(model_, type_for(model_, units_), &whole_) {}

  Result<ir::Graph> run(std::string name) {
    lowering_.graph.name = std::move(name);
    SK_TRY(add_inputs());
    sort_units();
    for (size_t node = 0; node < model_.nodes.size(); ++node)
      SK_TRY_IN_CONTEXT(add_node(static_cast<int>(node)), describe(static_cast<int>(node)));
    SK_TRY(add_outputs());
    ir::Graph& graph = lowering_.graph;
    SK_TRY(ir::infer_shapes(graph, ref::compute));
    SK_TRY(ir::verify(graph));
    for (size_t i = 0; i < graph.ops.size(); ++i) graph.ops[i].source_index = static_cast<int32_t>(i);
    SK_TRY(check_size());
    tell_what_is_left();
    return std::move(graph);
  }

 private:
  std::string describe(int node) const {
    return fmt::format("node '{}' {}", printable(model_.node(node).name), printable(model_.node(node).op));
  }

  // Quantization of an 8-bit value that no unit computes, from its readers.
  ir::Quant quant_of_readers(int id) const {
    ir::Quant quant;
    if (id == kNone || !model_.value(id).is_8bit()) return quant;
    for (const int reader : links_.consumers[static_cast<size_t>(id)]) {
      if (!is_dequantize(model_.node(reader))) continue;
      const auto read = quant_of_node(model_, model_.node(reader));
      if (read.ok() && !read->per_channel()) quant = *read;
    }
    for (const Unit& unit : units_) {
      for (const Operand& one : unit.inputs)
        if (one.value == id && !one.quant.empty() && quant.empty() && unit.refusal.empty()) quant = one.quant;
    }
    return quant;
  }

  Result<void> add_inputs() {
    for (const int id : file_.inputs) SK_TRY(lowering_.add_input(id, quant_of_readers(id)));
    for (const Edge& edge : lowering_.inputs) lowering_.graph.inputs.push_back(edge.tensor);
    return {};
  }

  void sort_units() {
    unit_of_.assign(model_.nodes.size(), nullptr);
    is_inside_.assign(model_.nodes.size(), false);
    for (const Unit& unit : units_) {
      unit_of_[static_cast<size_t>(unit.node)] = &unit;
      if (!unit.refusal.empty()) continue;
      for (const int node : unit.nodes) is_inside_[static_cast<size_t>(node)] = true;
    }
  }

  // Adds the unit of the node, if there is one, else the node alone. DequantizeLinear is added when its result is read.
  Result<void> add_node(int id) {
    const Node& node = model_.node(id);
    if (const Unit* unit = unit_of_[static_cast<size_t>(id)]; unit != nullptr) {
      std::string refusal = unit->refusal;
      if (refusal.empty()) {
        const auto done = lowering_.add(*unit, id);
        if (done.ok()) return {};
        refusal = done.error().message;
        for (const int inside : unit->nodes) is_inside_[static_cast<size_t>(inside)] = false;
      }
      if (unit->op != node.op) return leave(id, refusal);  // QLinear... has no form in float
      log::debug("{}: in float: {}", describe(id), refusal);
    }
    if (is_inside_[static_cast<size_t>(id)] || is_dequantize(node)) return {};
    if (is_quantize(node)) {
      const auto done = lowering_.add_quantization(id);
      return done.ok() ? done : leave(id, done.error().message);
    }
    if (is_foreign(node)) return leave(id, fmt::format("it is of the domain {}", node.domain));
    SK_TRY_ASSIGN(const Unit unit, alone(id));
    const auto done = lowering_.add(unit, id);
    return done.ok() ? done : leave(id, done.error().message);
  }

  Result<Unit> alone(int id) {
    const Node& node = model_.node(id);
    Unit unit{.node = id, .nodes = {id}, .op = node.op, .inputs = {}, .outputs = {}};
    for (const int value : node.inputs) {
      SK_TRY(bring(value));
      unit.inputs.push_back({.value = value, .quant = {}});
    }
    for (const int value : node.outputs) {
      if (value != kNone) unit.outputs.push_back({.value = value, .quant = {}});
    }
    return unit;
  }

  // Adds the DequantizeLinear of a value, so that its layout is known.
  Result<void> bring(int value) {
    set_dequantized(value);
    const int producer = value == kNone ? kNone : links_.producer[static_cast<size_t>(value)];
    const bool is_known = value != kNone && (model_.value(value).is_constant || lowering_.has(value, Layout::plain) ||
                                             lowering_.has(value, Layout::channels_last));
    if (producer == kNone || is_known || !is_dequantize(model_.node(producer))) return {};
    const auto done = lowering_.add_quantization(producer);
    return done.ok() ? done : leave(producer, done.error().message);
  }

  // Makes a constant of a dequantized constant, for readers outside of units.
  void set_dequantized(int id) {
    if (id == kNone || model_.value(id).is_constant) return;
    const int producer = links_.producer[static_cast<size_t>(id)];
    if (producer == kNone || !is_dequantize(model_.node(producer))) return;
    const Node& node = model_.node(producer);
    const Value& stored = model_.value(node.inputs.empty() || node.inputs[0] == kNone ? id : node.inputs[0]);
    const auto quant = quant_of_node(model_, node);
    const auto read = numbers(stored);
    if (!quant.ok() || !read || !stored.dims) return;
    size_t inner = 1;
    if (quant->per_channel()) {
      const auto axis = static_cast<size_t>(quant->axis);
      if (axis >= stored.dims->size() || std::ssize(quant->scales) != (*stored.dims)[axis]) return;
      for (size_t i = axis + 1; i < stored.dims->size(); ++i) inner *= static_cast<size_t>((*stored.dims)[i]);
    }
    Bytes bytes(read->size() * 4);
    for (size_t i = 0; i < read->size(); ++i) {
      const size_t c = i / std::max<size_t>(inner, 1) % quant->scales.size();
      const auto real = static_cast<float>((*read)[i] - quant->zero_points[c]) * quant->scales[c];
      store_le(bytes.data() + 4 * i, real);
    }
    Value& out = model_.values[static_cast<size_t>(id)];
    out.dtype = ir::DType::float32;
    out.dims = stored.dims;
    out.data = file_.keep(std::move(bytes));
    out.is_constant = true;
  }

  // Adds the node as an opaque operation and records the reason.
  Result<void> leave(int node, const std::string& reason) {
    for (const auto* values : {&model_.node(node).inputs, &model_.node(node).inner_inputs})
      for (const int value : *values) SK_TRY(bring(value));
    left_.push_back(fmt::format("{}: {}", describe(node), printable(reason)));
    std::vector<ir::Quant> quants;
    for (const int value : model_.node(node).outputs) quants.push_back(quant_of_readers(value));
    return lowering_.add_opaque(node, quants);
  }

  Result<ir::TensorId> constant_output(int id) {
    const Value& value = model_.value(id);
    SK_TRY_ASSIGN(const std::vector<int32_t> dims, lowering_.dims(id));
    return lowering_.copy_of(lowering_.constant(value.dtype, dims, Bytes(value.data.begin(), value.data.end())));
  }

  Result<void> add_outputs() {
    for (const NamedValue& out : file_.outputs) {
      const auto context = fmt::format("output '{}'", printable(out.name));
      SK_TRY(bring(out.value));
      auto id = model_.value(out.value).is_constant ? constant_output(out.value) : lowering_.as_in_file(out.value);
      if (!id.ok()) return std::move(id).error().with_context(context);
      const auto& graph = lowering_.graph;
      const bool is_named = std::ranges::count(graph.inputs, *id) + std::ranges::count(graph.outputs, *id) != 0;
      if (is_named) *id = lowering_.copy_of(*id);
      lowering_.graph.outputs.push_back(*id);
      lowering_.graph.tensor(*id).name = printable(out.name);
    }
    return {};
  }

  // Limits memory: a file of a few bytes must not allocate all of the machine's memory.
  Result<void> check_size() const {
    constexpr uint64_t kAlways = 1ULL << 32, kPerByte = 1024;
    const uint64_t limit = kAlways + kPerByte * file_.contents->file.size();
    uint64_t total = 0;
    for (const ir::Tensor& tensor : lowering_.graph.tensors) total += static_cast<uint64_t>(tensor.bytes());
    if (total <= limit) return {};
    return error(ErrorCode::unsupported, "its tensors take {} bytes; a file of {} bytes may take {}", total,
                 file_.contents->file.size(), limit);
  }

  void tell_what_is_left() {
    constexpr size_t kShown = 4;
    for (size_t i = 0; i < left_.size() && i < kShown; ++i)
      log::message(log::Level::warning, "{}: {}; ONNX Runtime can run it, with Skillet's provider for the rest",
                   lowering_.graph.name, left_[i]);
    if (left_.size() > kShown)
      log::message(log::Level::warning, "{}: and {} more unsupported nodes", lowering_.graph.name,
                   left_.size() - kShown);
    if (options_.left != nullptr) *options_.left = left_;
  }

  ModelFile file_;
  Model& model_;
  const ImportOptions& options_;
  const Links links_;
  const std::vector<Unit> units_;
  const WholeFile whole_;
  Lowering lowering_;
  std::vector<const Unit*> unit_of_;  // by node
  std::vector<bool> is_inside_;       // true for nodes inside a unit
  std::vector<std::string> left_;
};

}  // namespace

Result<ir::Graph> import(Bytes file, std::string name, const ImportOptions& options) {
  const auto context = fmt::format("model '{}'", printable(name));
  const auto made = [&]() -> Result<ir::Graph> {
    SK_TRY_ASSIGN(ModelFile read, read_model(std::move(file), options.folder));
    SK_TRY(set_input_shapes(read, options.input_shapes));
    SK_TRY(check_old_rules(read.model));
    SK_TRY(settle(read));
    return Importer(std::move(read), options).run(std::move(name));
  };
  auto graph = made().with_context(context);
  if (graph && log::debug_flag("ir")) log::write(log::Level::info, ir::print(*graph));
  return graph;
}

Result<ir::Graph> import_file(const std::string& path, ImportOptions options) {
  SK_TRY_ASSIGN(Bytes bytes, read_file(path));
  const std::filesystem::path at(path);
  options.folder = at.has_parent_path() ? at.parent_path().string() : ".";
  return import(std::move(bytes), at.stem().string(), options).with_context(path);
}

}  // namespace skillet::onnx
