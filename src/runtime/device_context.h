// DeviceContext: one open device file and its state. Target: the device that a --device text names.
// Called by sessions, tools and the C interface.
// Must not know: graphs.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/fair_mutex.h"
#include "base/own_process.h"
#include "base/result.h"
#include "base/trace.h"
#include "base/use_page.h"
#include "capture/capture.h"
#include "kernels/api/device.h"
#include "kernels/api/recorder.h"
#include "npu/driver.h"
#include "runtime/device_pool.h"
#include "runtime/shared_buffer.h"
#include "runtime/shared_constants.h"
#include "runtime/trust.h"

namespace skillet::runtime {

// Shared by all programs that run on one device file.
struct DeviceContext {
  FairMutex mutex;                    // guards all other members: sessions on several threads may share it
  std::string chip;                   // name of the chip that programs are compiled for
  size_t file = 0;                    // number of this file for an NPU with several cores, from 1; 0: one core
  std::shared_ptr<use::Counter> use;  // counters of `device`; null: nothing is counted
  std::unique_ptr<kernels::Device> device;
  // Commands of the initialisation jobs that this device file has run since the last loss of a job or failed wait.
  std::set<Bytes> init_done;
  std::optional<kernels::Fence> overdue;       // a wait for it timed out: no buffer is touched before it has ended
  SharedConstants constants;                   // of all programs here
  SharedBuffers shared;                        // shared with the caller; tensors in them are used in place
  std::map<std::string, trace::Track> tracks;  // of traces, by what they show
  const OwnProcess process;                    // the process that opened it
  // Call before taking the mutex: a thread that a child of fork() does not have may hold it. Error in such a child: the
  // kernel would treat its buffers and jobs as the parent's. The child frees nothing on the device either.
  Result<void> check_process() const;
};

// Where to run. Without a driver everything runs on the CPU.
struct Target {
  std::string name;  // "cpu", "sim:a311d"
  npu::Chip chip;
  const npu::Driver* driver = nullptr;     // borrowed from the registry
  std::shared_ptr<DeviceContext> context;  // null: compile only
  std::shared_ptr<DevicePool> pool;        // of an NPU with several cores: each session takes its context from the pool
  bool simulated = false;                  // no silicon in this process: "sim:CHIP", "null:CHIP"
  std::shared_ptr<Trust> trust;            // what its device was seen to compute right; null: not used
  kernels::SyscallsRef calls;              // system calls that reach the device; null without a device
  std::string why_none;                    // if there is no driver: the reason
};

Target cpu_target(std::string why_none);

// DeviceContext::check_process(); call it also before taking the mutex of the trust. Always succeeds for the CPU.
Result<void> check_process(const Target& target);

// Counters of the target's device, over all of its files.
use::Totals use_of(const Target& target);

// An NPU of this machine that one of our drivers knows.
struct FoundNpu {
  std::string name;  // kernel driver and number: accepted by --device, like the node's path
  kernels::Core core;
  npu::Chip chip;
  const npu::Driver* driver = nullptr;  // borrowed from the registry
};

struct NpuSearch {
  std::vector<FoundNpu> npus;
  std::string rejected;  // each node or core that is not a known NPU, with the reason; one line
  bool blocked = false;  // some node could not be opened or queried
};

// Queries the device nodes under `root`; the drivers identify their cores.
NpuSearch find_npus(const std::string& root = "");
NpuSearch identify(const std::vector<kernels::NodeReport>& nodes);

// "cpu"; "sim:CHIP" (a simulated chip in this process), "sim:CHIP,quirk=NAME[+NAME...]" (the same with quirks, see
// sim::Quirk); "null:CHIP" (takes jobs, computes nothing); "npu" (the first NPU of this machine); "auto" (the same,
// otherwise the CPU); a device node; a name from find_npus(). If `sink` is set, it receives every submission. Errors
// name the available chips or devices.
Result<Target> open_target(const std::string& name, const kernels::RecordSink& sink = {});
// The device for a user's choice `name`. Empty: the value of SKILLET_DEVICE, else "auto"; with SKILLET_REQUIRE_NPU=1
// "auto" becomes "npu".
std::string device_meant(std::string name);
// The same for jobs that are not a user's: SKILLET_DEBUG=capture does not record them, and no trust is kept.
Result<Target> open_for_trials(const std::string& name);

// A core that a --device text names, and how to reach it. Takes all names of open_target() except those that may mean
// the CPU.
struct NamedCore {
  std::string name;
  npu::Chip chip;
  const npu::Driver* driver = nullptr;
  kernels::Core core;
  kernels::SyscallsRef calls;
  bool simulated = false;
};
Result<NamedCore> find_core(const std::string& name);
// For jobs that a driver recorded: a simulated chip checks them less strictly than our own jobs.
Result<NamedCore> find_core_for_replay(const std::string& name);

// Why nothing runs on this chip with unproven=refuse; empty: proven operations run.
std::string refusal(const npu::Chip& chip);
// For code that requires this device: an error if unproven=refuse leaves it no operations.
Result<void> check_taken(const Target& target, npu::Unproven unproven);
// "null:CHIP": accepts jobs and leaves outputs unchanged.
bool computes_nothing(const Target& target);

}  // namespace skillet::runtime
