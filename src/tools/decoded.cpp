#include "tools/decoded.h"

#include <filesystem>

#include "capture/reader.h"

namespace skillet::tools {

Result<driver::Chip> chip_of(const capture::DeviceInfo& device, const std::string& wanted) {
  if (!wanted.empty()) return driver::find_chip(wanted);
  std::string reasons;
  for (const driver::Driver* driver : driver::drivers()) {
    auto chip = driver->identify(device);
    if (chip.ok()) return chip;
    reasons += fmt::format("; {}: {}", driver->name(), chip.error().message);
  }
  return error(ErrorCode::unsupported, "no driver knows the recorded device '{}' (use --chip){}", device.kernel_driver,
               reasons);
}

Result<void> check_gives_way(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failure;
  if (!fs::exists(fs::symlink_status(path, failure))) return {};
  const auto old = fs::is_regular_file(path, failure) ? capture::Reader::open(path)
                                                      : Result<capture::Reader>(error(ErrorCode::malformed, ""));
  if (!old.ok() && old.error().code != ErrorCode::unsupported)
    return error(ErrorCode::invalid_argument, "{} exists and is no capture file", path);
  return {};
}

Result<void> remove_capture(const std::string& path) {
  SK_TRY(check_gives_way(path));
  std::error_code failure;
  std::filesystem::remove(path, failure);
  return failure ? Result<void>(error(ErrorCode::io, "{}: {}", path, failure.message())) : Result<void>();
}

}  // namespace skillet::tools
