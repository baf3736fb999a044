// An Ethos-U for Linux's ethosu: one device, without on-chip memory for jobs.
#include "lab/mmio/place.h"

#include <fmt/format.h>

#include "kernels/ethosu/fake/identity.h"
#include "lab/mmio/ethosu/core.h"

namespace skillet::mmio::ethosu {

Result<std::optional<std::vector<Placed>>> place(const PlaceOptions& options) {
  const auto identity = fake::ethosu::identity_of(options.chip);
  if (!identity || !identity->assumption.empty()) return std::optional<std::vector<Placed>>();
  SK_TRY_ASSIGN(std::unique_ptr<sim::Device> chip, sim::create(options.chip, options.quirks));
  SK_TRY_ASSIGN(JobWatch watch, JobWatch::create(options.chip,
                                                 {.kernel_driver = "ethosu",
                                                  .node = {},
                                                  .compatible = std::string(identity->compatible),
                                                  .facts = {{"id", identity->id}, {"config", identity->config}}},
                                                 options.watch(options.line)));
  std::optional<std::vector<Placed>> all(std::in_place);
  all->push_back(
      {.window = {.address = options.address, .size_bytes = kRegisterBytes, .name = std::string(options.chip)},
       .device = std::make_unique<Core>(
           std::string(options.chip), Core::Identity{identity->id, identity->config, identity->check}, std::move(chip),
           options.faults, options.surroundings(options.line), std::move(watch)),
       .nodes = fmt::format(R"(
      npu@{0:x} {{
        compatible = "{1}", "arm,ethos-u65";
        reg = <0x0 {0:#x} 0x0 {2:#x}>;
        interrupt-parent = <&lines>;
        interrupts = <{3} 4>;
        clocks = <&clock>, <&clock>;
        clock-names = "core", "apb";
      }};
)",
                            options.address, identity->compatible, kRegisterBytes, options.line)});
  return all;
}

}  // namespace skillet::mmio::ethosu
