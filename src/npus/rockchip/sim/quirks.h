// Quirks of a simulated NPU: rows of quirks.def, of the RK3576 those of quirks_3576.def. What a task does is changed
// between its registers and its run.
// Called by core.cpp (changes tasks), device.cpp (lists and chooses).
// Must not know: what drivers assume beyond its names, who wrote the registers.
#pragma once

#include <vector>

#include "npus/rockchip/sim/dpu_job.h"
#include "sim/sim.h"

namespace skillet::sim::rockchip {

struct QuirkRow {
  Quirk quirk;
  // Of tasks: null, where an option is all there is. The convolution is null where the DPU runs alone.
  bool (*when)(const ConvJob* conv, const DpuJob& dpu);
  Result<void> (*change)(ConvJob* conv, DpuJob& dpu);
  void (*set)(Options& options);  // null: none
};
// None: its registers are not known.
std::span<const QuirkRow> quirk_rows(const hw::ChipRow& chip);

// Error: there is no such row.
Result<void> add_quirk(const hw::ChipRow& chip, std::string_view name, Options& options);
// What the quirks of `options` make of a task. Error: it never ends.
Result<void> apply_quirks(const Options& options, ConvJob* conv, DpuJob& dpu);

}  // namespace skillet::sim::rockchip
