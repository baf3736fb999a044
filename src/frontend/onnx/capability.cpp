#include "frontend/onnx/capability.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/log.h"
#include "npu/steps_off.h"
#include "runtime/compiled_model.h"
#include "runtime/program_cache.h"
#include "runtime/session_keys.h"
#include "runtime/verify.h"

namespace skillet::onnx {
namespace {

constexpr double kTooFarOff = 2;  // steps; below 2, integer results differ by at most one

// Adds the chosen units in order. Values that nodes outside of them read become outputs.
void lower(Lowering& lowering, std::vector<Unit>& units, std::span<const int> chosen, const Model& model,
           const Links& links) {
  std::vector<bool> inside(model.nodes.size());
  std::vector<int> made;
  for (const int id : chosen) {
    Unit& unit = units[static_cast<size_t>(id)];
    if (unit.refusal.empty()) {
      const auto done = lowering.add(unit, id);
      if (!done.ok()) unit.refusal = done.error().message;
    }
    if (!unit.refusal.empty()) continue;
    for (const int node : unit.nodes) inside[static_cast<size_t>(node)] = true;
    for (const Operand& out : unit.outputs) made.push_back(out.value);
  }
  for (const int value : made) {
    const auto& readers = links.consumers[static_cast<size_t>(value)];
    const bool is_read = std::ranges::any_of(readers, [&](int node) { return !inside[static_cast<size_t>(node)]; });
    if (!is_read && !readers.empty() && !model.value(value).is_output) continue;
    const auto done = lowering.add_output(value);
    if (!done.ok()) log::debug("{}", done.error().message);
  }
  for (const Edge& edge : lowering.inputs) lowering.graph.inputs.push_back(edge.tensor);
  for (const Edge& edge : lowering.outputs) lowering.graph.outputs.push_back(edge.tensor);
}

std::vector<int> numbers_to(size_t count) {
  std::vector<int> out(count);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

// True for an operation whose result is exact if it is not the last of its unit, because it multiplies by integers. Not
// for a subtraction: chips subtract with two weights that differ slightly.
bool is_exact_before(const ir::Graph& graph, const ir::Op& op) {
  using enum ir::OpKind;
  const float steps = graph.tensor(op.outputs[0]).quant.scale();
  if (op.kind == add)
    return std::ranges::all_of(op.inputs, [&](ir::TensorId id) { return graph.tensor(id).quant.scale() == steps; });
  return op.kind == quantize || op.kind == conv_2d || op.kind == depthwise_conv_2d || op.kind == transpose_conv ||
         op.kind == fully_connected;
}

// For units of several operations: possible error of the chip for the same inputs, in steps of the unit's result. One
// step of an intermediate result is many steps of a result with a finer scale.
std::map<int, double> steps_off(const compile::Compiled& compiled, const runtime::Target& target) {
  const ir::Graph& graph = compiled.graph;
  const std::vector<ir::OpId> producers = ir::producers(graph);
  std::vector<double> off(graph.tensors.size(), 0);  // as real numbers
  std::map<int, double> out;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const ir::Op& op = graph.ops[i];
    double before = 0;
    for (const ir::TensorId id : op.inputs) {
      const ir::OpId from = id < 0 ? -1 : producers[static_cast<size_t>(id)];
      if (from >= 0 && graph.op(from).source_index == op.source_index) before += off[static_cast<size_t>(id)];
    }
    if (!compiled.ops[i].on_npu || (before == 0 && is_exact_before(graph, op))) continue;
    const int own = npu::steps_off(*target.driver, target.chip, graph, static_cast<ir::OpId>(i));
    for (const ir::TensorId id : op.outputs) {
      const ir::Tensor& made = graph.tensor(id);
      if (made.quant.scales.size() != 1) continue;
      off[static_cast<size_t>(id)] = before + own * static_cast<double>(made.quant.scale());
      // Operations are in order: the last one of a unit counts.
      if (before > 0) out[op.source_index] = off[static_cast<size_t>(id)] / static_cast<double>(made.quant.scale());
    }
  }
  return out;
}

class Chooser {
 public:
  Chooser(const Model& model, const Links& links, const runtime::Target& target, const host::Options& options,
          const Whole& whole, bool saves)
      : model_(model),
        links_(links),
        target_(target),
        options_(options),
        saves_(saves),
        units_(whole.units),
        type_(whole.type),
        choice_(target, options, host::numbered(units_.size()), compile::Words::onnx) {}

