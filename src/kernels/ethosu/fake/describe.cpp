#include "kernels/ethosu/fake/describe.h"

#include <fmt/format.h>

namespace skillet::kernels::ethosu {

std::string describe(const DevQuery& args) { return fmt::format("type {}, {} bytes", args.type, args.size); }
std::string describe(const BoCreate& args) {
  return fmt::format("{} bytes, flags {:#x} -> handle {}", args.size, args.flags, args.handle);
}
std::string describe(const BoWait& args) {
  return fmt::format("handle {}, until {}.{:09} s", args.handle, args.timeout_ns / 1'000'000'000,
                     args.timeout_ns % 1'000'000'000);
}
std::string describe(const BoMmapOffset& args) {
  return fmt::format("handle {} -> offset {:#x}", args.handle, args.offset);
}
std::string describe(const CmdstreamBoCreate& args) {
  return fmt::format("{} bytes, flags {:#x} -> handle {}", args.size, args.flags, args.handle);
}
std::string describe(const Submit& args) { return fmt::format("{} jobs", args.job_count); }

}  // namespace skillet::kernels::ethosu
