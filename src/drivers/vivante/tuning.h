// Tuning switches: the named choices that may differ from recorded jobs, so that a person with a board can try them
// singly. Called by driver.cpp (sets), lower.cpp (reads). Must not know: anything else.
#pragma once

#include "base/result.h"
#include "driver/driver.h"

namespace skillet::drivers::vivante {

struct Tuning {
#define SWITCH(name, doc) bool name = false;
#define TRIAL(name, doc) bool name = false;
#include "drivers/vivante/tuning.def"
#undef SWITCH
#undef TRIAL
};
// From the options: none, all, or those that CompileOptions::switches lists. Error names an unknown switch and the
// known ones.
Result<Tuning> tuning_of(const driver::CompileOptions& options);

}  // namespace skillet::drivers::vivante
