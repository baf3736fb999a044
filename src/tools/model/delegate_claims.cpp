#include "tools/model/delegate_claims.h"

#include <algorithm>

#include "base/environment.h"
#include "frontend/host/choice.h"
#include "frontend/host/target.h"
#include "graph/import/planned_memory.h"
#include "graph/ref/ref.h"

namespace skillet::tools {
namespace {

// Operations that only compute shapes have unread outputs: the importer has replaced their results by constants of the
// same names. Makes `nodes` read the results again, as the host's nodes do.
std::set<int> find_shapes(const ir::Graph& graph, std::vector<host::Node>& nodes) {
  const auto consumers = ir::consumers(graph);
  std::set<int> out;
  std::map<int, int> made;  // by constant
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const std::vector<ir::TensorId>& outputs = graph.ops[i].outputs;
    nodes[i].inputs = graph.ops[i].inputs;
    nodes[i].outputs = outputs;
    const auto is_read = [&](ir::TensorId id) {
      return !consumers[static_cast<size_t>(id)].empty() || std::ranges::count(graph.outputs, id) != 0;
    };
    if (std::ranges::any_of(outputs, is_read)) continue;
    const std::vector<ir::Tensor> known = ir::known_outputs(graph, static_cast<ir::OpId>(i), ref::compute);
    if (!known.empty()) out.insert(static_cast<int>(i));
    for (size_t j = 0; j < known.size(); ++j)
      for (size_t id = 0; id < graph.tensors.size(); ++id)
        if (const ir::Tensor& one = graph.tensors[id];
            one.is_constant() && one.name == known[j].name && std::ranges::equal(one.data, known[j].data))
          made[static_cast<int>(id)] = outputs[j];
  }
  for (host::Node& node : nodes)
    for (int& id : node.inputs)
      if (const auto found = made.find(id); found != made.end()) id = found->second;
  return out;
}

host::Roles roles_of(const ir::Graph& graph, std::vector<host::Node>& nodes) {
  host::Roles out{.shapes = find_shapes(graph, nodes)};
  for (const ir::OpId op : tflite::joined_by_memory(graph)) {
    out.together.insert(op);
    if (graph.op(op).kind != ir::OpKind::opaque) out.for_cpu.insert(op);
  }
  for (const host::Node& node : nodes)
    if (node.inputs != graph.op(node.index).inputs && ref::prepare(graph, node.index).ok())
      out.sized.insert(node.index);
  return out;
}

// Passes must not merge operations that stay with the host: makes them opaque.
ir::Graph without(ir::Graph graph, const LeftToHost& left) {
  for (const auto& [id, why] : left) {
    ir::Op& op = graph.ops[static_cast<size_t>(id)];
    op.opaque_name = std::string(ir::op_name(op));
    op.kind = ir::OpKind::opaque;
    op.attrs = ir::default_attrs(op.kind);
  }
  return graph;
}

Result<std::vector<host::Refusal>> propose(const runtime::Target& target, const ir::Graph& graph, const host::Set& set,
                                           const runtime::SessionOptions& session, const host::Choice& choice) {
  SK_TRY_ASSIGN(const compile::Compiled compiled, runtime::compile_for(target, host::graph_of(graph, set), session));
  std::set<int> needs_no_npu = choice.for_cpu();
  std::ranges::copy_if(set.nodes, std::inserter(needs_no_npu, needs_no_npu.end()),
                       [&](int node) { return choice.only_sizes(node); });
  return host::refusals_of(compiled, set.nodes, needs_no_npu);
}

}  // namespace

bool is_too_free(const ir::Graph& graph, const runtime::SessionOptions& session) {
  return graph.has_free_sizes && runtime::with_defaults(session).partition == compile::PartitionBy::predicted;
}

Result<DelegateClaims> delegate_claims(const runtime::Target& target, const ir::Graph& model,
                                       runtime::SessionOptions session, const LeftToHost& left) {
  const ir::Graph graph = without(model, left);
  host::Options options = host::parse_options({}, environment_variable);
  SK_TRY(host::tell_problems_once(options));
  options.session = runtime::with_defaults(std::move(session));
  if (is_too_free(graph, options.session)) options.session.partition = compile::PartitionBy::all;
  std::vector<host::Node> nodes = host::numbered(graph.ops.size());
  host::Roles roles = roles_of(graph, nodes);
  host::Choice choice(target, options, std::move(nodes));
  for (const auto& [op, why] : left) choice.refuse(op, why);
  SK_TRY(choice.ask(graph, std::move(roles)));
  SK_TRY(choice.divide({.divide = [&]() -> Result<std::vector<host::Set>> { return choice.closed_sets(graph); },
                        .propose =
                            [&](const host::Set& set, bool by_cost) {
                              runtime::SessionOptions one = options.session;
                              if (!by_cost) one.partition = compile::PartitionBy::all;
                              return propose(target, graph, set, one, choice);
                            }}));
  DelegateClaims out{.partitions = choice.parts().size()};
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const auto op = static_cast<ir::OpId>(i);
    const host::Refusal *const refusal = choice.refusal(op), *const kept = choice.kept(op);
    out.why_not.push_back(refusal == nullptr ? "" : refusal->plain);
    out.remedies.push_back(refusal != nullptr ? refusal->remedy : kept != nullptr ? kept->remedy : npu::Remedy::none);
    out.on_cpu.push_back(kept == nullptr ? "" : kept->plain);
    out.is_folded.push_back(refusal == nullptr && choice.only_sizes(op));
  }
  return out;
}

}  // namespace skillet::tools
