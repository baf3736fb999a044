#include "tools/decoded.h"

namespace skillet::tools {

Result<driver::Chip> chip_of(const capture::Capture& capture, const std::string& wanted) {
  if (!wanted.empty()) return driver::find_chip(wanted);
  std::string reasons;
  for (const driver::Driver* driver : driver::drivers()) {
    auto chip = driver->identify(capture.device);
    if (chip.ok()) return chip;
    reasons += fmt::format("; {}: {}", driver->name(), chip.error().message);
  }
  return error(ErrorCode::unsupported, "no driver knows the recorded device '{}' (use --chip){}",
               capture.device.kernel_driver, reasons);
}

Result<DecodedCapture> decode_capture(const std::string& path, const std::string& chip_name) {
  SK_TRY_ASSIGN(const capture::Capture capture, capture::read(path));
  SK_TRY_ASSIGN(const driver::Chip chip, chip_of(capture, chip_name).with_context(path));
  SK_TRY_ASSIGN(const driver::Driver* driver, driver::driver_of(chip));
  DecodedCapture out{.chip = chip, .device = capture.device, .submissions = {}};
  for (size_t i = 0; i < capture.submissions.size(); ++i) {
    auto decoded = driver->decode(chip, capture.submissions[i]);
    if (!decoded.ok()) return std::move(decoded).error().with_context(fmt::format("{}: submission {}", path, i));
    out.submissions.push_back(std::move(decoded).value());
  }
  return out;
}

}  // namespace skillet::tools
