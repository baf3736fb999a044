// Partitioner: which nodes of one host graph the NPU takes, and their kernels.
// Called by delegate.cpp in the host's Prepare; its context is valid for that long only.
// Must not know: the registration of kernels with the host.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "frontend/tflite_delegate/kernel.h"

namespace skillet::delegate {

class Partitioner {
 public:
  Partitioner(TfLiteContext* context, std::shared_ptr<State> state) : context_(context), state_(std::move(state)) {}

  // Asks the driver node by node, lets the host form partitions, compiles each, and drops those that are not worth it.
  Result<void> run();

  std::vector<std::unique_ptr<Kernel>> kernels;  // one a partition
  size_t ops = 0;
  std::string advice;                 // what would let the NPU take more; may be empty
  std::vector<std::string> refusals;  // one line for each op that stays with the host
  std::string most_telling;  // of them: the first that the NPU would take, else that it could compute; or empty

  std::vector<int> claimed() const;  // node indices, in execution order

 private:
  struct Candidate {
    std::vector<int> nodes, outputs;
    std::unique_ptr<Kernel> kernel;
    std::vector<Refusal> refusals;  // of some of its nodes, or all; empty: it is kept
    void drop(const std::string& reason);
  };
  Result<void> ask_driver();
  // The host's division of wanted_. Candidates with the same nodes as before keep their kernels.
  Result<std::vector<Candidate>> divide(std::vector<Candidate> before);
  void judge(Candidate& candidate);
  void limit(std::vector<Candidate>& candidates) const;
  void refuse(int node, const std::string& reason);

  TfLiteContext* context_;
  std::shared_ptr<State> state_;
  void refuse_shapes();
  void refuse_together();
  bool is_only_sized(const HostNode& node) const;

  std::vector<HostNode> nodes_;   // in execution order
  std::vector<HostNode> shapes_;  // of them, those that only compute shapes
  std::set<int> together_;        // HostGraph::together
  std::set<int> for_cpu_;         // of them, those that our CPU kernels run
  std::optional<compile::PartitionBy> by_;
  std::vector<std::string> reason_;  // by position in nodes_; empty: claimed
};

}  // namespace skillet::delegate
