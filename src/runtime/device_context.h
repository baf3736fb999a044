// DeviceContext: one open device with what must be remembered about it. Target: what a --device text means.
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
  FairMutex mutex;   // held by code that uses any of the rest: sessions on several threads may share it
  std::string chip;  // its name: what programs are compiled for
  size_t file = 0;   // its number among those of an NPU with several cores, from 1; 0: there is one core
  std::shared_ptr<use::Counter> use;  // what `device` counts; null: nothing
  std::unique_ptr<kernels::Device> device;
  // Commands of the initialisation jobs that this device file has run since the last loss of a job or failed wait.
  std::set<Bytes> init_done;
  std::optional<kernels::Fence> overdue;       // was waited for in vain: no buffer is touched before it has ended
  SharedConstants constants;                   // of all programs here
  SharedBuffers shared;                        // of the caller; tensors that are in them are used in place
  std::map<std::string, trace::Track> tracks;  // of traces, by what they show of this file
  const OwnProcess process;                    // that opened it
  // Before the mutex is taken, which a thread may hold that a child of fork() does not have. Error in such a child: the
  // kernel would take its buffers and jobs for its parent's. There nothing is freed on the device either.
  Result<void> check_process() const;
};

// Where to run. Without a driver everything runs on the CPU.
struct Target {
  std::string name;  // "cpu", "sim:a311d"
  npu::Chip chip;
  const npu::Driver* driver = nullptr;     // borrowed from the registry
  std::shared_ptr<DeviceContext> context;  // null: compile only
  std::shared_ptr<DevicePool> pool;        // of an NPU with several cores: each session takes its context from it
  bool simulated = false;                  // no silicon in this process: "sim:CHIP", "null:CHIP"
  std::shared_ptr<Trust> trust;            // what its device was seen to compute right; null: nobody asks
  kernels::SyscallsRef calls;              // that its device is reached by; null without one
  std::string why_none;                    // without a driver: why there is none
};

Target cpu_target(std::string why_none);

// DeviceContext::check_process(), also before the mutex of its trust is taken. Of the CPU: fine.
Result<void> check_process(const Target& target);

// What its device did, by all of its files.
use::Totals use_of(const Target& target);

// An NPU of this machine that one of our drivers knows.
struct FoundNpu {
  std::string name;  // kernel driver and number: what --device takes beside the node's path
  kernels::Core core;
  npu::Chip chip;
  const npu::Driver* driver = nullptr;  // borrowed from the registry
};

struct NpuSearch {
  std::vector<FoundNpu> npus;
  std::string rejected;  // each node or core that is no NPU we know, with the reason; one line
  bool blocked = false;  // some node could not be opened or asked
};

// Asks the device nodes under `root` and lets the drivers identify their cores.
NpuSearch find_npus(const std::string& root = "");
NpuSearch identify(const std::vector<kernels::NodeReport>& nodes);

// "cpu"; "sim:CHIP" (a simulated chip in this process), "sim:CHIP,quirk=NAME[+NAME...]" (the same with quirks, see
// sim::Quirk); "null:CHIP" (takes jobs, computes nothing); "npu" (the first NPU of this machine); "auto" (the same,
// else the CPU); a device node; a name that find_npus() gives. `sink`, where there is one, receives every submission.
// Errors name the chips or devices there are.
Result<Target> open_target(const std::string& name, const kernels::RecordSink& sink = {});
// The device of a user who named this one: empty is what SKILLET_DEVICE says, else "auto"; with SKILLET_REQUIRE_NPU=1
// "auto" is "npu".
std::string device_meant(std::string name);
// The same for jobs that are nobody's: SKILLET_DEBUG=capture has nothing of them, and no trust is kept.
Result<Target> open_for_trials(const std::string& name);

// A core that a --device text names, and how to reach it; all names of open_target() but those that may be the CPU.
struct NamedCore {
  std::string name;
  npu::Chip chip;
  const npu::Driver* driver = nullptr;
  kernels::Core core;
  kernels::SyscallsRef calls;
  bool simulated = false;
};
Result<NamedCore> find_core(const std::string& name);
// For jobs that a driver recorded: a simulated chip does not require of them what it requires of our jobs.
Result<NamedCore> find_core_for_replay(const std::string& name);

// Why nothing runs on this chip with unproven=refuse; empty: what is proven does.
std::string refusal(const npu::Chip& chip);
// For code that asked for this device and no other: an error where unproven=refuse leaves it nothing.
Result<void> check_taken(const Target& target, npu::Unproven unproven);
// "null:CHIP": takes jobs, and outputs stay as they were.
bool computes_nothing(const Target& target);

}  // namespace skillet::runtime
