// The devices of this machine that can run a network, and the simulated chips.
// Called by tools and the C interface.
// Must not know: the layout of a printed list.
#pragma once

#include <string>
#include <vector>

namespace skillet::runtime {

struct ListedDevice {
  std::string device;         // name for open_target()
  std::string kernel_driver;  // empty: none
  std::string title, note;    // description; a remark, or why it is not usable
  bool usable = false;
  bool is_node = false;    // a device node of this machine
  bool simulated = false;  // a chip in this process
  bool is_sold = true;     // for a simulated chip: see npu::Chip
};

// Nodes by name, simulated chips by family, the CPU.
std::vector<ListedDevice> list_devices();
std::vector<ListedDevice> list_nodes();  // device nodes of this machine only, without simulated chips

}  // namespace skillet::runtime