  Result<Capability> run(ir::Graph whole) {
    for (size_t i = 0; i < units_.size(); ++i)
      if (!units_[i].refusal.empty()) choice_.refuse(static_cast<int>(i), units_[i].refusal);
    SK_TRY(choice_.ask(std::move(whole)));
    SK_TRY(choice_.divide({.divide = [&]() -> Result<std::vector<host::Set>> { return choice_.closed_sets(graph()); },
                           .propose = [&](const host::Set& set, bool by_cost) { return propose(set, by_cost); }}));
    Capability out;
    for (const host::Set& set : choice_.parts()) out.parts.push_back(std::move(parts_.at(set)));
    out.told = choice_.told([&](int unit) {
      const Node& node = model_.node(units_[static_cast<size_t>(unit)].node);
      return fmt::format("{} '{}'", node.op, node.name);
    });
    // A foreign node may be a function whose body the host passes later, so "such as" would be premature.
    if (std::ranges::any_of(model_.nodes, is_foreign)) out.told.such_as.clear();
    return out;
  }

 private:
  // The graph with one operation for each claimed unit and for each other node.
  ir::Graph graph() const {
    ir::Graph graph;
    graph.tensors.resize(model_.values.size());
    std::vector<int> unit_at(model_.nodes.size(), kNone);  // by node: the unit of this operation
    const std::vector<bool> inside = taken();
    for (const int unit : choice_.ours()) unit_at[static_cast<size_t>(units_[static_cast<size_t>(unit)].node)] = unit;
    for (size_t node = 0; node < model_.nodes.size(); ++node) {
      const int unit = unit_at[node];
      if (unit == kNone && inside[node]) continue;
      ir::Op op{.kind = ir::OpKind::opaque, .attrs = ir::OpaqueAttrs{}, .inputs = {}, .outputs = {}};
      op.source_index = unit;
      if (unit == kNone) {
        op.inputs = model_.nodes[node].inputs;
        op.inputs.insert(op.inputs.end(), model_.nodes[node].inner_inputs.begin(),
                         model_.nodes[node].inner_inputs.end());
        op.outputs = model_.nodes[node].outputs;
      } else {
        for (const Operand& one : units_[static_cast<size_t>(unit)].inputs) op.inputs.push_back(one.value);
        for (const Operand& one : units_[static_cast<size_t>(unit)].outputs) op.outputs.push_back(one.value);
      }
      std::erase(op.outputs, kNone);
      graph.add_op(std::move(op));
    }
    return graph;
  }

