#include "frontend/tflite_delegate/partitioner.h"

#include <algorithm>
#include <cstdlib>

#include "base/log.h"
#include "graph/ref/ref.h"

namespace skillet::delegate {
namespace {

struct FreeArray {
  void operator()(TfLiteIntArray* array) const { std::free(array); }
};
using IntArray = std::unique_ptr<TfLiteIntArray, FreeArray>;

IntArray int_array(const std::vector<int>& values) {
  IntArray array(static_cast<TfLiteIntArray*>(std::malloc(sizeof(TfLiteIntArray) + values.size() * sizeof(int))));
  if (array == nullptr) throw std::bad_alloc();
  array->size = static_cast<int>(values.size());
  std::ranges::copy(values, array->data());
  return array;
}

std::vector<host::Node> plain(const std::vector<HostNode>& nodes) {
  std::vector<host::Node> out;
  for (const HostNode& node : nodes) out.push_back({node.index, node.op.inputs, node.op.outputs});
  return out;
}

// Tensors that no op of the graph reads. Any of them may be a graph output: the context does not list outputs.
std::vector<int> unread(const std::vector<HostNode>& nodes) {
  std::set<int> produced;
  for (const HostNode& node : nodes) produced.insert(node.op.outputs.begin(), node.op.outputs.end());
  for (const HostNode& node : nodes) {
    for (const int id : node.op.inputs) produced.erase(id);
  }
  return {produced.begin(), produced.end()};
}

// True for a dynamic height or width that is 1 in the file until the host resizes it: the final size is unknown, so no
// time can be predicted.
bool is_still_free(const TfLiteTensor& tensor) {
  const auto dims = elements(tensor.dims), signature = elements(tensor.dims_signature);
  for (size_t i = 1; i < std::min(dims.size(), signature.size()); ++i)
    if (signature[i] < 0 && dims[i] == 1) return true;
  return false;
}

}  // namespace

Partitioner::Partitioner(TfLiteContext* context, std::shared_ptr<State> state, std::vector<HostNode> nodes)
    : context_(context),
      state_(std::move(state)),
      nodes_(std::move(nodes)),
      choice_(state_->target, options_for(*context, state_->options), plain(nodes_)) {}

Result<Partitioner> Partitioner::run(TfLiteContext* context, std::shared_ptr<State> state) {
  TfLiteIntArray* plan = nullptr;
  if (context->GetExecutionPlan(context, &plan) != kTfLiteOk)
    return error(ErrorCode::malformed, "the host gives no execution plan");
  const auto indices = elements(plan);
  const std::vector<int> copy(indices.begin(), indices.end());  // a copy, because the host reuses the array
  std::vector<HostNode> nodes;
  for (const int index : copy) {
    SK_TRY_ASSIGN(HostNode node, read_node(context, index));
    node.place = static_cast<int>(nodes.size());
    nodes.push_back(std::move(node));
  }
  Partitioner made(context, std::move(state), std::move(nodes));
  SK_TRY(made.ask_driver());
  SK_TRY(
      made.choice_.divide({.divide = [&] { return made.divide(); },
                           .propose = [&](const host::Set& set, bool by_cost) { return made.propose(set, by_cost); }}));
  for (const host::Set& set : made.choice_.parts()) made.kernels.push_back(std::move(made.made_.at(set)));
  made.told = made.choice_.told([&](int index) {
    const auto node = std::ranges::find(made.nodes_, index, &HostNode::index);
    return fmt::format("op {} {}", index, ir::op_name(node->op));
  });
  return made;
}

Result<void> Partitioner::ask_driver() {
  SK_TRY_ASSIGN(HostGraph built, build_graph(context_, nodes_, unread(nodes_)));
  shapes_ = std::move(built.shapes);
  together_ = {built.together.begin(), built.together.end()};
  host::Roles roles{.together = together_};
  std::set<int> made;  // tensors that are shapes
  for (const HostNode& node : shapes_) {
    roles.shapes.insert(node.index);
    made.insert(node.op.outputs.begin(), node.op.outputs.end());
  }
  for (const HostNode& node : nodes_) {
    if (together_.contains(node.index) && node.op.kind != ir::OpKind::opaque) roles.for_cpu.insert(node.index);
    const auto op = std::ranges::find(built.graph.ops, node.index, &ir::Op::source_index);
    if (std::ranges::any_of(node.op.inputs, [&](int id) { return made.contains(id); }) && op != built.graph.ops.end() &&
        ref::prepare(built.graph, static_cast<ir::OpId>(op - built.graph.ops.begin())).ok())
      roles.sized.insert(node.index);
  }
  by_ = state_->options.session.partition;
  if (by_ == compile::PartitionBy::predicted && std::ranges::any_of(built.graph.inputs, [&](ir::TensorId id) {
        return is_still_free(context_->tensors[built.host_tensor[static_cast<size_t>(id)]]);
      })) {
    log::info("{}", compile::kNothingPredicted);
    by_ = compile::PartitionBy::all;
  }
  for (size_t i = 0; i < built.refusal.size(); ++i) {
    if (!built.refusal[i].empty()) choice_.refuse(built.graph.ops[i].source_index, built.refusal[i]);
  }
  return choice_.ask(std::move(built.graph), std::move(roles));
}

Result<std::vector<host::Set>> Partitioner::divide() {
  std::vector<host::Set> sets;
  const std::vector<int> wanted = choice_.ours();
  if (wanted.empty()) return sets;
  TfLiteDelegateParams* params = nullptr;
  int count = 0;
  const IntArray nodes = int_array(wanted);
  if (context_->PreviewDelegatePartitioning(context_, nodes.get(), &params, &count) != kTfLiteOk || count < 0)
    return error(ErrorCode::malformed, "the host cannot divide its graph");
  for (int i = 0; i < count; ++i) {
    const auto replaced = elements(params[i].nodes_to_replace), outputs = elements(params[i].output_tensors);
    sets.push_back({{replaced.begin(), replaced.end()}, {outputs.begin(), outputs.end()}});
  }
  return sets;
}

Result<std::vector<Refusal>> Partitioner::propose(const host::Set& set, bool by_cost) {
  const auto shared = std::ranges::count_if(set.nodes, [&](int node) { return together_.contains(node); });
  if (shared != 0 && static_cast<size_t>(shared) != together_.size())
    return error(ErrorCode::unsupported, "the host would run other operations between operations that share memory");
  std::vector<HostNode> nodes;
  for (const int index : set.nodes) {
    const auto found = std::ranges::find(nodes_, index, &HostNode::index);
    if (found != nodes_.end()) nodes.push_back(*found);
  }
  SK_TRY_ASSIGN(auto kernel, Kernel::propose(context_, state_, std::move(nodes), set.outputs, shapes_,
                                             by_cost ? by_ : compile::PartitionBy::all, choice_.for_cpu()));
  choice_.add_compared(kernel->compared());
  std::vector<Refusal> refusals = kernel->refusals();
  if (refusals.empty()) made_[set] = std::move(kernel);
  return refusals;
}

}  // namespace skillet::delegate
