// The cores of a Rockchip NPU for rocket, each a device with its IOMMU and its reset lines.
#include "lab/mmio/place.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/api/device.h"
#include "kernels/rocket/abi.h"
#include "kernels/rocket/fake/identity.h"
#include "lab/mmio/rocket/core.h"
#include "npus/rockchip/hw/rockchip.h"
#include "npus/rockchip/sim/quirks.h"

namespace skillet::mmio::rocket {
namespace {

constexpr std::string_view kInLinux = "rockchip,rk3588-rknn-core";

// Core 0 has two register sets in its IOMMU, others one. Source: hardware specification rockchip 1.4.
uint32_t iommu_sets(uint32_t core) { return core == 0 ? 2 : 1; }

std::string nodes_of(const PlaceOptions& options, uint32_t core, uint64_t address, std::string_view compatible) {
  const uint64_t iommu = address + kIommuOffset, resets = address + kResetOffset;
  std::string sets;
  for (uint32_t i = 0; i < iommu_sets(core); ++i)
    sets += fmt::format("{}<0x0 {:#x} 0x0 {:#x}>", i == 0 ? "" : ", ", iommu + i * kIommuStride, kIommuBytes);
  return fmt::format(R"(
      resets{0}: reset-controller@{1:x} {{
        compatible = "snps,dw-low-reset";
        reg = <0x0 {1:#x} 0x0 {2:#x}>;
        #reset-cells = <1>;
      }};
      iommu{0}: iommu@{3:x} {{
        compatible = "rockchip,rk3568-iommu";
        reg = {4};
        interrupt-parent = <&lines>;
        interrupts = <{5} 4>;
        clocks = <&clock>, <&clock>;
        clock-names = "aclk", "iface";
        #iommu-cells = <0>;
      }};
      npu@{6:x} {{
        compatible = "{7}";
        reg = <0x0 {6:#x} 0x0 0x1000>, <0x0 {8:#x} 0x0 0x1000>, <0x0 {9:#x} 0x0 0x1000>;
        reg-names = "pc", "cna", "core";
        interrupt-parent = <&lines>;
        interrupts = <{5} 4>;
        clocks = <&clock>, <&clock>, <&clock>, <&clock>;
        clock-names = "aclk", "hclk", "npu", "pclk";
        resets = <&resets{0} 0>, <&resets{0} 1>;
        reset-names = "srst_a", "srst_h";
        iommus = <&iommu{0}>;
      }};
)",
                     options.line + core, resets, kResetBytes, iommu, sets, options.line + core, address, compatible,
                     address + 0x1000, address + 0x3000);
}

}  // namespace

Result<std::optional<std::vector<Placed>>> place(const PlaceOptions& options) {
  namespace chip_sim = sim::rockchip;
  const auto cores = fake::rocket::cores_of(options.chip);
  if (!cores) return std::optional<std::vector<Placed>>();
  SK_TRY_ASSIGN(chip_sim::Options how, chip_sim::options_from_environment());
  const auto* const row = ::skillet::rockchip::hw::find_chip(options.chip);
  for (size_t at = 0, plus = 0; plus != std::string_view::npos && !options.quirks.empty(); at = plus + 1) {
    plus = options.quirks.find('+', at);
    SK_TRY(chip_sim::add_quirk(*row, options.quirks.substr(at, plus - at), how));
  }
  SK_TRY_ASSIGN(std::unique_ptr<chip_sim::Npu> npu, chip_sim::Npu::create(options.chip, how));
  const std::shared_ptr<chip_sim::Npu> shared = std::move(npu);
  const auto count = static_cast<uint32_t>(cores->size());
  std::optional<std::vector<Placed>> all(std::in_place);
  for (uint32_t i = 0; i < (options.most_cores == 0 ? count : std::min(options.most_cores, count)); ++i) {
    const uint64_t address = options.address + i * options.stride;
    const auto line = static_cast<uint16_t>(options.line + i);
    SK_TRY_ASSIGN(JobWatch watch, JobWatch::create(options.chip,
                                                   {.kernel_driver = kernels::rocket::kDriverName,
                                                    .node = {},
                                                    .compatible = std::string((*cores)[i].compatible),
                                                    .facts = {{kernels::kCoresFact, count}}},
                                                   options.watch(line)));
    const std::string name = fmt::format("{} core {}", options.chip, i);
    all->push_back({.window = {.address = address, .size_bytes = kResetOffset + kResetBytes, .name = name},
                    .device = std::make_unique<Core>(name, i, iommu_sets(i), shared, options.faults,
                                                     options.surroundings(line), std::move(watch)),
                    .nodes = nodes_of(options, i, address, (*cores)[i].compatible),
                    .driver = kernels::rocket::kDriverName,
                    .note = i != 0 || (*cores)[i].compatible == kInLinux
                                ? ""
                                : fmt::format("Linux's rocket (7.2.13) does not support '{}': no node appears",
                                              (*cores)[i].compatible)});
  }
  return all;
}

}  // namespace skillet::mmio::rocket
