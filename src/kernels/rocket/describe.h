// Texts for the arguments of this kernel driver's calls, for traces.
// Called by the table of calls.
// Must not know: what the calls do.
#pragma once

#include <fmt/format.h>

#include <string>

#include "kernels/rocket/abi.h"

namespace skillet::kernels::rocket {

inline std::string describe(const CreateBo& args) {
  return fmt::format("{} bytes -> handle {} at {:#x}, offset {:#x}", args.size, args.handle, args.dma_address,
                     args.offset);
}
inline std::string describe(const Submit& args) { return fmt::format("{} jobs", args.job_count); }
inline std::string describe(const PrepBo& args) {
  return fmt::format("handle {}, until {}.{:09} s", args.handle, args.timeout_ns / 1'000'000'000,
                     args.timeout_ns % 1'000'000'000);
}
inline std::string describe(const FiniBo& args) { return fmt::format("handle {}", args.handle); }

}  // namespace skillet::kernels::rocket
