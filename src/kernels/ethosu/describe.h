// Texts for the arguments of this kernel driver's calls, for traces.
// Called by the table of calls.
// Must not know: what the calls do.
#pragma once

#include <fmt/format.h>

#include <string>

#include "kernels/ethosu/abi.h"

namespace skillet::kernels::ethosu {

inline std::string describe(const DevQuery& args) { return fmt::format("type {}, {} bytes", args.type, args.size); }
inline std::string describe(const BoCreate& args) {
  return fmt::format("{} bytes, flags {:#x} -> handle {}", args.size, args.flags, args.handle);
}
inline std::string describe(const BoWait& args) {
  return fmt::format("handle {}, until {}.{:09} s", args.handle, args.timeout_ns / 1'000'000'000,
                     args.timeout_ns % 1'000'000'000);
}
inline std::string describe(const BoMmapOffset& args) {
  return fmt::format("handle {} -> offset {:#x}", args.handle, args.offset);
}
inline std::string describe(const CmdstreamBoCreate& args) {
  return fmt::format("{} bytes, flags {:#x} -> handle {}", args.size, args.flags, args.handle);
}
inline std::string describe(const Submit& args) { return fmt::format("{} jobs", args.job_count); }

}  // namespace skillet::kernels::ethosu
