// KernelDriver: what there is to know about a mainline kernel's driver of NPUs: one row each, in
// kernels/<kernel>/client/row.cpp. Called by the search for devices, `skillet devices`, `skillet doctor` and error
// texts. Must not know: chips, emulated kernel drivers.
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

// A board whose NPU the driver drives, and since when.
struct Board {
  std::string_view compatible, name;  // "amlogic,a311d", "Amlogic A311D"
  Release since;
  std::string_view core;  // its place in the mainline device tree
  // What its NPU needs that is in no mainline kernel; empty: nothing. Then `since` is of the kernel that it goes on top
  // of.
  std::string_view patches = "";
};
// What users of an NPU should know, and what it may mean when its jobs end without having written.
struct Notes {
  std::string_view compatible;  // the device tree's name of a core; empty: any
  std::string_view hint, lost_jobs;
  bool takes_turns = false;  // its cores spoil each other: of all files, one at a time has jobs
};

struct KernelDriver {
  std::string_view name;  // as DRM reports it
  NodeRange nodes;
  int major = 0, minor = 0;          // the interface that we need: this major version, at least this minor one
  int last_major = major;            // of later ones, up to which each takes what it takes
  Release since;                     // the kernel that has it
  std::string_view module, config;   // "etnaviv", "CONFIG_DRM_ETNAVIV"
  std::string_view platform_driver;  // in /sys/bus/platform/drivers
  std::string_view module_folder;    // below /lib/modules/RELEASE/kernel
  std::string_view cores;            // "Vivante core": what its device-tree nodes are called
  std::span<const std::string_view> compatibles;     // of device-tree nodes that it takes
  std::span<const std::string_view> vendor_modules;  // a vendor's own drivers that would hold the device instead
  std::span<const Board> boards;
  std::string_view others;  // what else the driver's nodes may be, for those without an NPU
  std::span<const Notes> notes = {};

  Result<std::vector<Core>> (*ask)(const DrmFile& file) = nullptr;
  Result<std::unique_ptr<Device>> (*open)(const Core& core, const SyscallsRef& calls) = nullptr;
  std::shared_ptr<FileRecorder> (*record)(const SyscallsRef& calls, const std::string& node, RecordSink) = nullptr;
  Result<std::unique_ptr<Replayer>> (*replay)(const Core& core, const SyscallsRef& calls) = nullptr;
};

std::span<const KernelDriver> kernel_drivers();
// Null for a driver that we do not speak to.
const KernelDriver* find_kernel_driver(std::string_view name);
// Of KernelDriver::notes those of the device.
Notes notes_of(const capture::DeviceInfo& info);
// A file of the core's node, which has the turn where files take turns: as long as it is open, nobody else's jobs run.
Result<DrmFile> hold_turn(const Core& core, const SyscallsRef& calls);
// Where find_devices() looks: "/dev/dri/renderD128 to renderD191".
std::string searched_nodes();

}  // namespace skillet::kernels