  Result<std::vector<host::Refusal>> propose(const host::Set& set, bool by_cost) {
    Lowering lowering(model_, type_);
    lower(lowering, units_, set.nodes, model_, links_);
    std::vector<host::Refusal> refusals;
    for (const int unit : set.nodes) {
      const std::string& refusal = units_[static_cast<size_t>(unit)].refusal;
      if (!refusal.empty()) refusals.push_back({unit, refusal});
    }
    if (!refusals.empty()) return refusals;
    runtime::SessionOptions session = host::session_options(options_);
    if (by_cost) session.partition = options_.session.partition;
    if (saves_) session.programs = std::make_shared<runtime::ProgramStore>();
    runtime::CompiledModel saved{.graph = saves_ ? lowering.graph : ir::Graph(),
                                 .note = {},
                                 .options = runtime::deciding_options(host::session_options(options_))};
    SK_TRY_ASSIGN(compile::Compiled compiled, runtime::compile_verified(target_, std::move(lowering.graph), session));
    choice_.add_compared(compiled.verified);
    if (saves_) SK_TRY_INTO(saved.programs, session.programs->programs_of(compiled));
    refusals = host::refusals_of(compiled, set.nodes);
    for (const auto& [unit, steps] : steps_off(compiled, target_)) {
      if (steps < kTooFarOff || std::ranges::count(refusals, unit, &host::Refusal::node) != 0) continue;
      refusals.push_back({unit, fmt::format("it may be {:.0f} steps off on the {}, which rounds intermediate results",
                                            std::floor(steps), target_.chip.title)});
    }
    if (!refusals.empty()) return refusals;
    std::vector<int> nodes;
    for (const int unit : set.nodes) {
      const auto& own = units_[static_cast<size_t>(unit)].nodes;
      nodes.insert(nodes.end(), own.begin(), own.end());
    }
    SK_TRY_ASSIGN(auto made, runtime::Session::create(std::move(compiled), target_, session));
    SK_TRY_ASSIGN(parts_[set], Part::create(model_, links_, std::move(nodes), left_out(), lowering.inputs,
                                            lowering.outputs, std::move(made)));
    saved.note = note_of(parts_[set]->inputs(), parts_[set]->outputs());
    if (saves_) SK_TRY_INTO(parts_[set]->saved, runtime::save_compiled(saved));
    return refusals;
  }

  // Nodes of claimed units, in any part.
  std::vector<bool> taken() const {
    std::vector<bool> out(model_.nodes.size());
    for (const int unit : choice_.ours())
      for (const int node : units_[static_cast<size_t>(unit)].nodes) out[static_cast<size_t>(node)] = true;
    return out;
  }

  // Nodes that a part must not take at its border: nodes of units, and nodes that have a provider. For saved parts also
  // a DequantizeLinear for other nodes and a QuantizeLinear of their results: ONNX Runtime would move such a node up to
  // the output of the EPContext node, and know no type for the value between, or down to its input, as int8 with a zero
  // point of uint8.
  std::vector<bool> left_out() const {
    std::vector<bool> out = taken();
    for (size_t i = 0; i < out.size(); ++i) {
      const Node& node = model_.nodes[i];
      const bool moves_up = is_dequantize(node) && !links_.consumers[static_cast<size_t>(node.outputs[0])].empty();
      const bool moves_down = is_quantize(node) && !node.inputs.empty() && node.inputs[0] != kNone &&
                              links_.producer[static_cast<size_t>(node.inputs[0])] != kNone;
      if (node.is_taken || (saves_ && (moves_up || moves_down))) out[i] = true;
    }
    return out;
  }

  const Model& model_;
  const Links& links_;
  const runtime::Target& target_;
  const host::Options& options_;
  const bool saves_;
  std::vector<Unit> units_;
  const ir::DType type_;
  host::Choice choice_;
  std::map<host::Set, std::unique_ptr<Part>> parts_;
};

}  // namespace

Result<Whole> whole_of(const Model& model, const Links& links) {
  Whole out{.units = units_of(model, links)};
  out.type = type_of(out.units);
  Lowering lowering(model, out.type);
  lower(lowering, out.units, numbers_to(out.units.size()), model, links);
  SK_TRY(ir::verify(lowering.graph));
  out.inputs = std::move(lowering.inputs);
  out.outputs = std::move(lowering.outputs);
  out.graph = std::move(lowering.graph);
  return out;
}

Result<Capability> capability_of(const Model& model, const runtime::Target& target, const host::Options& options,
                                 bool saves) {
  const Links links = links_of(model);
  SK_TRY_ASSIGN(Whole whole, whole_of(model, links));
  ir::Graph graph = std::move(whole.graph);
  return Chooser(model, links, target, options, whole, saves).run(std::move(graph));
}

}  // namespace skillet::onnx
