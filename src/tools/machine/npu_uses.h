// Finds processes that use NPUs, as far as /proc shows them to this user: by the kernel's lines in fdinfo, by pages of
// processes that use Skillet (base/use_page.h), or only by their open nodes. The data is untrusted: texts are escaped
// for a terminal, numbers are unchanged.
// Called by `skillet top`; its tests pass folders and processes of their own.
// Must not know: rates, output.
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

// Total use of one device by one process.
struct ProcessUse {
  std::string device;  // "/dev/accel/accel0", "sim:a311d"
  NpuKind kind = NpuKind::npu;
  uint64_t process = 0;
  std::string process_name;
  std::string chip;                         // empty: not known
  size_t files = 0;                         // open devices that a page counts
  size_t cores = 1;                         // cores of the NPU: limit of its simultaneous busy times
  std::set<std::string> models;             // for a process that uses Skillet: the models loaded last
  std::optional<uint64_t> submitted, jobs;  // jobs: finished jobs; none: not known, like the next two
  std::optional<double> busy_ns;            // sum of all engines, or of all open files
  uint64_t read_at_ns = 0;                  // CLOCK_MONOTONIC time of jobs and busy_ns
  std::optional<double> bytes;              // size of buffers
  bool kernel_says_busy = false, kernel_says_bytes = false;
};

// `nodes`: DRM nodes that are NPUs; all of /dev/accel are. `root`: prefix of every path.
std::vector<ProcessUse> npu_uses(const std::set<std::string>& nodes, const std::string& root = "");

// Use of one open DRM file, from the kernel's fdinfo.
struct DrmFdinfo {
  std::string driver, client;     // empty: not reported
  std::optional<double> busy_ns;  // sum of all engines, by capacity; else by their cycles
  size_t engines = 0;             // number of these engines
  std::optional<double> bytes;    // resident bytes, else those of an older key, else all
};
DrmFdinfo parse_fdinfo(std::string_view text);

}  // namespace skillet::tools
