#include "sim/sim.h"

#include <vector>

#ifdef SKILLET_SIM_VIVANTE
#include "sim/vivante/vivante.h"
#endif

namespace skillet::sim {
namespace {

// One row per family that is linked in. A factory answers invalid_argument, with the names it has, to other names.
struct Family {
  Result<std::unique_ptr<Device>> (*create)(std::string_view chip);
};
const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = {
#ifdef SKILLET_SIM_VIVANTE
      {vivante::create},
#endif
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
  if (reasons.empty()) reasons = "this build has no simulators";
  return error(ErrorCode::invalid_argument, "no simulator of chip '{}': {}", chip, reasons);
}

}  // namespace skillet::sim
