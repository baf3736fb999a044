// A view of the NPUs of this machine over an interval: who uses them, and how much. And its three forms.
// Called by `skillet top`.
// Must not know: how often it is asked for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/machine/npu_state.h"
#include "tools/machine/npu_uses.h"

namespace skillet::tools {

struct TopUse {
  ProcessUse now;
  std::optional<double> jobs_per_s, busy_percent;  // since the view before; none: it was not there, or it is not known
};
struct TopDevice {
  std::string device, chip, kernel_driver;  // empty: not known
  NpuKind kind = NpuKind::npu;
  NpuState state;
  std::optional<double> powered_percent;
  std::optional<size_t> cores;         // none: not known, or each process has an NPU of its own
  std::optional<double> busy_percent;  // of the time of all cores, for all processes that are seen; none: likewise
  std::vector<TopUse> uses;            // the busiest first
};
struct TopView {
  double seconds = 0;              // since the view before; 0: there was none
  std::vector<TopDevice> devices;  // those of this machine, also unused ones; then others by name
};

class Top {
 public:
  // Looks for the NPUs of this machine, once. `root` stands before every path.
  explicit Top(std::string root = "");
  TopView look();

 private:
  struct Known {
    std::string node, chip, kernel_driver, platform_driver;
  };
  TopDevice& device_of(TopView& view, const ProcessUse& use) const;
  void compare(TopView& view) const;

  const std::string root_;
  std::vector<Known> npus_;  // a node may have several chips
  TopView last_;
  double last_s_ = 0;
};

std::string print_text(const TopView& view);
std::string print_json(const TopView& view);
// For the textfile collector of Prometheus' node exporter.
std::string print_prometheus(const TopView& view);

}  // namespace skillet::tools
