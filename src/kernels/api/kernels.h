// KernelDriver: facts about a mainline kernel driver of NPUs; one row each, in kernels/<kernel>/client/row.cpp. Called
// by the search for devices, `skillet devices`, `skillet doctor` and error texts. Must not know: chips, emulated kernel
// drivers.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/api/device.h"
#include "kernels/api/drm_file.h"
#include "kernels/api/recorder.h"
#include "kernels/api/replayer.h"

namespace skillet::kernels {

// Device nodes: "/dev/dri/renderD128" to "/dev/dri/renderD191".
struct NodeRange {
  std::string_view prefix;
  unsigned first = 0, last = 0;

  bool operator==(const NodeRange&) const = default;
};

struct Release {  // of the Linux kernel
  int major = 0, minor = 0;

  auto operator<=>(const Release&) const = default;
};

// A board whose NPU the driver supports, and since which kernel.
struct Board {
  std::string_view compatible, name;  // "amlogic,a311d", "Amlogic A311D"
  Release since;
  std::string_view core;  // its place in the mainline device tree
  // Patches that its NPU needs on top of a mainline kernel; empty: none. `since` is then the kernel that they apply to.
  std::string_view patches = "";
};
// Notes for users of an NPU, and a possible cause if its jobs end without having written.
struct Notes {
  std::string_view compatible;  // the device tree's name of a core; empty: any
  std::string_view hint, lost_jobs;
  bool takes_turns = false;  // its cores disturb each other: only one file at a time may have jobs
};

struct KernelDriver {
  std::string_view name;  // as DRM reports it
  NodeRange nodes;
  int major = 0, minor = 0;          // the required interface: this major version, at least this minor version
  int last_major = major;            // the last later major version that is compatible
  Release since;                     // the first kernel with the driver
  std::string_view module, config;   // "etnaviv", "CONFIG_DRM_ETNAVIV"
  std::string_view platform_driver;  // in /sys/bus/platform/drivers
  std::string_view module_folder;    // below /lib/modules/RELEASE/kernel
  std::string_view cores;            // "Vivante core": name of its device-tree nodes
  std::span<const std::string_view> compatibles;     // of supported device-tree nodes
  std::span<const std::string_view> vendor_modules;  // vendor drivers that may have taken the device instead
  std::span<const Board> boards;
  std::string_view others;  // what other devices the nodes may be, for machines without an NPU
  std::span<const Notes> notes = {};

  Result<std::vector<Core>> (*ask)(const DrmFile& file) = nullptr;
  Result<std::unique_ptr<Device>> (*open)(const Core& core, const SyscallsRef& calls) = nullptr;
  std::shared_ptr<FileRecorder> (*record)(const SyscallsRef& calls, const std::string& node, RecordSink) = nullptr;
  Result<std::unique_ptr<Replayer>> (*replay)(const Core& core, const SyscallsRef& calls) = nullptr;
};

std::span<const KernelDriver> kernel_drivers();
// Null: the driver is not supported.
const KernelDriver* find_kernel_driver(std::string_view name);
// The device's row of KernelDriver::notes.
Notes notes_of(const capture::DeviceInfo& info);
// Opens a file of the core's node that holds the turn, if files take turns: while it is open, no other file's jobs run.
Result<DrmFile> hold_turn(const Core& core, const SyscallsRef& calls);
// The nodes that find_devices() tries: "/dev/dri/renderD128 to renderD191".
std::string searched_nodes();

}  // namespace skillet::kernels
