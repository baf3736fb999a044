// decode(): a recorded submission, command by command, for `skillet decode` and `skillet diff`.
// Called by the driver.
// Must not know: graphs, programs.
#pragma once

#include "npu/driver.h"
#include "npus/ethosu/hw/ethosu.h"

namespace skillet::npus::ethosu {

Result<npu::Annotated> decode(const capture::Submission& submission, npu::Detail detail,
                              ::skillet::ethosu::hw::Generation generation);

}  // namespace skillet::npus::ethosu
