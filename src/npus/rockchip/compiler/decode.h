// Decodes the register commands of a recorded submission to text and fields, by the rows that the encoder packs with.
// Called by driver.cpp. Must not know: how a driver makes its jobs.
#pragma once

#include "base/result.h"
#include "capture/capture.h"
#include "npu/driver.h"
#include "npus/rockchip/hw/rockchip.h"

namespace skillet::npus::rockchip {

// Every bit of every command of every task is a field.
Result<npu::Annotated> decode(const ::skillet::rockchip::hw::ChipRow& chip, const capture::Submission& submission,
                              npu::Detail detail);

}  // namespace skillet::npus::rockchip
