#include "driver/driver.h"

#ifdef SKILLET_DRIVERS_VIVANTE
#include "drivers/vivante/vivante_driver.h"
#endif

namespace skillet::driver {
namespace {

const std::vector<const Driver*>& registry() {
  static const std::vector<const Driver*> kDrivers = {
#ifdef SKILLET_DRIVERS_VIVANTE
      &skillet::drivers::vivante::driver(),
#endif
  };
  return kDrivers;
}

}  // namespace

std::span<const Driver* const> drivers() { return registry(); }

Result<Chip> find_chip(std::string_view name) {
  std::string known;
  for (const Driver* driver : drivers()) {
    for (const Chip& chip : driver->chips()) {
      if (chip.name == name) return chip;
      known += fmt::format("{}{}", known.empty() ? "" : ", ", chip.name);
    }
  }
  return error(ErrorCode::invalid_argument, "no chip '{}' (known: {})", name, known.empty() ? "none" : known);
}

Result<const Driver*> driver_of(const Chip& chip) {
  for (const Driver* driver : drivers()) {
    if (driver->name() == chip.family) return driver;
  }
  return error(ErrorCode::unsupported, "this build has no driver '{}' for chip {}", chip.family, chip.name);
}

}  // namespace skillet::driver
