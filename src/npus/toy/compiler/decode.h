// Decodes a submission of the toy's commands, field by field.
// Called by the driver.
// Must not know: graphs.
#pragma once

#include "npu/driver.h"

namespace skillet::npus::toy {

Result<npu::Annotated> decode(const capture::Submission& submission, npu::Detail detail);

}  // namespace skillet::npus::toy
