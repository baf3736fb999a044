#include "sim/sim.h"

#include <vector>

#include "base/vendors.h"

#define SIMULATOR(vendor)                                        \
  namespace skillet::sim::vendor {                               \
  Result<std::unique_ptr<Device>> create(std::string_view chip); \
  }
#include "vendors.inc"

namespace skillet::sim {
namespace {

// One row per family that is linked in. A factory answers invalid_argument, with the names it has, to other names.
struct Family {
  Result<std::unique_ptr<Device>> (*create)(std::string_view chip);
};
const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = {
#define SIMULATOR(vendor) {vendor::create},
#include "vendors.inc"
  };
  return kFamilies;
}

}  // namespace

Result<std::unique_ptr<Device>> create(std::string_view chip) {
  std::string reasons;
  for (const Family& family : families()) {
    auto device = family.create(chip);
    if (device.ok() || device.error().code != ErrorCode::invalid_argument) return device;
    reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", device.error().message);
  }
  return no_chip(chip, "simulator", reasons.empty() ? "this build has no simulators" : reasons);
}

}  // namespace skillet::sim
