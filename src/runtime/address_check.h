// Does a program name only memory of its own? A device follows the addresses in commands and descriptors, and those of
// a program that was not compiled here may be anybody's.
// Called by the program cache and by tools that read program files.
// Must not know: a vendor's descriptors; the driver's decode() does.
#pragma once

#include "npu/driver.h"

namespace skillet::runtime {

// Each address that the device reads is in a buffer that its job lists, together with all that the operation may
// touch around it, and moves with that buffer; what it writes is a buffer that the job says it writes; 0 is allowed
// only where the operation uses none. Where the driver does not know what is touched, and where commands hold what its
// compile() never writes (Annotated::refused), the program is refused. Error names job and field.
Result<void> check_addresses(const npu::Driver& driver, const npu::Chip& chip, const npu::Program& program);

}  // namespace skillet::runtime
