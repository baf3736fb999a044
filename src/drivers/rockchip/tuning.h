// Tuning switches: the named choices that may differ from recorded jobs, so that a person with a board can try them
// singly. Called by driver.cpp (sets), lower.cpp (reads). Must not know: anything else.
#pragma once

#include "base/result.h"
#include "driver/driver.h"

namespace skillet::drivers::rockchip {

// All off: as recorded.
struct Tuning {
#define PROVEN(name, results, reason) bool name = false;
#define SWITCH(name, reason) bool name = false;
#define TRIAL(name, reason) bool name = false;
#include "drivers/rockchip/tuning.def"
#undef PROVEN
#undef SWITCH
#undef TRIAL
};
std::span<const driver::TuningSwitch> tuning_switches();
// From the options: those of the tuning, and those that CompileOptions::switches lists. Error names an unknown switch
// and the known ones.
Result<Tuning> tuning_of(const driver::CompileOptions& options);

}  // namespace skillet::drivers::rockchip
