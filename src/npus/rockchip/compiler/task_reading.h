// How tasks are read where registers are packed otherwise than the RK3588's: one row, for decode.cpp. Called by it.
// Must not know: how a driver makes its jobs.
#pragma once

#include <span>
#include <string>

#include "npu/driver.h"
#include "npus/rockchip/compiler/task_registers.h"

namespace skillet::npus::rockchip {

// What tasks leave to those after them in a job.
struct JobState {
  bool table_loaded = false;
};

struct TaskReading {
  std::span<const uint32_t> addresses;  // registers with addresses
  uint32_t dpu_output, weights;         // of these
  // Whether the task's blocks use the address in that register.
  bool (*uses)(uint32_t address, const TaskRegisters&);
  uint32_t (*weight_bytes)(const TaskRegisters&);
  // Words for the first thing that is refused; empty: nothing is.
  std::string (*refused)(std::span<const TaskRegisters::CommandWords>, const TaskRegisters&, JobState&);
  // Of an address that is used; none: not known.
  std::optional<npu::Reach> (*reach)(uint32_t address, const TaskRegisters&);
  std::string (*name)(const TaskRegisters&);
  std::string (*shape)(const TaskRegisters&);
};
// Null: the RK3588's.
const TaskReading* reading_of(const ::skillet::rockchip::hw::ChipRow& chip);

}  // namespace skillet::npus::rockchip
