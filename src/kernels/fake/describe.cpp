#include "kernels/fake/describe.h"

#include <fmt/format.h>

namespace skillet::kernels::drm {

std::string describe(const GetCap& args) { return fmt::format("{:#x} -> {}", args.capability, args.value); }
std::string describe(const GemClose& args) { return fmt::format("handle {}", args.handle); }
std::string describe(const PrimeHandle& args) {
  return fmt::format("handle {}, flags {:#x}, descriptor {}", args.handle, args.flags, args.fd);
}

}  // namespace skillet::kernels::drm
