// Kernel: one partition of a host's graph that Skillet runs. State: shared by all kernels of one delegate.
// Called by delegate.cpp through the host's node callbacks.
// Must not know: how partitions are chosen.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "frontend/host/choice.h"
#include "frontend/host/target.h"
#include "frontend/tflite_delegate/c_api_buffers.h"
#include "frontend/tflite_delegate/graph_builder.h"
#include "frontend/tflite_delegate/profile.h"
#include "runtime/session.h"

namespace skillet::delegate {

// Shared ownership by the delegate and its kernels: some hosts destroy the delegate before the interpreter.
struct State {
  // With log=info, logs the use of the NPU: once a minute during runs, and at the end.
  ~State();
  void tell_use_now_and_then();

  host::Options options;
  runtime::Target target;  // without a driver: nothing is claimed
  CApiBuffers buffers;     // those in use on the target's own file
  std::mutex mutex;  // of `buffers`, and of building sessions: interpreters on several threads may share a delegate
  use::Totals told;  // as of the last report; guarded by `mutex`
  std::atomic<int64_t> told_ns = trace::now_ns();
};

// Options for a graph of this host: if host_threads is not given, the host's own number of threads (num_threads)
// counts.
host::Options options_for(const TfLiteContext& context, const host::Options& options);

using host::KeyValue;
using host::Options;
using host::parse_options;
using host::Refusal;

class Kernel {
 public:
  // `nodes`: in execution order; `outputs`: host tensors that other nodes read; `shapes`: host nodes that compute
  // shapes (HostGraph::shapes). Compiles and loads. Operations that the NPU does not take run on our CPU kernels.
  static Result<std::unique_ptr<Kernel>> create(TfLiteContext* context, std::shared_ptr<State> state,
                                                std::vector<HostNode> nodes, std::vector<int> outputs,
                                                std::vector<HostNode> shapes = {});
  // Compiles a candidate partition, by `by` (null: the default of sessions). If the NPU does not take all of it but
  // `for_cpu`, or it is not profitable to offload, nothing is loaded and refusals() returns the reasons.
  static Result<std::unique_ptr<Kernel>> propose(TfLiteContext* context, std::shared_ptr<State> state,
                                                 std::vector<HostNode> nodes, std::vector<int> outputs,
                                                 std::vector<HostNode> shapes, std::optional<compile::PartitionBy> by,
                                                 const std::set<int>& for_cpu);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // Call after the host has (re)sized its tensors. Compiles again if our inputs changed, and sizes our outputs.
  Result<void> prepare(TfLiteContext* context);
  // Call after prepare(). Removes inputs without memory from the node: hosts do not run a node that reads such a
  // tensor, and do not allocate tensors that no node computes.
  void leave_out_own_memory(TfLiteNode& host) const;
  // Reads and writes the host's memory at its current addresses.
  Result<void> invoke(TfLiteContext* context);

  std::span<const HostNode> nodes() const { return nodes_; }
  const std::vector<Refusal>& refusals() const { return refusals_; }
  // "N ops, M jobs, K bytes"
  const std::string& summary() const { return summary_; }
  const compile::Verified& compared() const { return compared_; }  // of the last build

 private:
  Kernel(std::shared_ptr<State> state, std::vector<HostNode> nodes, std::vector<int> outputs,
         std::vector<HostNode> shapes)
      : state_(std::move(state)),
        nodes_(std::move(nodes)),
        shapes_(std::move(shapes)),
        host_outputs_(std::move(outputs)) {}
  enum class Use { proposed, handed_over };
  Result<void> build(TfLiteContext* context, const runtime::SessionOptions& options, Use use,
                     Contents contents = Contents::prepared, const std::set<int>& for_cpu = {});
  bool fits(const TfLiteContext* context, Contents contents) const;
  bool waits_for_shapes(const TfLiteContext* context) const;
  Result<void> resize_outputs(TfLiteContext* context) const;
  Result<void> settle(TfLiteContext* context);  // as prepare(), during a run of the host
  void describe();
  void import_buffers();
  void log_copies();

  std::shared_ptr<State> state_;
  std::vector<HostNode> nodes_, shapes_;
  std::vector<int> host_outputs_;
  std::unique_ptr<runtime::Session> session_;
  std::vector<int> own_memory_;                   // host tensors that need no memory from the host
  std::vector<int> inputs_, outputs_;             // host tensors, in the order of the session's inputs and outputs
  std::vector<std::pair<int, Bytes>> settled_;    // host tensors that are shapes, with the contents of the last build
  std::vector<std::pair<int, ir::Shape>> sized_;  // host tensors from which shapes were computed
  bool deferred_ = false;                         // shapes are known only in the first run
  std::vector<std::span<const uint8_t>> input_bytes_;
  std::vector<std::span<uint8_t>> output_bytes_;
  std::optional<uint64_t> copied_bytes_;  // in the last run
  std::vector<Refusal> refusals_;
  std::string summary_;
  compile::Verified compared_;
  std::optional<Profile> profile_;  // with the option profile=1
};

}  // namespace skillet::delegate
