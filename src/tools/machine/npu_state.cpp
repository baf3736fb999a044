#include "tools/machine/npu_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "tools/time/clocks.h"

namespace skillet::tools {
namespace {

namespace fs = std::filesystem;

bool is_of_npu(std::string_view name) { return name.find("npu") != std::string_view::npos; }

// The folder of the node's device, and those of its cores.
std::vector<fs::path> device_folders(const std::string& node, const std::string& platform_driver,
                                     const std::string& root) {
  const bool is_accel = node.starts_with("/dev/accel/");
  const fs::path own =
      fmt::format("{}/sys/class/{}/{}/device", root, is_accel ? "accel" : "drm", fs::path(node).filename().string());
  std::vector<fs::path> all = {own};
  for (const fs::path& core : entries(root + "/sys/bus/platform/drivers/" + platform_driver))
    if (is_of_npu(core.filename().string())) all.push_back(core);
  std::vector<fs::path> real;
  for (const fs::path& one : all) {
    std::error_code missing;
    const fs::path folder = fs::canonical(one, missing);
    if (!missing && std::ranges::find(real, folder) == real.end()) real.push_back(folder);
  }
  return real;
}

void keep_largest(std::optional<double>& largest, double value) {
  if (value > largest.value_or(0)) largest = value;
}

}  // namespace

NpuState npu_state(const std::string& node, const std::string& platform_driver, const std::string& root) {
  constexpr double kMilli = 1e3, kHzPerMhz = 1e6;
  NpuState state;
  const std::vector<Clock> clocks = read_clocks(root);
  for (const fs::path& folder : device_folders(node, platform_driver, root)) {
    state.is_virtual |= folder.string().find("/platform/skillet/") != std::string::npos;
    keep_largest(state.powered_ms, number_in(folder / "power/runtime_active_time", 1));
    for (const Clock& clock : clocks)
      if (clock.name == folder.filename()) keep_largest(state.mhz, clock.mhz);
    for (const fs::path& sensor : entries(folder / "hwmon"))
      keep_largest(state.celsius, number_in(sensor / "temp1_input", kMilli));
  }
  for (const fs::path& clock : entries(root + "/sys/kernel/debug/clk"))
    if (!state.mhz && is_of_npu(clock.filename().string()))
      keep_largest(state.mhz, number_in(clock / "clk_rate", kHzPerMhz));
  for (const Temperature& zone : read_temperatures(root))
    if (is_of_npu(zone.name)) keep_largest(state.celsius, zone.celsius);
  return state;
}

}  // namespace skillet::tools
