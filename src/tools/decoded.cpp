#include "tools/decoded.h"

namespace skillet::tools {

Result<driver::Chip> chip_of(const capture::DeviceInfo& device, const std::string& wanted) {
  if (!wanted.empty()) return driver::find_chip(wanted);
  std::string reasons;
  for (const driver::Driver* driver : driver::drivers()) {
    auto chip = driver->identify(device);
    if (chip.ok()) return chip;
    if (!chip.error().message.empty()) reasons += fmt::format("; {}: {}", driver->name(), chip.error().message);
  }
  return error(ErrorCode::unsupported, "no driver knows the recorded device '{}' (use --chip){}", device.kernel_driver,
               reasons);
}

}  // namespace skillet::tools
