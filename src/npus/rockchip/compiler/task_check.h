// What a program from a file may ask of the chip, and how far each of its addresses reaches: what compile() writes, and
// nothing that contradicts itself. Called by decode.cpp, which reports it to code that checks programs.
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

  // What tasks leave to those after them ends with the job.
  void start_job() { before_ = {}, table_entries_ = 0; }
  // The next task of the job, whose registers are `registers`. Words for the first thing that is refused: register,
  // field, value, reason; empty: nothing is.
  std::string task(std::span<const TaskRegisters::CommandWords> commands, const TaskRegisters& registers);
  // Of the address in a register of that task; none: not known. It uses the register.
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
  uint32_t table_entries_ = 0;   // that the job has loaded, one after the other
  bool writes_entries_ = false;  // commands do now
};

}  // namespace skillet::npus::rockchip
