// Clocks: current speeds of CPUs and devices from sysfs, their governors, and temperatures.
// Called by `skillet bench`, `skillet tune` and `skillet top`; tests pass a folder of their own.
// Must not know: the measurement.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace skillet::tools {

struct Clock {
  std::string name;      // "cpu0", "fdab0000.npu"
  std::string governor;  // "ondemand"; empty: not known
  double mhz = 0;        // current; 0: not known
};
// One for each group of CPUs with a common clock, and each device with a clock of its own. `root`: prefix of every
// path.
std::vector<Clock> read_clocks(const std::string& root = "");

struct Temperature {
  std::string name;  // "cpu-thermal"
  double celsius = 0;
};
std::vector<Temperature> read_temperatures(const std::string& root = "");

// For files that cannot be read: empty, 0, none.
std::string first_line(const std::filesystem::path& path);
double number_in(const std::filesystem::path& path, double unit);
std::vector<std::filesystem::path> entries(const std::filesystem::path& folder);  // sorted

}  // namespace skillet::tools
