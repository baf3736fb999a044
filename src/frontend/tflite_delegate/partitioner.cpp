#include "frontend/tflite_delegate/partitioner.h"

#include <algorithm>
#include <cstdlib>

#include "compile/advice.h"

namespace skillet::delegate {
namespace {

// Dropping one partition may change how the host divides the rest; each round drops at least one.
constexpr int kMaxRounds = 16;

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

// What no op of the graph reads: as far as we can see from a context, that may be an output.
std::vector<int> unread(const std::vector<HostNode>& nodes) {
  std::set<int> produced;
  for (const HostNode& node : nodes) produced.insert(node.op.outputs.begin(), node.op.outputs.end());
  for (const HostNode& node : nodes) {
    for (const int id : node.op.inputs) produced.erase(id);
  }
  return {produced.begin(), produced.end()};
}

// Rows or columns of any number, of which the file has 1 until the host resizes: what is faster then nobody knows.
bool is_still_free(const TfLiteTensor& tensor) {
  const auto dims = elements(tensor.dims), signature = elements(tensor.dims_signature);
  for (size_t i = 1; i < std::min(dims.size(), signature.size()); ++i)
    if (signature[i] < 0 && dims[i] == 1) return true;
  return false;
}

}  // namespace

Result<void> Partitioner::run() {
  SK_TRY(ask_driver());
  std::vector<Candidate> candidates;
  for (int round = 0; round < kMaxRounds; ++round) {
    refuse_shapes();
    refuse_together();
    SK_TRY_ASSIGN(candidates, divide(std::move(candidates)));
    for (Candidate& candidate : candidates) judge(candidate);
    limit(candidates);
    bool all_stay = true;
    for (const Candidate& candidate : candidates) {
      for (const Refusal& refusal : candidate.refusals) refuse(refusal.node, refusal.reason);
      all_stay &= candidate.refusals.empty();
    }
    if (all_stay) {
      for (Candidate& candidate : candidates) kernels.push_back(std::move(candidate.kernel));
      break;
    }
  }
  if (kernels.empty()) {
    for (const HostNode& node : nodes_) refuse(node.index, "the host's partitions of the rest keep changing");
  }
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (reason_[i].empty()) continue;
    const std::string_view name = ir::op_name(nodes_[i].op);
    refusals.push_back(fmt::format("op {} {}: {}", nodes_[i].index, name, reason_[i]));
    const std::string& line = refusals.back();
    const bool would_go = line.ends_with(host::kTakenByAll) && !most_telling.ends_with(host::kTakenByAll);
    if (would_go || (most_telling.empty() && !compile::keeps_state_or_branches(nodes_[i].op))) most_telling = line;
  }
  return {};
}

void Partitioner::refuse(int node, const std::string& reason) {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].index == node && reason_[i].empty())
      reason_[i] = reason.empty() ? "the NPU's driver does not take it" : reason;
  }
}

// The host computes the shapes that its own nodes read; the others go with those that read them, where they are known.
void Partitioner::refuse_shapes() {
  std::set<int> read_by_host;
  for (size_t i = nodes_.size(); i-- > 0;) {
    const HostNode& node = nodes_[i];
    const auto is_read = [&](int id) { return read_by_host.contains(id); };
    if (std::ranges::count(shapes_, node.index, &HostNode::index) != 0 && std::ranges::any_of(node.op.outputs, is_read))
      refuse(node.index, "the host needs the shape that it computes");
    if (!reason_[i].empty()) read_by_host.insert(node.op.inputs.begin(), node.op.inputs.end());
  }
}

// Values that stay in memory between them are nothing that the host knows of: where one is not ours, none is.
void Partitioner::refuse_together() {
  std::string why;
  for (size_t i = 0; i < nodes_.size() && why.empty(); ++i) {
    if (together_.contains(nodes_[i].index) && !reason_[i].empty())
      why = fmt::format("it shares memory with others, of which op {} {} stays with the host: {}", nodes_[i].index,
                        ir::op_name(nodes_[i].op), reason_[i]);
  }
  if (why.empty()) return;
  for (const int node : together_) refuse(node, why);
}

// Only its shape is read, by what computes shapes: it goes where they go, and nobody computes it.
bool Partitioner::is_only_sized(const HostNode& node) const {
  bool is_read = false;
  for (const HostNode& reader : nodes_) {
    const auto reads = [&](int id) { return std::ranges::count(reader.op.inputs, id) != 0; };
    if (std::ranges::none_of(node.op.outputs, reads)) continue;
    if (std::ranges::count(shapes_, reader.index, &HostNode::index) == 0) return false;
    is_read = true;
  }
  return is_read;
}

void Partitioner::Candidate::drop(const std::string& reason) {
  for (const int node : nodes) refusals.push_back({node, reason});
}

