// Tuning switches: the named choices that may differ from recorded jobs, so that a person with a board can try them
// singly. Called by driver.cpp, cost.cpp (set), lower.cpp (reads). Must not know: anything else.
#pragma once

#include "base/result.h"
#include "npu/driver.h"
#include "npu/tuning_rows.h"

#define SK_TUNING_FILE "npus/rockchip/compiler/tuning.def"
namespace skillet::npus::rockchip {
#include "npu/declare_tuning.h"
}  // namespace skillet::npus::rockchip

namespace skillet::npus::rockchip {

// The same, with the trials that unproven operations may have.
Result<Tuning> tuning_for(const npu::CompileOptions& options);

}  // namespace skillet::npus::rockchip
