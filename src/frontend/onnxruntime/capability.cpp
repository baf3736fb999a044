#include "frontend/onnxruntime/capability.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/text.h"
#include "compile/advice.h"
#include "graph/passes/passes.h"
#include "runtime/verify.h"

namespace skillet::onnxruntime {
namespace {

constexpr int kMaxRounds = 16;  // as each drops at least one unit, or ends

// Adds those units in order; what of them others read are the outputs.
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

class Chooser {
 public:
  Chooser(const Model& model, const runtime::Target& target, const host::Options& options)
      : model_(model), links_(links_of(model)), target_(target), options_(options) {}

  Result<Capability> run() {
    SK_TRY(ask_driver());
    std::vector<Candidate> candidates;
    for (int round = 0; round < kMaxRounds; ++round) {
      candidates = divide(std::move(candidates));
      bool all_stay = true;
      for (Candidate& candidate : candidates) all_stay &= judge(candidate);
      all_stay &= limit(candidates);
      if (all_stay) break;
      if (round + 1 == kMaxRounds) candidates.clear();
    }
    for (Candidate& candidate : candidates) out_.parts.push_back(std::move(candidate.part));
    list_refusals();
    return std::move(out_);
  }

 private:
  struct Candidate {
    std::vector<int> units;
    std::unique_ptr<Part> part;
  };

  void refuse(int unit, const std::string& reason) {
    std::string& known = units_[static_cast<size_t>(unit)].refusal;
    if (known.empty()) known = reason.empty() ? "the NPU's driver does not take it" : reason;
  }

  Result<void> ask_driver() {
    SK_TRY_ASSIGN(Whole whole, whole_of(model_, links_));
    units_ = std::move(whole.units);
    type_ = whole.type;
    if (whole.graph.ops.empty()) return {};
    out_.advice = compile::quantization_advice(
        whole.graph, {target_.driver, target_.chip, options_.session.compile.per_channel}, compile::Rest::in_the_host);
    SK_TRY_ASSIGN(const compile::Compiled planned,
                  runtime::plan_for(target_, std::move(whole.graph), host::session_options(options_)));
    const host::Planned made = host::planned_for(planned);
    for (const host::Refusal& refusal : made.refusals) refuse(refusal.node, refusal.reason);
    for (size_t i = 0; i < units_.size(); ++i) {
      if (!std::ranges::binary_search(made.left, static_cast<int>(i)))
        refuse(static_cast<int>(i), "nothing reads what it computes");
    }
    return {};
  }

  // In sets that no path leaves and comes back to: an operation for each unit that is ours, and for each other node.
  std::vector<Candidate> divide(std::vector<Candidate> before) {
    ir::Graph graph;
    graph.tensors.resize(model_.values.size());
    std::vector<int> unit_at(model_.nodes.size(), kNone);  // by node: the unit that it is the operation of
    const std::vector<bool> inside = taken();
    for (size_t i = 0; i < units_.size(); ++i) {
      if (units_[i].refusal.empty()) unit_at[static_cast<size_t>(units_[i].node)] = static_cast<int>(i);
    }
    std::vector<npu::Support> support;
    for (size_t node = 0; node < model_.nodes.size(); ++node) {
      const int unit = unit_at[node];
      if (unit == kNone && inside[node]) continue;
      ir::Op op{.kind = ir::OpKind::opaque, .attrs = ir::OpaqueAttrs{}, .inputs = {}, .outputs = {}};
      op.source_index = unit;
      if (unit == kNone) {
        op.inputs = model_.nodes[node].inputs;
        op.outputs = model_.nodes[node].outputs;
      } else {
        for (const Operand& one : units_[static_cast<size_t>(unit)].inputs) op.inputs.push_back(one.value);
        for (const Operand& one : units_[static_cast<size_t>(unit)].outputs) op.outputs.push_back(one.value);
      }
      std::erase(op.outputs, kNone);
      graph.add_op(std::move(op));
      support.push_back(unit == kNone ? npu::Support::no(npu::Remedy::none, "the host's") : npu::Support::yes());
    }
    std::vector<Candidate> out;
    for (const passes::Partition& part : passes::partition(graph, support)) {
      if (!part.on_npu) continue;
      Candidate candidate;
      for (const ir::OpId op : part.op_map) candidate.units.push_back(graph.op(op).source_index);
      const auto known = std::ranges::find(before, candidate.units, &Candidate::units);
      if (known != before.end()) candidate.part = std::move(known->part);
      out.push_back(std::move(candidate));
    }
    return out;
  }

