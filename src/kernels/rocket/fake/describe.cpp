#include "kernels/rocket/fake/describe.h"

#include <fmt/format.h>

namespace skillet::kernels::rocket {

std::string describe(const CreateBo& args) {
  return fmt::format("{} bytes -> handle {} at {:#x}, offset {:#x}", args.size, args.handle, args.dma_address,
                     args.offset);
}
std::string describe(const Submit& args) { return fmt::format("{} jobs", args.job_count); }
std::string describe(const PrepBo& args) {
  return fmt::format("handle {}, until {}.{:09} s", args.handle, args.timeout_ns / 1'000'000'000,
                     args.timeout_ns % 1'000'000'000);
}
std::string describe(const FiniBo& args) { return fmt::format("handle {}", args.handle); }

}  // namespace skillet::kernels::rocket
