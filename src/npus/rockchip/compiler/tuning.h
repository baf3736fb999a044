// Tuning switches: the named choices that may differ from recorded jobs, so that they can be tried one by one on a
// board. Called by driver.cpp, cost.cpp (set), lower.cpp (reads). Must not know: anything else.
#pragma once

#include "base/result.h"
#include "npu/driver.h"
#include "npu/tuning_rows.h"
#include "npus/rockchip/hw/rockchip.h"

// `packing`: null for the RK3588's registers. `traits`: flags of the chip's row.
#define SK_TUNING_MEMBERS                  \
  const struct Packing* packing = nullptr; \
  uint32_t traits = 0;                     \
  bool has(::skillet::rockchip::hw::ChipFlag trait) const { return (traits & trait) != 0; }
#define SK_TUNING_FILE "npus/rockchip/compiler/tuning.def"
namespace skillet::npus::rockchip {
#include "npu/declare_tuning.h"

// The tuning of the options with the chip's own settings, and with the trials that unproven operations may use.
Result<Tuning> tuning_for(const ::skillet::rockchip::hw::ChipRow& chip, const npu::CompileOptions& options);
}  // namespace skillet::npus::rockchip
