// Reads tasks of chips whose registers are packed differently from the RK3588's: one table, for decode.cpp; and a rule
// that all chips share. Called by decode.cpp, task_check.cpp.
// Must not know: how a driver makes its jobs.
#pragma once

#include <span>
#include <string>

#include "npu/driver.h"
#include "npus/rockchip/compiler/task_registers.h"

namespace skillet::npus::rockchip {

// State that tasks leave to later tasks of a job.
struct JobState {
  bool table_loaded = false;
};

struct TaskReading {
  std::span<const uint32_t> addresses;  // registers with addresses
  uint32_t dpu_output, weights;         // of these
  // Whether the task's blocks use the address in that register.
  bool (*uses)(uint32_t address, const TaskRegisters&);
  uint32_t (*weight_bytes)(const TaskRegisters&);
  // The first refusal; empty if there is none.
  std::string (*refused)(std::span<const ::skillet::rockchip::hw::Command>, const TaskRegisters&, JobState&);
  // Reach of an address that is used; none: not known.
  std::optional<npu::Reach> (*reach)(uint32_t address, const TaskRegisters&);
  std::string (*name)(const TaskRegisters&);
  std::string (*shape)(const TaskRegisters&);
};
// The chip reads features and writes outputs at the same time, in an order that is not known. Returns a message for the
// first output surface, of `bytes` at `place(i)`, that is written among the features from `first` to `end`; empty:
// none.
template <typename Place>
std::string written_among(int64_t first, int64_t end, int64_t surfaces, int64_t bytes, const Place& place) {
  for (int64_t surface = 0; surface < surfaces; ++surface) {
    const int64_t at = place(surface);
    if (at < end && first < at + bytes)
      return fmt::format("dpu.dst_base_addr: surface {} is among the features that the task reads", surface);
  }
  return "";
}

// Null: the RK3588's packing.
const TaskReading* reading_of(const ::skillet::rockchip::hw::ChipRow& chip);

}  // namespace skillet::npus::rockchip
