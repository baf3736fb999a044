#include "runtime/device_context.h"

#include "base/log.h"

namespace skillet::runtime {
namespace {

constexpr std::string_view kSimPrefix = "sim:";

Result<Target> open_simulator(const std::string& name, capture::Capture* capture) {
  Target target{.name = name};
  const std::string chip_name = name.substr(kSimPrefix.size());
  SK_TRY_ASSIGN(target.chip, driver::find_chip(chip_name));
  SK_TRY_ASSIGN(target.driver, driver::driver_of(target.chip));
  SK_TRY_ASSIGN(std::unique_ptr<uapi::Device> device, uapi::open_simulated(chip_name));
  if (capture != nullptr) device = uapi::record(std::move(device), *capture);
  target.context = std::make_shared<DeviceContext>();
  target.context->device = std::move(device);
  return target;
}

}  // namespace

Result<Target> open_target(const std::string& name, capture::Capture* capture) {
  if (name == "cpu") return Target{.name = name};
  if (name.starts_with(kSimPrefix)) return open_simulator(name, capture).with_context(name);
  if (name == "auto") {
    log::info("no NPU found; running on the CPU");
    return Target{.name = "cpu"};
  }
  if (name.starts_with("/")) return error(ErrorCode::unsupported, "{}: this build opens no kernel devices", name);
  return error(ErrorCode::invalid_argument, "device '{}' is none of auto, cpu, sim:CHIP, /dev/...", name);
}

}  // namespace skillet::runtime
