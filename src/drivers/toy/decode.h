// A submission of the toy's commands, field by field.
// Called by the driver.
// Must not know: graphs.
#pragma once

#include "driver/driver.h"

namespace skillet::drivers::toy {

Result<driver::Annotated> decode(const capture::Submission& submission, driver::Detail detail);

}  // namespace skillet::drivers::toy
