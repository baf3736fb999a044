// Kernel: one partition of a host's graph that we run; and State, which all kernels of one delegate share.
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

// Kept alive by the delegate and by its kernels: some hosts destroy the delegate before the interpreter.
struct State {
  // With log=info the host's log says whether the NPU works: once a minute while there are runs, and at the end.
  ~State();
  void tell_use_now_and_then();

  host::Options options;
  runtime::Target target;  // without a driver: nothing is claimed
  CApiBuffers buffers;     // those in use on the target's own file
  std::mutex mutex;  // of `buffers`, and of building sessions: interpreters on several threads may share a delegate
  use::Totals told;  // of what was said last; `mutex` guards it
  std::atomic<int64_t> told_ns = trace::now_ns();
};

using host::KeyValue;
using host::Options;
using host::parse_options;
using host::Refusal;

class Kernel {
 public:
  // `nodes` in execution order; `outputs`: host tensors that others read; `shapes`: the host's nodes that compute
  // shapes (HostGraph::shapes). Compiles and loads; what the NPU does not take runs on our CPU kernels.
  static Result<std::unique_ptr<Kernel>> create(TfLiteContext* context, std::shared_ptr<State> state,
                                                std::vector<HostNode> nodes, std::vector<int> outputs,
                                                std::vector<HostNode> shapes = {});
  // The same for a partition that is still to be chosen, by `by` (null: as sessions do): where the NPU does not take
  // all of it but `for_cpu`, or where it is not profitable to offload, nothing is loaded and refusals() has the
  // reasons.
  static Result<std::unique_ptr<Kernel>> propose(TfLiteContext* context, std::shared_ptr<State> state,
                                                 std::vector<HostNode> nodes, std::vector<int> outputs,
                                                 std::vector<HostNode> shapes, std::optional<compile::PartitionBy> by,
                                                 const std::set<int>& for_cpu);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // After the host has (re)sized its tensors: compiles again when our inputs changed, and sizes our outputs.
  Result<void> prepare(TfLiteContext* context);
  // After prepare(): hosts run no node that reads what has no memory, and give none to what nobody computes.
  void leave_out_own_memory(TfLiteNode& host) const;
  // Reads and writes the host's memory wherever it is now.
  Result<void> invoke(TfLiteContext* context);

  std::span<const HostNode> nodes() const { return nodes_; }
  const std::vector<Refusal>& refusals() const { return refusals_; }
  // "N ops, M jobs, K bytes"
  const std::string& summary() const { return summary_; }
  const compile::Verified& compared() const { return compared_; }  // when it was built

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
  Result<void> settle(TfLiteContext* context);  // as prepare(), while the host runs
  void describe();
  void import_buffers();
  void log_copies();

  std::shared_ptr<State> state_;
  std::vector<HostNode> nodes_, shapes_;
  std::vector<int> host_outputs_;
  std::unique_ptr<runtime::Session> session_;
  std::vector<int> own_memory_;                   // host tensors that the host need not give memory to
  std::vector<int> inputs_, outputs_;             // host tensors, in the order of the session's inputs and outputs
  std::vector<std::pair<int, Bytes>> settled_;    // host tensors that are shapes, as they were
  std::vector<std::pair<int, ir::Shape>> sized_;  // host tensors that shapes were computed from
  bool deferred_ = false;                         // shapes come with the run
  std::vector<std::span<const uint8_t>> input_bytes_;
  std::vector<std::span<uint8_t>> output_bytes_;
  std::optional<uint64_t> copied_bytes_;  // in the last run
  std::vector<Refusal> refusals_;
  std::string summary_;
  compile::Verified compared_;
  std::optional<Profile> profile_;  // where the option asks for it
};

}  // namespace skillet::delegate
