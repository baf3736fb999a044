// Partitioner: chooses which nodes of a host graph the NPU takes, and makes their kernels.
// Called by delegate.cpp in the host's Prepare. The context is valid only during that call.
// Must not know: the registration of kernels with the host.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "frontend/tflite_delegate/kernel.h"

namespace skillet::delegate {

class Partitioner {
 public:
  // Checks each node with the driver, lets the host form partitions, compiles each, and drops those that are not
  // profitable.
  static Result<Partitioner> run(TfLiteContext* context, std::shared_ptr<State> state);

  std::vector<std::unique_ptr<Kernel>> kernels;  // one for each partition
  host::Told told;

  std::vector<int> claimed() const { return choice_.ours(); }  // node indices, in execution order
  Result<void> check_strict() const { return choice_.check_strict(told); }

 private:
  Partitioner(TfLiteContext* context, std::shared_ptr<State> state, std::vector<HostNode> nodes);
  Result<void> ask_driver();
  Result<std::vector<host::Set>> divide();
  Result<std::vector<Refusal>> propose(const host::Set& set, bool by_cost);

  TfLiteContext* context_;
  std::shared_ptr<State> state_;
  std::vector<HostNode> nodes_;   // in execution order
  std::vector<HostNode> shapes_;  // the nodes that only compute shapes
  std::set<int> together_;        // HostGraph::together
  std::optional<compile::PartitionBy> by_;
  host::Choice choice_;
  std::map<host::Set, std::unique_ptr<Kernel>> made_;
};

}  // namespace skillet::delegate
