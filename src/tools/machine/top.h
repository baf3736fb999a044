// A view of the NPUs of this machine over an interval: which processes use them, and how much. Also its three output
// forms.
// Called by `skillet top`.
// Must not know: the interval.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/machine/npu_state.h"
#include "tools/machine/npu_uses.h"

namespace skillet::tools {

struct TopUse {
  ProcessUse now;
  std::optional<double> jobs_per_s, busy_percent;  // since the last view; none: not in the last view, or not known
};
struct TopDevice {
  std::string device, chip, kernel_driver;  // empty: not known
  NpuKind kind = NpuKind::npu;
  NpuState state;
  std::optional<double> powered_percent;
  std::optional<size_t> cores;         // none: not known, or each process has an NPU of its own
  std::optional<double> busy_percent;  // share of all cores' time, for all visible processes; none: as for cores
  std::vector<TopUse> uses;            // busiest first
};
struct TopView {
  double seconds = 0;              // since the last view; 0: the first view
  std::vector<TopDevice> devices;  // devices of this machine, also unused ones; then others by name
};

class Top {
 public:
  // Looks for the NPUs of this machine once. `root`: prefix of every path.
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
// Output for the textfile collector of Prometheus' node exporter.
std::string print_prometheus(const TopView& view);

}  // namespace skillet::tools
