// Session: a graph that is ready to run on a target: parts on the NPU, the rest on the CPU kernels.
// Called by tools, the C interface and the TFLite delegate.
// Must not know: anything of one vendor; file formats of models.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/trace.h"
#include "compile/compile.h"
#include "compile/report.h"
#include "compile/tuning_file.h"
#include "graph/ir/graph.h"
#include "graph/ref/ref.h"
#include "npu/driver.h"
#include "runtime/device_context.h"
#include "runtime/loaded_program.h"

namespace skillet::runtime {

// SessionOptions::min_macs_per_byte, unless set otherwise: a CPU with SIMD does some multiply-accumulates in the
// time it takes to copy a byte out and another one in. A guess until measured on a board.
inline constexpr uint64_t kMacsPerByte = 4;

class ProgramStore;

struct SessionOptions {
  npu::CompileOptions compile;
  // An op that cannot be compiled, and a part whose device fails, run on the CPU. A warning is logged once.
  bool allow_fallback = true;
  // Makes tensor() and compare_layers() work for tensors inside NPU parts. Same as compile.keep_intermediates.
  bool keep_intermediates = false;
  std::chrono::milliseconds timeout{10'000};          // of one run of one part on the device
  std::string cache_dir;                              // folder of compiled programs; empty: none
  std::shared_ptr<ProgramStore> programs;             // stores programs: a compiled model's and new ones; null: none
  std::string tuning_file;                            // from `skillet tune`; sets the tuning to `tuned`; empty: none
  std::shared_ptr<const compile::TuningFile> tuning;  // replaces tuning_file; null: none
  // None: `work` if min_macs_per_byte is set, else `all`.
  std::optional<compile::PartitionBy> partition;
  // For `work`, and for `predicted` if the chip is not timed; none: kMacsPerByte.
  std::optional<uint64_t> min_macs_per_byte;
  // For `predicted`: large cores of the CPU that run the CPU's ops, at most as many as there are; 0: all.
  std::optional<int> host_threads;  // none: 0
  // Maximum number of cores of an NPU that share one inference, in bands of rows. 0: all cores, but only if that is
  // predicted to be faster. 2 or more: bands are used wherever possible.
  int cores = 0;
  // Every `verify_every` runs the NPU's results are compared with the CPU's, on the current inputs. Operations that are
  // wrong run on the CPU from then on, and the trust refutes them. 0: never.
  uint64_t verify_every = 0;
  std::string trace;          // file for a trace, see base/trace.h; empty: none
  bool longest_runs = false;  // for tests: see compile::Runs
};

compile::PartitionBy partition_of(const SessionOptions& options);
// Sets the defaults that the command, the delegate, the C interface and Python share, so that a model is divided the
// same by all: the NPU gets what is predicted to be faster there than on one core of the host's CPU (TensorFlow Lite
// uses one thread unless set otherwise).
SessionOptions with_defaults(SessionOptions options);

class VerifyAgain;

// Compiles for a session with these options.
Result<compile::Compiled> compile_for(const Target& target, ir::Graph graph, const SessionOptions& options);
// The same without programs: only what the driver would take.
Result<compile::Compiled> plan_for(const Target& target, ir::Graph graph, const SessionOptions& options);
// Compiles the program of one part, or of one of its bands, as compile_for() does; never uses the cache.
Result<npu::Program> compile_part(const Target& target, const ir::Graph& part, const SessionOptions& options);

// Error: the target's driver does not support these options for any graph.
Result<void> check_options(const Target& target, const npu::CompileOptions& options);

struct PartReport {
  bool on_npu = false;
  std::vector<ir::OpId> ops;  // of Session::graph()
  double compile_ms = 0;      // NPU: driver compile; CPU: preparing the kernels
  double load_ms = 0;         // NPU: buffers, upload, initialisation jobs
  double run_ms = 0;          // last run, uploads and downloads included
  std::vector<double> op_ms;  // last run, by `ops`, if the CPU ran them; empty: an NPU runs them as one
  uint64_t copied_bytes = 0;  // last run, inputs and outputs; 0: all are in shared buffers, unconverted
  std::string note;           // the decision about several cores; empty: none
  std::string fallback;       // why an NPU part runs on the CPU; empty: it runs on the NPU
};

struct Report {
  double passes_ms = 0;
  compile::Verified verified;         // comparisons made before the session was prepared
  std::vector<PartReport> parts;      // in execution order
  std::vector<compile::OpPlace> ops;  // by op of Session::graph(); an NPU part may have fallen back later
  size_t model_ops = 0;               // number of ops in the model, before the passes
  std::vector<passes::Rewrite> rewrites;
  compile::ModelKeys model_keys;  // only with verify_every
};

// Compares one output tensor of one NPU op with the CPU kernel's, computed from the NPU's own inputs.
struct LayerDiff {
  ir::OpId op = -1;
  ir::TensorId tensor = ir::kNoTensor;
  bool compared = false;  // false: the NPU keeps no bytes of this tensor (it is fused into a later op)
  int64_t elems = 0;
  int64_t differing = 0, beyond_one = 0;
  double max_abs_diff = 0;  // in units of the stored type
  // `written_as`: number of ops that compute the model's op of this one. `is_result`: whether the tensor is a result of
  // the model's op. If so, the fields `..._of_result` compare with the CPU kernels of the model's own ops (without a
  // model: of all ops that the passes wrote for it), computed from the nearest tensors of the model that the NPU has.
  int32_t written_as = 1;
  bool is_last = true;        // this op is the last of them
  std::string place() const;  // ", last of 3"; empty: there is only one
  bool is_result = true;
  int64_t differing_of_result = 0, beyond_one_of_result = 0;
  double max_of_result = 0;
};

// A job of an NPU part, run alone on the device, in us.
struct JobTime {
  std::string name;
  std::string operations;  // what it computes; empty: not known
  double first_us = 0, mean_us = 0;
  std::optional<double> predicted_us;  // by the timing model, without the host's share; none: the chip is not timed
};
struct JobTimes {
  std::vector<JobTime> jobs;  // none: the part has no program of its own, or is divided into bands
  double together_us = 0;     // all jobs submitted at once, on average
};

class Session {
 public:
  // Runs the passes, divides the graph, compiles and loads the NPU parts, prepares the CPU kernels.
  // Errors name the op, tensor or device.
  static Result<std::unique_ptr<Session>> create(ir::Graph graph, const Target& target,
                                                 const SessionOptions& options = {});
  // The same from the result of compile_for().
  static Result<std::unique_ptr<Session>> create(compile::Compiled compiled, const Target& target,
                                                 const SessionOptions& options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The graph after the passes. Tensor ids are those of the graph given to create(); ops may have been reordered.
  const ir::Graph& graph() const { return graph_; }
  const Report& report() const { return report_; }
  // The device file that runs the NPU parts; null: none.
  const std::shared_ptr<DeviceContext>& context() const { return target_.context; }
  // Compiled NPU programs of a part: none for CPU parts, several if it is in bands. Buffers lose their contents once
  // loaded.
  std::vector<const npu::Program*> programs(size_t part) const;

  // Bytes of graph input `index` (in Graph::inputs order): exactly the tensor's size, NHWC, the model's type.
  Result<void> set_input(size_t index, std::span<const uint8_t> bytes);
  Result<void> run();
  // Graph output `index`; valid until the next run. Error unless the last run was run() and succeeded.
  Result<std::span<const uint8_t>> output(size_t index) const;
  // set_input for all, run, all outputs.
  Result<std::vector<Bytes>> run(std::span<const std::span<const uint8_t>> inputs);

  // The same on the caller's memory (in place if it is in a shared buffer of the device), without intermediate copies
  // and, in the steady state, without allocations. Sizes must be the tensors'. Inputs may overlap outputs (they are
  // copied first); outputs must not overlap each other. Afterwards output() and tensor() do not return these tensors.
  Result<void> run_on(std::span<const std::span<const uint8_t>> inputs, std::span<const std::span<uint8_t>> outputs);

  // Bytes of any tensor after a successful run, in host layout. Error if the tensor exists only inside the NPU.
  Result<Bytes> tensor(ir::TensorId id);

  // Times the jobs of a part in `runs` runs, on the current inputs.
  Result<JobTimes> time_jobs(size_t part, int runs);

  // After a successful run(): each op of each NPU part, in order. Needs keep_intermediates to see more than the parts'
  // outputs; if an op's input was not kept, the CPU kernels compute it from the nearest tensors that were. `model`: the
  // graph given to create(), with which results are compared; null: the graph after the passes.
  Result<std::vector<LayerDiff>> compare_layers(const ir::Graph* model = nullptr);

 private:
  struct Part;
  Session(ir::Graph graph, const Target& target, const SessionOptions& options);
  Result<void> prepare(compile::Compiled compiled);
  Result<void> prepare_tensors();
  void prepare_outputs();
  void take_devices(const std::vector<compile::Part>& parts);
  Result<void> prepare_part(size_t index, compile::Part compiled);
  Result<void> load(Part& part, compile::Part compiled);
  using Kernels = std::vector<std::unique_ptr<ref::Kernel>>;
  // Why neither the CPU nor the NPU runs an operation.
  Error runs_nowhere(ir::OpId op, Error cpu) const;
  Result<Kernels> prepare_cpu(Part& part);
  Result<void> fall_back(size_t index, const Error& cause);
  Result<void> run_parts();
  Error wrong_size(ir::TensorId id, size_t size_bytes) const;
  Result<void> check_memory(std::span<const std::span<const uint8_t>> inputs,
                            std::span<const std::span<uint8_t>> outputs) const;
  Result<void> has_results() const;
  void give_back();
  Result<void> run_part(size_t index);
  Result<void> run_npu(Part& part);
  Result<void> verify_again(size_t index);
  Result<void> run_cpu(Part& part, std::vector<double>& op_ms);
  Result<void> reserve(ir::TensorId id);

  ir::Graph graph_;
  Target target_;
  std::vector<std::shared_ptr<DeviceContext>> contexts_;  // target_.context first; more for parts in bands
  SessionOptions options_;
  Report report_;
  std::string kept_in_;  // Compiled::kept_in
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<Bytes> storage_;             // by tensor; empty if the host has no bytes of it
  std::vector<std::span<uint8_t>> spans_;  // by tensor; what kernels read and write, constants included
  std::vector<bool> is_copy_;              // by graph output: no op writes it where the caller wants it
  std::vector<Bytes> kept_;                // by graph output: those that are also inputs, as of the last run()
  std::unique_ptr<VerifyAgain> again_;     // null: nothing is compared
  trace::Lease trace_;
  uint64_t runs_ = 0;
  enum class Results { none, failed, here, with_caller } results_ = Results::none;  // of the last run
};

// Where each op runs and why not on the NPU, times per part: as text, and as rows.
std::string explain(const Session& session);
std::vector<compile::OpRow> rows(const Session& session);
// The model's own operations and where they ran last, with those that a failure moved to the CPU.
compile::ModelUse model_use(const Session& session);
// By op of the session's graph: true if jobs of the NPU compute it.
std::vector<bool> works_on_npu(const Session& session);
size_t jobs_of(const Session& session, size_t part);

}  // namespace skillet::runtime
