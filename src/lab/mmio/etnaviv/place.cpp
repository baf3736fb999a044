// A Vivante core for etnaviv: one device.
#include "lab/mmio/place.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/etnaviv/abi.h"
#include "kernels/etnaviv/fake/identity.h"
#include "lab/mmio/etnaviv/core.h"

namespace skillet::mmio::etnaviv {
namespace {

constexpr uint64_t kRegisterBytes = 0x1000;
// Observed with Linux 7.2.13: of five cores the last is left out, and with eight the node cannot be opened.
constexpr uint32_t kMostCores = 4;
// Cores in Linux's table. For other cores it reads the features from registers, whose values on silicon are not known
// for any core.
constexpr std::string_view kInLinuxTable[] = {"a311d", "imx8mp", "stm32mp25"};
constexpr const char* kNote =
    "Linux 7.2.13 has no row for this core: the node appears, without an MMU that skillet can use, so the CPU computes";

// Facts that a client reads from the kernel.
capture::DeviceInfo info_of(const fake::etnaviv::Identity& known) {
  constexpr const char* kFacts[] = {"model", "revision", "product", "customer", "eco"};
  capture::DeviceInfo info{.kernel_driver = kernels::etnaviv::kDriverName,
                           .node = {},
                           .compatible = std::string(known.compatible),
                           .facts = {}};
  for (size_t i = 0; i < known.ids.size(); ++i) info.facts.push_back({kFacts[i], known.ids[i]});
  return info;
}

}  // namespace

Result<std::optional<std::vector<Placed>>> place(const PlaceOptions& options) {
  const fake::etnaviv::Identity known = fake::etnaviv::identity_of(options.chip);
  if (known.chip.empty()) return std::optional<std::vector<Placed>>();
  SK_TRY_ASSIGN(auto simulator, sim::create(options.chip, options.quirks));
  const Identity identity{.ids = known.ids, .features = known.features};
  SK_TRY_ASSIGN(JobWatch watch, JobWatch::create(options.chip, info_of(known), options.watch(options.line)));
  Placed placed{.window = {.address = options.address, .size_bytes = kRegisterBytes, .name = std::string(options.chip)},
                .device = std::make_unique<Core>(std::string(options.chip), identity, std::move(simulator),
                                                 options.faults, options.surroundings(options.line), std::move(watch)),
                .nodes = {},
                .driver = kernels::etnaviv::kDriverName,
                .most_of_driver = kMostCores,
                .note = std::ranges::count(kInLinuxTable, options.chip) != 0 ? "" : kNote};
  placed.nodes = fmt::format(R"(
      npu@{0:x} {{
        compatible = "{1}";
        reg = <0x0 {0:#x} 0x0 {2:#x}>;
        interrupt-parent = <&lines>;
        interrupts = <{3} 4>;
        clocks = <&clock>;
        clock-names = "core";
      }};
)",
                             options.address, known.compatible, kRegisterBytes, options.line);
  std::optional<std::vector<Placed>> all(std::in_place);
  all->push_back(std::move(placed));
  return all;
}

}  // namespace skillet::mmio::etnaviv
