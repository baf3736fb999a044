#include "tools/jobs/decoded.h"

#include "base/text.h"

namespace skillet::tools {

Result<npu::Chip> chip_of(const capture::DeviceInfo& device, const std::string& wanted) {
  if (!wanted.empty()) {
    SK_TRY_ASSIGN(npu::Chip chip, npu::find_chip(wanted));
    // The option may name other chips of the same family; jobs of another family cannot be decoded by it.
    for (const npu::Driver* driver : npu::drivers()) {
      const auto recorded = driver->identify(device);
      if (recorded.ok() && recorded->family != chip.family)
        return error(ErrorCode::invalid_argument, "these are jobs for {}; {} is of another family", recorded->name,
                     chip.name);
    }
    return chip;
  }
  std::string reasons;
  for (const npu::Driver* driver : npu::drivers()) {
    auto chip = driver->identify(device);
    if (chip.ok()) return chip;
    if (!chip.error().message.empty()) reasons += fmt::format("; {}: {}", driver->name(), chip.error().message);
  }
  // Names come from the capture, so they are escaped.
  return error(
      ErrorCode::unsupported, "{}",
      printable(fmt::format("no driver knows the recorded device '{}' (use --chip){}", device.kernel_driver, reasons)));
}

bool is_same_hardware(const npu::Driver& driver, capture::DeviceInfo a, capture::DeviceInfo b) {
  a.compatible.clear();
  b.compatible.clear();
  const auto chip_a = driver.identify(a), chip_b = driver.identify(b);
  return chip_a.ok() && chip_b.ok() && chip_a->name == chip_b->name;
}

}  // namespace skillet::tools
