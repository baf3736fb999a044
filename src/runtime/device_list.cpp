#include "runtime/device_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "kernels/api/device.h"
#include "npu/driver.h"
#include "runtime/device_context.h"
#include "runtime/session_keys.h"

namespace skillet::runtime {
namespace {

namespace fs = std::filesystem;

// Name of the kernel driver of a device node, from sysfs; empty if sysfs has none.
std::string kernel_driver_of(const fs::path& node) {
  const char* kind = node.parent_path().filename() == "accel" ? "accel" : "drm";
  std::error_code ignored;
  return fs::read_symlink(fs::path("/sys/class") / kind / node.filename() / "device/driver", ignored)
      .filename()
      .string();
}

// "core 1" if cores are submitted to one by one, "3 cores" if the kernel driver shares them out.
std::string cores_text(const kernels::Core& core) {
  const uint64_t cores = core.info.fact(kernels::kCoresFact);
  return cores > 1 ? fmt::format("{} cores", cores) : fmt::format("core {}", core.index);
}

}  // namespace

// One row per core: NPUs under the names that --device takes, and other cores with the reason why they are not NPUs.
std::vector<ListedDevice> list_nodes() {
  std::vector<ListedDevice> rows;
  const std::vector<kernels::NodeReport> nodes = kernels::find_devices();
  const NpuSearch all = identify(nodes);
  const bool allowed = unproven_of_environment() != npu::Unproven::refuse;
  for (const FoundNpu& npu : all.npus) {
    const std::string& unproven = npu.chip.unproven;
    const std::string note = unproven.empty() ? "" : "; " + (allowed ? "unproven: " + unproven : refusal(npu.chip));
    rows.push_back({.device = npu.core.info.node,
                    .kernel_driver = npu.core.info.kernel_driver,
                    .title = npu.chip.title,
                    .note = fmt::format("{}; also called {}{}", cores_text(npu.core), npu.name, note),
                    .usable = unproven.empty() || allowed,
                    .is_node = true});
  }
  for (const kernels::NodeReport& node : nodes) {
    const NpuSearch search = identify({node});
    if (!search.npus.empty()) continue;
    const std::string driver = node.kernel_driver.empty() ? kernel_driver_of(node.node) : node.kernel_driver;
    rows.push_back(
        {.device = node.node, .kernel_driver = driver, .title = "", .note = search.rejected, .is_node = true});
  }
  std::sort(rows.begin(), rows.end(), [](const ListedDevice& a, const ListedDevice& b) { return a.device < b.device; });
  return rows;
}

namespace {

std::string note_of(const npu::Chip& chip, const Result<Target>& target) {
  if (!target.ok()) return chip.unproven.empty() ? target.error().message : chip.unproven;
  const std::string note = "simulated in this process";
  return chip.unproven.empty() ? note : fmt::format("{}; unproven: {}", note, chip.unproven);
}

std::vector<ListedDevice> simulated_devices() {
  std::vector<ListedDevice> rows;
  for (const npu::Driver* driver : npu::drivers()) {
    for (const npu::Chip& chip : driver->chips()) {
      const std::string device = "sim:" + chip.name;
      const auto target = open_target(device);
      rows.push_back({.device = device,
                      .kernel_driver = target.ok() ? target->context->device->info().kernel_driver : "",
                      .title = chip.title,
                      .note = note_of(chip, target),
                      .usable = target.ok(),
                      .simulated = true,
                      .is_sold = chip.is_sold});
    }
  }
  return rows;
}

}  // namespace

std::vector<ListedDevice> list_devices() {
  std::vector<ListedDevice> rows = list_nodes();
  std::ranges::copy(simulated_devices(), std::back_inserter(rows));
  rows.push_back(
      {.device = "cpu", .kernel_driver = "", .title = "this processor", .note = "reference kernels", .usable = true});
  return rows;
}

}  // namespace skillet::runtime
