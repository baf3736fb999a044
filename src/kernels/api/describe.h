// Texts for the arguments of calls that all DRM drivers share, for traces. Called by the tables of calls of emulated
// kernel drivers, which also include the texts of their own calls. Must not know: any single kernel driver.
#pragma once

#include <fmt/format.h>

#include <string>

#include "kernels/api/drm.h"

namespace skillet::kernels::drm {

inline std::string describe(const GetCap& args) { return fmt::format("{:#x} -> {}", args.capability, args.value); }
inline std::string describe(const GemClose& args) { return fmt::format("handle {}", args.handle); }
inline std::string describe(const PrimeHandle& args) {
  return fmt::format("handle {}, flags {:#x}, descriptor {}", args.handle, args.flags, args.fd);
}

}  // namespace skillet::kernels::drm