  // Compiles, to see what the NPU would really do. False: units were refused.
  bool judge(Candidate& candidate) {
    if (candidate.part != nullptr) return true;
    const auto drop = [&](const std::string& reason) {
      for (const int unit : candidate.units) refuse(unit, reason);
      return false;
    };
    const auto count = static_cast<int>(candidate.units.size());
    if (count < options_.min_nodes_per_partition)
      return drop(fmt::format("its partition has {} operations, fewer than min_nodes_per_partition={}", count,
                              options_.min_nodes_per_partition));
    auto made = propose(candidate.units);
    if (!made.ok()) return drop(made.error().message);
    candidate.part = std::move(made).value();
    return candidate.part != nullptr;
  }

  // Null: units were refused.
  Result<std::unique_ptr<Part>> propose(std::span<const int> chosen) {
    Lowering lowering(model_, type_);
    lower(lowering, units_, chosen, model_, links_);
    const auto refused = [&](int unit) { return !units_[static_cast<size_t>(unit)].refusal.empty(); };
    if (std::ranges::any_of(chosen, refused)) return std::unique_ptr<Part>();
    runtime::SessionOptions session = host::session_options(options_);
    session.partition = options_.session.partition;
    SK_TRY_ASSIGN(compile::Compiled compiled, runtime::compile_verified(target_, std::move(lowering.graph), session));
    const auto refusals = host::refusals_of(compiled, chosen);
    for (const host::Refusal& refusal : refusals) refuse(refusal.node, refusal.reason);
    if (!refusals.empty()) return std::unique_ptr<Part>();
    std::vector<int> nodes;
    for (const int unit : chosen) {
      const auto& own = units_[static_cast<size_t>(unit)].nodes;
      nodes.insert(nodes.end(), own.begin(), own.end());
    }
    SK_TRY_ASSIGN(auto made, runtime::Session::create(std::move(compiled), target_, session));
    return Part::create(model_, links_, std::move(nodes), taken(), lowering.inputs, lowering.outputs, std::move(made));
  }

  // Nodes of units that are ours, whatever part they are in.
  std::vector<bool> taken() const {
    std::vector<bool> out(model_.nodes.size());
    for (const Unit& unit : units_) {
      if (!unit.refusal.empty()) continue;
      for (const int node : unit.nodes) out[static_cast<size_t>(node)] = true;
    }
    return out;
  }

  // Keeps the parts of the most units. True: all.
  bool limit(std::vector<Candidate>& candidates) {
    const auto most = static_cast<size_t>(options_.max_delegated_partitions);
    std::vector<Candidate*> kept;
    for (Candidate& candidate : candidates) {
      if (candidate.part != nullptr) kept.push_back(&candidate);
    }
    if (most == 0 || kept.size() <= most) return true;
    std::ranges::stable_sort(kept, std::greater{}, [](const Candidate* one) { return one->units.size(); });
    for (size_t i = most; i < kept.size(); ++i) {
      for (const int unit : kept[i]->units)
        refuse(unit, fmt::format("max_delegated_partitions={} other partitions have more operations", most));
    }
    return false;
  }

  void list_refusals() {
    for (const Unit& unit : units_) {
      if (!unit.refusal.empty()) out_.refusals.push_back({unit.node, unit.refusal});
    }
  }

  const Model& model_;
  const Links links_;
  const runtime::Target& target_;
  const host::Options& options_;
  std::vector<Unit> units_;
  ir::DType type_ = ir::DType::uint8;
  Capability out_;
};

}  // namespace

Result<Whole> whole_of(const Model& model, const Links& links) {
  Whole out{.units = units_of(model, links)};
  out.type = type_of(out.units);
  std::vector<int> all(out.units.size());
  std::iota(all.begin(), all.end(), 0);
  Lowering lowering(model, out.type);
  lower(lowering, out.units, all, model, links);
  SK_TRY(ir::verify(lowering.graph));
  out.inputs = std::move(lowering.inputs);
  out.outputs = std::move(lowering.outputs);
  out.graph = std::move(lowering.graph);
  return out;
}

Result<Capability> capability_of(const Model& model, const runtime::Target& target, const host::Options& options) {
  return Chooser(model, target, options).run();
}

}  // namespace skillet::onnxruntime
