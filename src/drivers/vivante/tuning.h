// Tuning switches: the named choices that may differ from recorded jobs, so that a person with a board can try them
// singly. Called by driver.cpp (sets), lower.cpp (reads). Must not know: anything else.
#pragma once

#include "base/result.h"
#include "driver/driver.h"
#include "driver/tuning_rows.h"

#define SK_TUNING_FILE "drivers/vivante/tuning.def"
namespace skillet::drivers::vivante {
#include "driver/declare_tuning.h"
}  // namespace skillet::drivers::vivante
