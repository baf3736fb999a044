// Reads clock, temperature and powered time of the NPU behind a node from sysfs.
// Called by `skillet top`; tests pass a folder of their own.
// Must not know: who uses the NPU.
#pragma once

#include <optional>
#include <string>

namespace skillet::tools {

struct NpuState {
  bool is_virtual = false;           // a node of `skillet virtual`, in which this process runs
  std::optional<double> mhz;         // from devfreq, else from debugfs (root only)
  std::optional<double> celsius;     // the warmest of the thermal zones and sensors named after the NPU
  std::optional<double> powered_ms;  // total of the core that was powered longest: no core computes longer
};
// `platform_driver`: in /sys/bus/platform/drivers; its devices that are named after an NPU are its cores.
NpuState npu_state(const std::string& node, const std::string& platform_driver, const std::string& root = "");

}  // namespace skillet::tools
