// How the chips of npus/rockchip/compiler appear to rocket.
#include <algorithm>

#include "kernels/rocket/fake/identity.h"
#include "npus/rockchip/hw/rockchip.h"

namespace skillet::fake::rocket::rockchip {
namespace {

// The addresses of the cores.
struct Place {
  std::string_view chip;
  uint64_t first, distance;
};
constexpr Place kPlaces[] = {{"rk3576", 0x27700000, 0x8000}};
constexpr Place kOthers{"", 0xfdab0000, 0x10000};

}  // namespace

std::optional<std::vector<NodePlace::Device>> cores_of(std::string_view chip) {
  const auto* const row = ::skillet::rockchip::hw::find_chip(chip);
  if (row == nullptr) return std::nullopt;
  const auto* const found = std::ranges::find(kPlaces, chip, &Place::chip);
  const Place& place = found == std::end(kPlaces) ? kOthers : *found;
  std::vector<NodePlace::Device> cores;
  for (int i = 0; i < row->cores; ++i) {
    const uint64_t base = place.first + static_cast<uint64_t>(i) * place.distance;
    cores.push_back({.name = fmt::format("{:x}.npu", base),
                     .of_full_name = fmt::format("/npu@{:x}", base),
                     .compatible = std::string(row->compatible)});
  }
  return cores;
}

}  // namespace skillet::fake::rocket::rockchip
