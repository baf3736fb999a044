// Simulator of the Rockchip NPU (RK3588): input is register commands in memory, output is bytes in memory and
// completion bits. Called by the emulated kernel driver, and by the tests.
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
  uint32_t task_number = 1;    // tasks of this start, each chained to the one before by its last commands
  bool first_of_job = true;    // no earlier task of the job left weights in the chip
  bool loses_weights = false;  // another core spoils the weights that the task fetches
  // The task of the job that the kernel starts next; 0: none, or not known.
  uint64_t next_regcmd = 0;
  uint32_t next_regcmd_count = 0;
};

// Bits of pc.interrupt_raw_status: one per unit and register group.
enum RawStatus : uint32_t { kCnaFeature = 1, kCnaWeight = 4, kCnaSequencer = 16, kCore = 64, kDpu = 256, kPpu = 1024 };

struct TaskResult {
  uint32_t raw_status = 0;      // of the last task that ran
  uint32_t also_completes = 0;  // RawStatus bits that this chip's kernel drivers also read
  uint32_t tasks = 0;           // tasks that ran to their end
  double cycles = 0;            // least cycles of the MAC array
  std::string stall;            // why the chip waits for ever; empty: no stall

  // The mainline kernel reads only the DPU's bits: any other task ends by its timeout.
  bool completes() const { return stall.empty() && (raw_status & (kDpu | kDpu << 1 | also_completes)) != 0; }
};

class Core;

// Cores are independent of each other: each may have its own thread.
class Npu {
 public:
  // Error if there is no such chip, or it is not modelled.
  static Result<std::unique_ptr<Npu>> create(std::string_view chip, const Options& options = {});
  ~Npu();

  int cores() const { return static_cast<int>(cores_.size()); }
  // Runs one start of a core, synchronously. An error names something that is not modelled; memory may have been
  // written before. Registers keep their values for later tasks in both cases.
  Result<TaskResult> run_task(int core, const Task& task, const Memory& memory);
  // Both resets that the kernel does after a timeout: registers and pointers are as after power-up.
  void reset(int core);

 private:
  Npu();
  std::vector<std::unique_ptr<Core>> cores_;
};

}  // namespace skillet::sim::rockchip
