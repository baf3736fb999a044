// What this machine has that could run a network, and the chips that we simulate.
// Called by tools and the C interface.
// Must not know: how a list is laid out.
#pragma once

#include <string>
#include <vector>

namespace skillet::runtime {

struct ListedDevice {
  std::string device;         // what open_target() takes
  std::string kernel_driver;  // empty: none
  std::string title, note;    // what it is; what is to be said about it, or why it is not usable
  bool usable = false;
  bool is_node = false;    // a device node of this machine
  bool simulated = false;  // a chip in this process
  bool is_sold = true;     // of a simulated one: see npu::Chip
};

// Nodes by name, simulated chips by family, the CPU.
std::vector<ListedDevice> list_devices();
std::vector<ListedDevice> list_nodes();  // those of this machine alone: no chip is simulated

}  // namespace skillet::runtime
