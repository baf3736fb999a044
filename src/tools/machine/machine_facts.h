// MachineFacts: what /proc, /sys, /dev and /lib report about NPUs and their kernel drivers, gathered once.
// Called by `skillet doctor`; the tests give it made-up folders.
// Must not know: what follows from the facts (diagnose.h).
#pragma once

#include <string>
#include <vector>

#include "kernels/api/kernels.h"
#include "runtime/device_context.h"

namespace skillet::tools {

enum class ModuleState { loaded, on_disk, missing };

// What there is of one kernel driver and the devices that it takes.
struct DriverFacts {
  const kernels::KernelDriver* driver = nullptr;   // borrowed from the table
  std::vector<std::string> cores, disabled_cores;  // paths of device-tree nodes that it takes
  ModuleState module = ModuleState::missing;
  std::string vendor_module;  // a vendor's own driver that is loaded instead
};

struct MachineFacts {
  std::string container;       // "docker"; empty: none
  std::string kernel_release;  // "6.8.0-rc1"
  bool has_device_tree = false;
  std::string board;                          // its model name, from the device tree
  std::vector<std::string> board_compatible;  // "amlogic,a311d", ...
  std::vector<DriverFacts> drivers;           // of each kernel driver that we speak to
  std::vector<kernels::NodeReport> nodes;
  bool takes_unproven = false;           // SKILLET_UNPROVEN is not refuse
  std::vector<std::string> permissions;  // by node: what is missing; empty: nothing
};

// `root` stands before every path.
MachineFacts gather_facts(const std::string& root = "");

}  // namespace skillet::tools
