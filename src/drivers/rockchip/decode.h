// Decoding: the register commands of a recorded submission -> text and fields, from the same rows that the encoder
// packs with. Called by driver.cpp. Must not know: how a driver makes its jobs.
#pragma once

#include "base/result.h"
#include "capture/capture.h"
#include "driver/driver.h"
#include "drivers/rockchip/hw/rockchip.h"

namespace skillet::drivers::rockchip {

// Every bit of every command of every task is a field.
Result<driver::Annotated> decode(const ::skillet::rockchip::hw::ChipRow& chip, const capture::Submission& submission,
                                 driver::Detail detail);

}  // namespace skillet::drivers::rockchip
