// Clocks: what sysfs reports of how fast CPU and devices may run just now, who decides it, and how warm they are.
// Called by `skillet bench`, `skillet tune` and `skillet top`; the tests give it a made-up folder.
// Must not know: what is measured.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace skillet::tools {

struct Clock {
  std::string name;      // "cpu0", "fdab0000.npu"
  std::string governor;  // "ondemand"; empty: not known
  double mhz = 0;        // just now; 0: not known
};
// One for each group of CPUs that share a clock, and each device with a clock of its own. `root` stands before every
// path.
std::vector<Clock> read_clocks(const std::string& root = "");

struct Temperature {
  std::string name;  // "cpu-thermal"
  double celsius = 0;
};
std::vector<Temperature> read_temperatures(const std::string& root = "");

// Of files that cannot be read: empty, 0, none.
std::string first_line(const std::filesystem::path& path);
double number_in(const std::filesystem::path& path, double unit);
std::vector<std::filesystem::path> entries(const std::filesystem::path& folder);  // sorted

}  // namespace skillet::tools
