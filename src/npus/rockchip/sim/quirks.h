// Quirks of a simulated NPU: rows of quirks.def; for the RK3576, of quirks_3576.def. They change a task after its
// registers are read and before it runs.
// Called by core.cpp (changes tasks), device.cpp (lists and chooses).
// Must not know: the driver's assumptions except their names, what wrote the registers.
#pragma once

#include <vector>

#include "npus/rockchip/sim/dpu_job.h"
#include "sim/sim.h"

namespace skillet::sim::rockchip {

// A change of the task, or its end.
struct Effect {
  void (*change)(ConvJob* conv, DpuJob& dpu) = nullptr;
  Error (*end)() = nullptr;

  constexpr Effect() = default;
  constexpr Effect(void (*does)(ConvJob*, DpuJob&)) : change(does) {}
  constexpr Effect(Error (*does)()) : end(does) {}
};

struct QuirkRow {
  Quirk quirk;
  // For tasks; null if the quirk only sets an option. `conv` is null if the DPU runs alone.
  bool (*when)(const ConvJob* conv, const DpuJob& dpu);
  Effect effect;
  void (*set)(Options& options);  // null: none
};
// Empty if the chip's registers are not known.
std::span<const QuirkRow> quirk_rows(const hw::ChipRow& chip);

// Error: there is no row with this name.
Result<void> add_quirk(const hw::ChipRow& chip, std::string_view name, Options& options);
// Changes a task by the quirks of `options`. Error: it never ends.
Result<void> apply_quirks(const Options& options, ConvJob* conv, DpuJob& dpu);

}  // namespace skillet::sim::rockchip
