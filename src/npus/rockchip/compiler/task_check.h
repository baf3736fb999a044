// Checks what a program from a file does with the chip, and how far each of its addresses reaches: only what compile()
// writes, without contradictions. Called by decode.cpp, which reports it to code that checks programs.
// Must not know: how a driver makes its jobs; the simulator, which checks this.
#pragma once

#include <span>
#include <string>

#include "npu/driver.h"
#include "npus/rockchip/compiler/task_registers.h"

namespace skillet::npus::rockchip {

namespace hw = ::skillet::rockchip::hw;

class TaskCheck {
 public:
  explicit TaskCheck(const hw::ChipRow& chip) : chip_(chip) {}

  // State that tasks leave to later tasks ends with the job.
  void start_job() { before_ = {}, table_entries_ = 0; }
  // Checks the next task of the job. Returns the first refusal: register, field, value, reason; empty if there is none.
  std::string task(std::span<const hw::Command> commands, const TaskRegisters& registers);
  // Reach of the address in a register that the task uses; none: not known.
  std::optional<npu::Reach> reach(uint32_t address, const TaskRegisters& registers) const;

 private:
  // Weights that a task has left in the chip's memory.
  struct Weights {
    int64_t data_banks = -1, weight_banks = -1, weight_bytes = -1;
  };
  std::string command(const hw::Command& command);
  std::string broken_rule(const TaskRegisters& registers) const;
  std::string overlap(const TaskRegisters& registers) const;

  const hw::ChipRow& chip_;
  Weights before_;
  uint32_t table_entries_ = 0;   // entries that the job has loaded, in order
  bool writes_entries_ = false;  // the current commands write entries
};

}  // namespace skillet::npus::rockchip
