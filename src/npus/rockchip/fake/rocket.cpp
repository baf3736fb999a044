// How the chips of npus/rockchip/compiler show to rocket.
#include "kernels/rocket/fake/identity.h"
#include "npus/rockchip/hw/rockchip.h"

namespace skillet::fake::rocket::rockchip {
namespace {

constexpr uint64_t kFirstCore = 0xfdab0000, kCoreDistance = 0x10000;

}  // namespace

std::optional<std::vector<NodePlace::Device>> cores_of(std::string_view chip) {
  const auto* const row = ::skillet::rockchip::hw::find_chip(chip);
  if (row == nullptr) return std::nullopt;
  std::vector<NodePlace::Device> cores;
  for (int i = 0; i < row->cores; ++i) {
    const uint64_t base = kFirstCore + static_cast<uint64_t>(i) * kCoreDistance;
    cores.push_back({.name = fmt::format("{:x}.npu", base),
                     .of_full_name = fmt::format("/npu@{:x}", base),
                     .compatible = std::string(row->compatible)});
  }
  return cores;
}

}  // namespace skillet::fake::rocket::rockchip
