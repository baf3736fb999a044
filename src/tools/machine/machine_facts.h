// MachineFacts: facts from /proc, /sys, /dev and /lib about NPUs and their kernel drivers, read once.
// Called by `skillet doctor`; tests pass a folder of their own.
// Must not know: conclusions from the facts (diagnose.h).
#pragma once

#include <string>
#include <vector>

#include "kernels/api/kernels.h"
#include "runtime/device_context.h"

namespace skillet::tools {

enum class ModuleState { loaded, on_disk, missing };

// The state of one kernel driver and its devices.
struct DriverFacts {
  const kernels::KernelDriver* driver = nullptr;   // borrowed from the table
  std::vector<std::string> cores, disabled_cores;  // paths of its device-tree nodes
  ModuleState module = ModuleState::missing;
  std::string vendor_module;  // a vendor's driver that is loaded instead
};

struct MachineFacts {
  std::string container;       // "docker"; empty: none
  std::string kernel_release;  // "6.8.0-rc1"
  bool has_device_tree = false;
  std::string board;                          // the board's model name, from the device tree
  std::vector<std::string> board_compatible;  // "amlogic,a311d", ...
  std::vector<DriverFacts> drivers;           // all supported kernel drivers
  std::vector<kernels::NodeReport> nodes;
  bool takes_unproven = false;           // SKILLET_UNPROVEN is not refuse
  std::vector<std::string> permissions;  // by node: the missing permission; empty: none
};

// `root`: prefix of every path.
MachineFacts gather_facts(const std::string& root = "");

}  // namespace skillet::tools
