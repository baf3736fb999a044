// LoadedProgram: a driver::Program in the buffers of a device, ready to run many times.
// Called by Session.
// Must not know: drivers, the CPU kernels.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "driver/program.h"
#include "ir/graph.h"
#include "runtime/device_context.h"
#include "runtime/write_check.h"

namespace skillet::runtime {

// Puts the device address into a word: word[lsb + width - 1 : lsb] = (address + offset) >> shift.
// Error when it does not fit or when low bits would be lost.
Result<uint32_t> relocate(uint32_t word, const driver::Relocation& relocation, uint64_t address);

class CpuAccess;

class LoadedProgram {
 public:
  // Allocates and fills all buffers and runs the initialisation jobs that the device has not seen.
  // `graph` is what the program was compiled from; the bindings are checked against it.
  static Result<std::unique_ptr<LoadedProgram>> load(std::shared_ptr<DeviceContext> context, driver::Program program,
                                                     const ir::Graph& graph, std::chrono::nanoseconds timeout);
  ~LoadedProgram();
  LoadedProgram(const LoadedProgram&) = delete;
  LoadedProgram& operator=(const LoadedProgram&) = delete;

  const driver::Program& program() const { return program_; }  // without contents of buffers: they are on the device

  // Tensors by id of the compiled graph, host layout (NHWC, the graph's type), exactly the tensor's size. A tensor in a
  // shared buffer of the device is used in place where its layout and type allow, else copied once.
  // Before run(): where read_output() will want the tensor.
  Result<void> place_output(ir::TensorId tensor, std::span<uint8_t> bytes);
  Result<void> write_input(ir::TensorId tensor, std::span<const uint8_t> bytes);
  // Submits all jobs in order and waits for the last one.
  Result<void> run();
  Result<void> read_output(ir::TensorId tensor, std::span<uint8_t> bytes);
  // True when read() finds the tensor among inputs, outputs or intermediates.
  bool has(ir::TensorId tensor) const;
  // How many bytes of tensors have been copied so far.
  uint64_t copied_bytes() const { return copied_bytes_; }
  Result<void> read(ir::TensorId tensor, std::span<uint8_t> bytes);

 private:
  // A binding with the dimensions that its layout needs.
  struct Bound {
    driver::TensorBinding binding;
    int64_t images = 1, pixels = 1, channels = 1, elem_bytes = 1;
  };
  // Where a buffer's bytes are: in a buffer of the program, or inside a shared one.
  struct Place {
    uapi::Handle handle = 0;
    uint64_t address = 0;
    uint64_t offset_bytes = 0;  // in the handle's memory
    bool operator==(const Place&) const = default;
  };
  struct ReadyJob {
    std::string name;
    std::vector<uint32_t> stream;
    std::vector<uapi::SubmitBuffer> buffers;
  };

  LoadedProgram(std::shared_ptr<DeviceContext> context, driver::Program program, std::chrono::nanoseconds timeout)
      : context_(std::move(context)), program_(std::move(program)), timeout_(timeout) {}
  uapi::Device& device() { return *context_->device; }
  Result<void> allocate();
  Result<void> fill(driver::BufferId id);
  Result<void> bind(const std::vector<driver::TensorBinding>& bindings, const ir::Graph& graph,
                    std::vector<Bound>& bound);
  Result<ReadyJob> prepare(const driver::Job& job);
  Result<void> run_init_jobs();
  Result<void> run_jobs(std::span<const ReadyJob> jobs);
  const Bound* find(ir::TensorId tensor) const;
  Result<CpuAccess> open(const Bound& bound, bool write);
  std::span<uint8_t> tensor_bytes(const CpuAccess& access, const Bound& bound) const;
  bool can_move(const Bound& bound) const;
  Result<void> move(driver::BufferId id, const Place& place);
  std::vector<uapi::SubmitBuffer> list_buffers(const driver::Job& job) const;
  Place own_place(const Bound& bound) const {
    return {handles_[bound.binding.buffer], addresses_[bound.binding.buffer]};
  }
  // Where the tensor can be used: in shared memory when `bytes` are there, else in the program's own.
  Place best_place(const Bound& bound, std::span<const uint8_t> bytes) const;
  bool is_in_place(const Bound& bound, std::span<const uint8_t> bytes) const;
  // True: the tensor is where the caller has it.
  Result<bool> place(const Bound& bound, std::span<const uint8_t> bytes);
  Result<void> mark(const Bound& output);
  Result<void> watch_outputs();
  bool is_written_by_jobs(driver::BufferId buffer) const;
  bool is_only_an_output(const Bound& output) const;
  // False: the last run has not written the tensor.
  Result<bool> try_copy_out(const Bound& bound, std::span<uint8_t> bytes);
  Result<void> copy_out(const Bound& bound, std::span<uint8_t> bytes);

  std::shared_ptr<DeviceContext> context_;
  driver::Program program_;
  std::chrono::nanoseconds timeout_;
  std::vector<uapi::Handle> handles_;  // by BufferId
  std::vector<uint64_t> addresses_;    // by BufferId
  std::vector<Place> places_;          // by BufferId; handles_ and addresses_, but for tensors in shared buffers
  uint64_t copied_bytes_ = 0;
  std::vector<ReadyJob> jobs_;
  std::vector<Bound> inputs_, outputs_, intermediates_;
  std::map<const Bound*, WriteCheck> checks_;  // of outputs whose bytes come from jobs alone
};

}  // namespace skillet::runtime
