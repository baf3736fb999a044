// Simulator of the Rockchip NPU (RK3588): register commands in memory in, bytes in memory and completion bits out.
// Called by whatever stands in for the kernel, and by the tests.
// Must not know: drivers beyond npus/rockchip/hw, graphs, programs. Written from the hardware specification.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "npus/rockchip/sim/options.h"
#include "sim/sim.h"

namespace skillet::sim::rockchip {

// What the kernel programs to start a task.
struct Task {
  uint64_t regcmd = 0;         // device address of the first command
  uint32_t regcmd_count = 0;   // 64-bit commands; an odd count makes the chip fetch one more
  uint32_t task_number = 1;    // tasks that this one start runs, each chained to the one before by its last commands
  bool first_of_job = true;    // no earlier task of the job left weights in the chip
  bool loses_weights = false;  // another core spoils what is fetched of them
  // The task of the job that the kernel starts next; 0: none, or not known.
  uint64_t next_regcmd = 0;
  uint32_t next_regcmd_count = 0;
};

// Bits of pc.interrupt_raw_status: one per unit and register group.
enum RawStatus : uint32_t { kCnaFeature = 1, kCnaWeight = 4, kCnaSequencer = 16, kCore = 64, kDpu = 256, kPpu = 1024 };

struct TaskResult {
  uint32_t raw_status = 0;      // of the last task that ran
  uint32_t also_completes = 0;  // RawStatus bits that this chip's kernel drivers look at too
  uint32_t tasks = 0;           // that ran to their end
  double cycles = 0;            // that the MAC array needs at least
  std::string stall;            // why the chip waits for ever; empty: it does not

  // The mainline kernel looks at the DPU's bits only: any other task ends by its timeout.
  bool completes() const { return stall.empty() && (raw_status & (kDpu | kDpu << 1 | also_completes)) != 0; }
};

class Core;

// Cores are independent of each other: each may be driven by a thread of its own.
class Npu {
 public:
  // Error when there is no such chip, or it is not modelled.
  static Result<std::unique_ptr<Npu>> create(std::string_view chip, const Options& options = {});
  ~Npu();

  int cores() const { return static_cast<int>(cores_.size()); }
  // Runs one start of a core, synchronously. Error: something that is not modelled, named; memory may have been
  // written until then. Registers keep their values for later tasks, in either case.
  Result<TaskResult> run_task(int core, const Task& task, const Memory& memory);
  // Both resets, as the kernel does them after a timeout: registers and pointers are as at power up.
  void reset(int core);

 private:
  Npu();
  std::vector<std::unique_ptr<Core>> cores_;
};

}  // namespace skillet::sim::rockchip
