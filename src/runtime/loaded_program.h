// LoadedProgram: a npu::Program in the buffers of a device, ready to run many times.
// Called by Session.
// Must not know: drivers, the CPU kernels.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "graph/ir/graph.h"
#include "program/program.h"
#include "runtime/device_context.h"
#include "runtime/program_trace.h"
#include "runtime/write_check.h"

namespace skillet::runtime {

// Puts the device address into the bytes of a buffer. Error when it does not fit or when low bits would be lost.
Result<void> relocate(std::span<uint8_t> bytes, const npu::Relocation& relocation, uint64_t address);

class CpuAccess;

// The host's bytes of a tensor of the compiled graph.
using HostBytes = std::function<std::span<uint8_t>(ir::TensorId)>;

// Checks that `program` is for the chip and of this graph. load() calls it, wherever a program comes from.
Result<void> check_program(const npu::Program& program, std::string_view chip, const ir::Graph& graph);

class LoadedProgram {
 public:
  // Allocates and fills all buffers and runs the initialisation jobs that the device has not seen.
  // `graph` is what the program was compiled from; chip and bindings are checked against device and graph.
  static Result<std::unique_ptr<LoadedProgram>> load(std::shared_ptr<DeviceContext> context, npu::Program program,
                                                     const ir::Graph& graph, std::chrono::nanoseconds timeout);
  ~LoadedProgram();
  LoadedProgram(const LoadedProgram&) = delete;
  LoadedProgram& operator=(const LoadedProgram&) = delete;

  const npu::Program& program() const { return program_; }  // buffers without contents: these are on the device

  // One inference: copies the graph's inputs in, runs all jobs, copies its outputs out; inputs are only read. Tensors
  // are in host layout (NHWC, the graph's type), exactly the tensor's size. A tensor in a shared buffer of the device
  // is used in place if its layout and type allow, else copied once. A lost job causes a second run, then an error:
  // outputs are written only after every job has written its witness.
  Result<void> run(const HostBytes& bytes_of);
  // run() in two halves, for programs that run at the same time on several files. The caller holds the context's mutex
  // from before start() until after finish(), which must follow every successful start(). The device may read and write
  // the program's buffers until then.
  Result<void> start(const HostBytes& bytes_of);
  Result<void> finish(const HostBytes& bytes_of);
  // One extra run in which each job is submitted alone and waited for, in us; then another run with all jobs together,
  // whose outputs are written.
  Result<void> time_jobs(const HostBytes& bytes_of, std::vector<double>& alone_us, double& together_us);
  // True if read() can return the tensor: an input, output or intermediate.
  bool has(ir::TensorId tensor) const;
  // Only after a successful run. Waits for its turn on the device, like run() and time_jobs().
  Result<void> read(ir::TensorId tensor, std::span<uint8_t> bytes);
  // The handle of the program's own buffer on the device.
  kernels::Handle handle(npu::BufferId buffer) const { return own_places_[buffer].handle; }
  // Number of bytes of tensors that have been copied so far.
  uint64_t copied_bytes() const { return copied_bytes_; }

 private:
  using Binding = npu::TensorBinding;
  // Where a buffer's bytes are: in a buffer of the program, or inside a shared one.
  struct Place {
    kernels::Handle handle = 0;
    uint64_t address = 0;
    uint64_t offset_bytes = 0;  // in the handle's memory
    bool operator==(const Place&) const = default;
  };
  static constexpr kernels::JobId kUnprepared = 0;
  struct InitJob {
    Bytes commands;  // identifies the job
    kernels::JobId id = kUnprepared;
  };
  // A job's witness on a device that loses jobs.
  struct Watch {
    npu::ByteRange witness;
    WriteCheck check;
    bool was_written = true;  // at the last check
  };

  LoadedProgram(std::shared_ptr<DeviceContext> context, npu::Program program, std::chrono::nanoseconds timeout)
      : context_(std::move(context)), program_(std::move(program)), timeout_(timeout) {}
  kernels::Device& device() const { return *context_->device; }

