#include "tools/time/clocks.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

namespace skillet::tools {
namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

double number_in(const fs::path& path, double unit) {
  const std::string text = first_line(path);
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value / unit;
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure); !failure && at != fs::directory_iterator(); at.increment(failure))
    out.push_back(at->path());
  std::ranges::sort(out);
  return out;
}

std::vector<Clock> read_clocks(const std::string& root) {
  constexpr double kKhzPerMhz = 1e3, kHzPerMhz = 1e6;
  std::vector<Clock> out;
  for (const fs::path& policy : entries(root + "/sys/devices/system/cpu/cpufreq")) {
    if (!policy.filename().string().starts_with("policy")) continue;
    out.push_back({"cpu" + policy.filename().string().substr(6), first_line(policy / "scaling_governor"),
                   number_in(policy / "scaling_cur_freq", kKhzPerMhz)});
  }
  for (const fs::path& device : entries(root + "/sys/class/devfreq"))
    out.push_back(
        {device.filename().string(), first_line(device / "governor"), number_in(device / "cur_freq", kHzPerMhz)});
  return out;
}

std::vector<Temperature> read_temperatures(const std::string& root) {
  constexpr double kMilli = 1e3;
  std::vector<Temperature> out;
  for (const fs::path& zone : entries(root + "/sys/class/thermal")) {
    if (zone.filename().string().starts_with("thermal_zone"))
      out.push_back({first_line(zone / "type"), number_in(zone / "temp", kMilli)});
  }
  return out;
}

}  // namespace skillet::tools
