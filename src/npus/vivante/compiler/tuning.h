// Tuning switches: the named choices that may differ from recorded jobs, so that they can be tried one by one on a
// board. Called by driver.cpp (sets), lower.cpp (reads). Must not know: anything else.
#pragma once

#include "base/result.h"
#include "npu/driver.h"
#include "npu/tuning_rows.h"

#define SK_TUNING_FILE "npus/vivante/compiler/tuning.def"
namespace skillet::npus::vivante {
#include "npu/declare_tuning.h"
}  // namespace skillet::npus::vivante
