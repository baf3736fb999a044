// What sysfs reports of the NPU behind a node: clock, temperature, how long it was powered.
// Called by `skillet top`; the tests give it a made-up folder.
// Must not know: who uses the NPU.
#pragma once

#include <optional>
#include <string>

namespace skillet::tools {

struct NpuState {
  bool is_virtual = false;           // of `skillet virtual`, in which this process runs
  std::optional<double> mhz;         // by devfreq, else by debugfs, which only root may read
  std::optional<double> celsius;     // of thermal zones and sensors that are named after the NPU: the warmest
  std::optional<double> powered_ms;  // so far, of the core that was powered longest: no core computes longer
};
// `platform_driver`: in /sys/bus/platform/drivers, whose devices named after an NPU are its cores.
NpuState npu_state(const std::string& node, const std::string& platform_driver, const std::string& root = "");

}  // namespace skillet::tools
