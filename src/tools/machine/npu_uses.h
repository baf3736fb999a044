// Which processes use NPUs, as /proc shows it to this user: by the kernel's lines in fdinfo, by the pages of processes
// that use Skillet (base/use_page.h), or only by their open nodes. What is read is whatever these processes like: texts
// come out fit for a terminal, and numbers are as they are.
// Called by `skillet top`; its tests give it made-up folders and processes.
// Must not know: rates, what is printed.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace skillet::tools {

enum class NpuKind : uint8_t { npu, virtual_node, simulated };
std::string_view name_of(NpuKind kind);

// Of one device by one process: what it has done so far.
struct ProcessUse {
  std::string device;  // "/dev/accel/accel0", "sim:a311d"
  NpuKind kind = NpuKind::npu;
  uint64_t process = 0;
  std::string process_name;
  std::string chip;                         // empty: not known
  size_t files = 0;                         // open devices that a page counts
  size_t cores = 1;                         // of the NPU: how many busy times of it there can be at once
  std::set<std::string> models;             // of a process that uses Skillet: those that were loaded last
  std::optional<uint64_t> submitted, jobs;  // jobs: that have finished; none: not known, as the next two
  std::optional<double> busy_ns;            // of all engines, or of all open files
  uint64_t read_at_ns = 0;                  // of CLOCK_MONOTONIC: when jobs and busy_ns were that
  std::optional<double> bytes;              // of buffers
  bool kernel_says_busy = false, kernel_says_bytes = false;
};

// `nodes`: DRM nodes that are NPUs; all of /dev/accel are. `root` stands before every path.
std::vector<ProcessUse> npu_uses(const std::set<std::string>& nodes, const std::string& root = "");

// What the kernel says of one open file of DRM in its fdinfo.
struct DrmFdinfo {
  std::string driver, client;     // empty: not said
  std::optional<double> busy_ns;  // of all engines, by their capacity; else of their cycles
  size_t engines = 0;             // that these are of
  std::optional<double> bytes;    // resident ones, else those of an older form, else all
};
DrmFdinfo parse_fdinfo(std::string_view text);

}  // namespace skillet::tools
