// The client of the mainline kernel driver ethosu, used by its row in the table of kernel drivers.
// Called by kernels/api/kernels.cpp.
// Must not know: chips.
#pragma once

#include "kernels/api/kernels.h"

namespace skillet::kernels::ethosu {

KernelDriver kernel_driver();

Result<Core> read_core(const DrmFile& file);
// Buffers have no addresses: each job lists them in numbered slots, the regions of its command stream. A job with
// Job::sram_bytes gets on-chip memory as region 2, or a buffer if the chip has less.
Result<std::unique_ptr<Device>> open_device(const Core& core, const SyscallsRef& calls);

// Address of a region's buffer in a capture: the kernel driver assigns no addresses.
constexpr uint64_t region_address(unsigned region) { return uint64_t{region + 1} << 36; }
constexpr unsigned region_at(uint64_t address) { return static_cast<unsigned>(address >> 36) - 1; }
inline constexpr const char* kSramParameter = "sram_size";  // of a recorded job

// In the capture each job is a separate submission.
std::shared_ptr<FileRecorder> record(const SyscallsRef& calls, const std::string& node, RecordSink sink);
Result<std::unique_ptr<Replayer>> open_replayer(const Core& core, const SyscallsRef& calls);

}  // namespace skillet::kernels::ethosu