  // ---- loading ----
  Result<void> set_up();
  Result<void> allocate();
  Result<void> place_constants();
  bool is_shared(const Place& place) const;
  Result<void> fill(npu::BufferId id);
  Result<void> relocate_all(npu::BufferId where, std::span<uint8_t> bytes) const;
  Result<kernels::JobId> prepare(const npu::Job& job);
  Result<void> prepare_init_jobs();

  // ---- running ----
  Result<void> wait(kernels::Fence fence);
  Result<void> run_init_jobs();
  Result<void> prepare_jobs();
  Result<void> submit_jobs();
  Result<void> time_each_job(const HostBytes& bytes_of, std::vector<double>& alone_us, double& together_us);
  Result<void> begin(const HostBytes& bytes_of);
  Result<void> restart(const HostBytes& bytes_of);
  Result<void> make_ready(const HostBytes& bytes_of);
  // False: a job has not written its witness.
  Result<bool> end(const HostBytes& bytes_of);
  Result<void> write_input(const Binding& input, std::span<const uint8_t> bytes);
  Result<bool> fetch_outputs(const HostBytes& bytes_of);
  void copy_out(const CpuAccess& access, const Binding& binding, std::span<uint8_t> bytes);

  // ---- witnesses (witnesses.cpp) ----
  void watch_jobs();
  bool is_watched(npu::BufferId buffer) const;
  std::span<uint8_t> witness_bytes(const CpuAccess& access, const Watch& watch) const;
  void mark(npu::BufferId buffer, const CpuAccess& access);
  Result<void> mark_all();
  bool settle(npu::BufferId buffer, const CpuAccess& access);
  std::string untouched_jobs() const;
  void forget_all();

  // ---- placement (placement.cpp) ----
  bool can_move(const Binding& binding) const;
  bool is_written_by_jobs(npu::BufferId buffer) const;
  Result<void> move(npu::BufferId id, const Place& place);
  Result<void> readdress(npu::BufferId where, const npu::Relocation& relocation, uint64_t address);
  void discard_jobs(npu::BufferId moved);
  std::vector<kernels::JobBuffer> list_buffers(const npu::Job& job) const;
  bool has_moved(npu::BufferId id) const { return places_[id] != own_places_[id]; }
  // Where the tensor can be used: in shared memory if `bytes` are there, else in the program's own buffer.
  Place best_place(const Binding& binding, std::span<const uint8_t> bytes) const;
  bool is_in_place(const Binding& binding, std::span<const uint8_t> bytes) const;
  Result<void> place(const Binding& binding, std::span<const uint8_t> bytes);
  Result<void> place_output(const Binding& output, const HostBytes& bytes_of);

  Result<CpuAccess> open(npu::BufferId id, bool write);
  std::span<uint8_t> tensor_bytes(const CpuAccess& access, const Binding& binding) const;
  const Binding* find(ir::TensorId tensor) const;

  std::shared_ptr<DeviceContext> context_;
  npu::Program program_;
  std::chrono::nanoseconds timeout_;    // of a run, for all its waits together
  std::chrono::milliseconds waited_{};  // waited so far in this run
  std::shared_ptr<const ConstantBlock> constants_;
  std::vector<Place> own_places_;  // by BufferId
  std::vector<Place> places_;      // by BufferId; equal to own_places_ except for tensors in shared buffers
  uint64_t copied_bytes_ = 0;
  std::vector<InitJob> init_jobs_;
  std::optional<kernels::Fence> fence_;  // of jobs that are submitted and not yet waited for
  std::vector<kernels::JobId> jobs_;     // in the program's order; kUnprepared: prepared at the next run
  std::vector<Binding> outputs_;         // in the program's order, but those in buffers with witnesses first
  std::vector<Watch> watches_;
  std::vector<npu::BufferId> watched_;   // buffers that hold witnesses, each once
  bool has_results_ = false;             // of the last run
  std::unique_ptr<ProgramTrace> trace_;  // null: nothing is traced
};

}  // namespace skillet::runtime
