#include "base/vendors.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "base/leaked.h"

namespace skillet {
namespace {

struct Chip {
  std::string_view vendor, name;
};
std::span<const Chip> chips() {
  const auto& kChips = leaked([] {
    return std::vector<Chip>{
#define CHIP(vendor, name) {#vendor, #name},
#include "vendors.inc"
    };
  });
  return kChips;
}

std::span<const std::string_view> built() {
  const auto& kBuilt = leaked([] {
    return std::vector<std::string_view>{
#define VENDOR(name) #name,
#include "vendors.inc"
    };
  });
  return kBuilt;
}

std::span<const std::string_view> simulated() {
  const auto& kSimulated = leaked([] {
    return std::vector<std::string_view>{
#define SIMULATOR(vendor) #vendor,
#include "vendors.inc"
    };
  });
  return kSimulated;
}

bool has(std::span<const std::string_view> vendors, std::string_view vendor) {
  return std::ranges::find(vendors, vendor) != vendors.end();
}

}  // namespace

Error no_chip(std::string_view name, std::string_view what, std::string_view others) {
  const auto chip = std::ranges::find(chips(), name, &Chip::name);
  if (chip == chips().end()) return error(ErrorCode::invalid_argument, "no chip '{}' ({})", name, others);
  if (!has(built(), chip->vendor))
    return error(ErrorCode::unsupported, "chip '{}' is known, but this build has no {}: SKILLET_VENDORS ({})", name,
                 chip->vendor, others);
  return error(ErrorCode::unsupported, "chip '{}' is known, but {} has no {} of it yet ({})", name, chip->vendor, what,
               others);
}

std::string_view default_chip() {
  for (const Chip& chip : chips()) {
    if (has(simulated(), chip.vendor)) return chip.name;
  }
  return "";
}

}  // namespace skillet
