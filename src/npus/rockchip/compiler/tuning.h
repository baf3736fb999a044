// Tuning switches: the named choices that may differ from recorded jobs, so that a person with a board can try them
// singly. Called by driver.cpp, cost.cpp (set), lower.cpp (reads). Must not know: anything else.
#pragma once

#include "base/result.h"
#include "npu/driver.h"
#include "npu/tuning_rows.h"
#include "npus/rockchip/hw/rockchip.h"

// What the chip's registers want otherwise than the RK3588's; null: nothing. Of the chip's row, its traits.
#define SK_TUNING_MEMBERS                  \
  const struct Packing* packing = nullptr; \
  uint32_t traits = 0;                     \
  bool has(::skillet::rockchip::hw::ChipFlag trait) const { return (traits & trait) != 0; }
#define SK_TUNING_FILE "npus/rockchip/compiler/tuning.def"
namespace skillet::npus::rockchip {
#include "npu/declare_tuning.h"

// The same with what belongs to the chip, and the trials that unproven operations may have.
Result<Tuning> tuning_for(const ::skillet::rockchip::hw::ChipRow& chip, const npu::CompileOptions& options);
}  // namespace skillet::npus::rockchip