Result<void> Partitioner::ask_driver() {
  TfLiteIntArray* plan = nullptr;
  if (context_->GetExecutionPlan(context_, &plan) != kTfLiteOk)
    return error(ErrorCode::malformed, "the host gives no execution plan");
  const auto indices = elements(plan);
  const std::vector<int> copy(indices.begin(), indices.end());  // the host reuses the array
  for (const int index : copy) {
    SK_TRY_ASSIGN(HostNode node, read_node(context_, index));
    nodes_.push_back(std::move(node));
  }
  ops = nodes_.size();
  SK_TRY_ASSIGN(HostGraph built, build_graph(context_, nodes_, unread(nodes_)));
  shapes_ = std::move(built.shapes);
  together_ = {built.together.begin(), built.together.end()};
  for (const HostNode& node : nodes_)
    if (together_.contains(node.index) && node.op.kind != ir::OpKind::opaque) for_cpu_.insert(node.index);
  by_ = state_->options.session.partition;
  if (by_ == compile::PartitionBy::predicted && std::ranges::any_of(built.graph.inputs, [&](ir::TensorId id) {
        return is_still_free(context_->tensors[built.host_tensor[static_cast<size_t>(id)]]);
      })) {
    log::info("{}", compile::kNothingPredicted);
    by_ = compile::PartitionBy::all;
  }
  reason_.resize(nodes_.size());
  for (size_t i = 0; i < built.refusal.size(); ++i) {
    if (!built.refusal[i].empty()) refuse(built.graph.ops[i].source_index, built.refusal[i]);
  }
  advice = compile::quantization_advice(
      built.graph, {state_->target.driver, state_->target.chip, state_->options.session.compile.per_channel},
      compile::Rest::in_the_host);
  const runtime::SessionOptions options = host::session_options(state_->options);
  SK_TRY_ASSIGN(const compile::Compiled planned, runtime::plan_for(state_->target, std::move(built.graph), options));
  const host::Planned made = host::planned_for(planned);
  for (const Refusal& refusal : made.refusals)
    if (!for_cpu_.contains(refusal.node)) refuse(refusal.node, refusal.reason);
  std::set<int> left(made.left.begin(), made.left.end());  // by the passes
  for (const HostNode& node : shapes_) left.insert(node.index);
  for (const HostNode& node : nodes_) {
    if (!left.contains(node.index) && !is_only_sized(node) && !together_.contains(node.index))
      refuse(node.index, "nothing reads what it computes");
  }
  return {};
}

std::vector<int> Partitioner::claimed() const {
  std::vector<int> indices;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (reason_[i].empty()) indices.push_back(nodes_[i].index);
  }
  return indices;
}

Result<std::vector<Partitioner::Candidate>> Partitioner::divide(std::vector<Candidate> before) {
  std::vector<Candidate> candidates;
  const std::vector<int> wanted = claimed();
  if (wanted.empty()) return candidates;
  TfLiteDelegateParams* params = nullptr;
  int count = 0;
  const IntArray nodes = int_array(wanted);
  if (context_->PreviewDelegatePartitioning(context_, nodes.get(), &params, &count) != kTfLiteOk || count < 0)
    return error(ErrorCode::malformed, "the host cannot divide its graph");
  for (int i = 0; i < count; ++i) {
    const auto replaced = elements(params[i].nodes_to_replace), outputs = elements(params[i].output_tensors);
    Candidate candidate{.nodes = {replaced.begin(), replaced.end()}, .outputs = {outputs.begin(), outputs.end()}};
    const auto known = std::ranges::find_if(before, [&](const Candidate& other) {
      return other.nodes == candidate.nodes && other.outputs == candidate.outputs;
    });
    if (known != before.end()) candidate.kernel = std::move(known->kernel);
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

// Compiles, to see what the NPU would really do.
void Partitioner::judge(Candidate& candidate) {
  const int minimum = state_->options.min_nodes_per_partition;
  if (static_cast<int>(candidate.nodes.size()) < minimum)
    return candidate.drop(fmt::format("its partition has {} ops, fewer than min_nodes_per_partition={}",
                                      candidate.nodes.size(), minimum));
  const auto shared = std::ranges::count_if(candidate.nodes, [&](int node) { return together_.contains(node); });
  if (shared != 0 && static_cast<size_t>(shared) != together_.size())
    return candidate.drop("the host would run other operations between those that share memory");
  if (candidate.kernel == nullptr) {
    std::vector<HostNode> nodes;
    for (const int index : candidate.nodes) {
      const auto found = std::ranges::find(nodes_, index, &HostNode::index);
      if (found != nodes_.end()) nodes.push_back(*found);
    }
    auto kernel = Kernel::propose(context_, state_, std::move(nodes), candidate.outputs, shapes_, by_, for_cpu_);
    if (!kernel.ok()) return candidate.drop(kernel.error().message);
    candidate.kernel = std::move(kernel).value();
  }
  candidate.refusals = candidate.kernel->refusals();
}

// Keeps the partitions with the most work.
void Partitioner::limit(std::vector<Candidate>& candidates) const {
  const auto most = static_cast<size_t>(state_->options.max_delegated_partitions);
  std::vector<Candidate*> kept;
  for (Candidate& candidate : candidates) {
    if (candidate.refusals.empty()) kept.push_back(&candidate);
  }
  if (most == 0 || kept.size() <= most) return;
  std::ranges::stable_sort(kept, std::greater{}, [](const Candidate* one) { return one->kernel->macs(); });
  for (size_t i = most; i < kept.size(); ++i)
    kept[i]->drop(fmt::format("max_delegated_partitions={} other partitions have more work", most));
}

}  // namespace skillet::delegate
