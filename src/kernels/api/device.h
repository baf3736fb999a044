// Device: the kernel boundary. Buffers with device addresses, jobs of commands in buffers, waits.
// Called by runtime/; implemented in kernels/<kernel>/client/.
// Must not know: graphs, programs, what the bytes mean.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "capture/capture.h"
#include "kernels/api/syscalls.h"

namespace skillet::kernels {

using Handle = uint32_t;  // of a buffer; never 0
using JobId = uint32_t;   // of a prepared job; never 0
using Fence = uint64_t;

// A command list in a buffer of alloc_commands().
struct Commands {
  Handle buffer = 0;
  uint64_t offset_bytes = 0, size_bytes = 0;
};

struct JobBuffer {
  Handle handle = 0;
  bool read = false;
  bool write = false;
  uint8_t slot = 0;       // buffer slot, for kernel drivers with numbered slots
  bool constant = false;  // no job writes it: where listed buffers order the jobs, it need not be listed
};

// One job of the kernel driver, which limits the number of command lists: etnaviv one, rocket one for each task, ethosu
// one.
struct Job {
  std::string name;  // for errors
  std::vector<Commands> commands;
  std::vector<JobBuffer> buffers;  // all other buffers that the job accesses, each once
  uint64_t sram_bytes = 0;         // on-chip memory
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const capture::DeviceInfo& info() const = 0;
  // A zeroed buffer, mapped at a fixed device address, aligned to at least 4096 bytes.
  virtual Result<Handle> alloc(uint64_t size_bytes) = 0;
  // The same for commands. If the kernel driver reads them from process memory, they have no address on the device.
  virtual Result<Handle> alloc_commands(uint64_t size_bytes) = 0;
  virtual Result<void> free(Handle handle) = 0;
  virtual Result<uint64_t> address(Handle handle) const = 0;  // 0: none
  // CPU view, valid until free(). Wrap accesses in begin_cpu()/end_cpu().
  virtual Result<std::span<uint8_t>> map(Handle handle) = 0;
  virtual Result<void> begin_cpu(Handle handle, bool write) = 0;
  virtual Result<void> end_cpu(Handle handle) = 0;
  // Prepares a job that can be submitted many times. Its commands are read now or at submission: prepare the job again
  // after changing them.
  virtual Result<JobId> prepare(const Job& job) = 0;
  virtual void release(JobId id) = 0;
  // Starts jobs in this order, each after the jobs that it depends on, in as few calls as the kernel driver allows. The
  // fence covers all of them. After an error the jobs before the failed one may run.
  virtual Result<Fence> submit(std::span<const JobId> jobs) = 0;
  virtual Result<void> wait(Fence fence, std::chrono::nanoseconds timeout) = 0;

  // True: a job that hangs is dropped and counts as finished, so that only its unwritten outputs show it.
  virtual bool loses_jobs() const = 0;

  // Replaces the destructor in a child of fork(): closes the child's descriptor and touches nothing else, because
  // threads of the parent may have been changing it.
  virtual void leave_to_parent() {}

  // A file descriptor of the buffer's memory, which the caller closes. An emulated kernel driver gives a memfd.
  virtual Result<int> export_dmabuf(Handle handle);
  // Imports memory of another device or process as a buffer; `fd` remains the caller's. Call free() once for each
  // import.
  virtual Result<Handle> import_dmabuf(int fd);
};

// Name of the fact with the number of equal cores that one Core represents, if its kernel driver shares them out
// itself: each open device uses one at a time.
inline constexpr const char* kCoresFact = "cores";

// One core of a device node. A node may have cores that are not NPUs; the ids show it.
struct Core {
  capture::DeviceInfo info;
  uint32_t index = 0;  // in its node
  // Skips turns even if cores disturb each other (Notes): hold_turn() takes one turn for all files of a command.
  bool takes_no_turns = false;

  bool operator==(const Core&) const = default;
};

struct NodeReport {
  std::string node;            // "/dev/dri/renderD128"
  std::string kernel_driver;   // empty: could not be queried
  std::vector<Core> cores;     // empty for unknown kernel drivers
  std::optional<Error> error;  // why the node cannot be opened or queried
};

// Queries each node that may be an NPU, in order; nodes that do not exist are left out. `root` is a prefix of each
// path.
std::vector<NodeReport> find_devices(const std::string& root = "", const SyscallsRef& calls = system_calls());
Result<NodeReport> ask_node(const std::string& node, const SyscallsRef& calls = system_calls());
Result<std::unique_ptr<Device>> open_core(const Core& core, const SyscallsRef& calls = system_calls());
// Wraps `calls` for open_core(): each submission is added to `capture` (borrowed) before it runs.
SyscallsRef record(const Core& core, const SyscallsRef& calls, capture::Capture& capture);

}  // namespace skillet::kernels
