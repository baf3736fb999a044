// Kernel: one partition of a host's graph that we run; and State, which all kernels of one delegate share.
// Called by delegate.cpp through the host's node callbacks.
// Must not know: how partitions are chosen.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontend/tflite/delegate/c_api_buffers.h"
#include "frontend/tflite/delegate/delegate_options.h"
#include "frontend/tflite/delegate/graph_builder.h"
#include "frontend/tflite/delegate/program_cache.h"
#include "runtime/session.h"

namespace skillet::delegate {

// Kept alive by the delegate and by its kernels: some hosts destroy the delegate before the interpreter.
struct State {
  Options options;
  runtime::Target target;                  // without a driver: nothing is claimed
  std::unique_ptr<CachingDriver> caching;  // what target.driver points to when there is a cache
  CApiBuffers buffers;
  std::mutex device;  // interpreters on several threads may share a delegate; a device file is used by one at a time
};

class Kernel {
 public:
  // `nodes` in execution order; `outputs`: host tensors that others read. Compiles and loads.
  static Result<std::unique_ptr<Kernel>> create(TfLiteContext* context, std::shared_ptr<State> state,
                                                std::vector<HostNode> nodes, std::vector<int> outputs);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // After the host has (re)sized its tensors: compiles again when our inputs changed, and sizes our outputs.
  Result<void> prepare(TfLiteContext* context);
  // Reads and writes the host's memory wherever it is now.
  Result<void> invoke(TfLiteContext* context);

  std::span<const HostNode> nodes() const { return nodes_; }
  uint64_t macs() const { return macs_; }
  size_t jobs() const { return jobs_; }
  // What crosses between host and NPU in one run.
  uint64_t io_bytes() const { return io_bytes_; }
  // Why (a part of) this does not run on the NPU; empty: all of it does.
  const std::string& problem() const { return problem_; }
  // "N ops, M jobs, K bytes"
  const std::string& summary() const { return summary_; }

 private:
  Kernel(std::shared_ptr<State> state, std::vector<HostNode> nodes, std::vector<int> outputs)
      : state_(std::move(state)), nodes_(std::move(nodes)), host_outputs_(std::move(outputs)) {}
  Result<void> build(TfLiteContext* context);
  void describe();
  void log_copies();

  std::shared_ptr<State> state_;
  std::vector<HostNode> nodes_;
  std::vector<int> host_outputs_;
  std::unique_ptr<runtime::Session> session_;
  std::vector<int> inputs_, outputs_;  // host tensors, in the order of the session's inputs and outputs
  std::vector<std::span<const uint8_t>> input_bytes_;
  std::vector<std::span<uint8_t>> output_bytes_;
  uint64_t macs_ = 0, io_bytes_ = 0;
  size_t jobs_ = 0;
  std::optional<uint64_t> copied_bytes_;  // in the last run
  std::string problem_, summary_;
};

}  // namespace skillet::delegate
