// Checks that a program names only its own memory. A device follows the addresses in commands and descriptors, and
// those of a program that was compiled elsewhere may point anywhere.
// Called by the program cache and by tools that read program files.
// Must not know: a vendor's descriptors; the driver's decode() does.
#pragma once

#include "npu/driver.h"

namespace skillet::runtime {

// Each address that the device reads must be in a buffer that its job lists, together with all bytes that the operation
// may touch around it, and must move with that buffer. An address that it writes must be in a buffer that the job lists
// as written. 0 is allowed only where the operation uses no address. A program is refused where the driver does not
// know the reach, and where commands hold a value that its compile() never writes (Annotated::refused). The error names
// job and field.
Result<void> check_addresses(const npu::Driver& driver, const npu::Chip& chip, const npu::Program& program);

}  // namespace skillet::runtime
