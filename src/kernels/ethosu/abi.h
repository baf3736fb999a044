// The kernel interface of the ethosu accel driver (Linux 6.19): ioctl numbers and structs, checked for size. Called by
// kernels/ethosu/client/, the emulated kernel driver and tests. No package of Debian 12 has the header. Source:
// hardware specification, section 2. Must not know: what the commands mean.
#pragma once

#include "kernels/api/drm.h"

namespace skillet::kernels::ethosu {

constexpr const char* kDriverName = "ethosu";
constexpr unsigned kAccelMajor = 261;  // of the character devices in /dev/accel
constexpr unsigned kRegions = 8;
constexpr unsigned kSramRegion = 2;  // region for on-chip memory
constexpr uint64_t kPageBytes = 4096;
constexpr uint32_t kCommandStreamMax = uint32_t{16} << 20;  // bytes
constexpr uint32_t kQueryNpuInfo = 0;
constexpr uint32_t kNpuInfoBytes = 12;  // of Linux 7.2; newer kernels have pmu_counters too

struct NpuInfo {
  uint32_t id, config, sram_size, pmu_counters;
};
struct DevQuery {
  uint32_t type, size;
  uint64_t pointer;
};
struct BoCreate {
  uint64_t size;
  uint32_t flags, handle;
};
struct BoWait {
  uint32_t handle, pad;
  int64_t timeout_ns;  // absolute, CLOCK_MONOTONIC
};
struct BoMmapOffset {
  uint32_t handle, pad;
  uint64_t offset;
};
struct CmdstreamBoCreate {
  uint32_t size, flags;
  uint64_t data;
  uint32_t handle, pad;
};
struct SubmitJob {
  uint32_t cmd_bo, sram_size;
  uint32_t region_bo_handles[kRegions];
};
struct Submit {
  uint64_t jobs;
  uint32_t job_count, perfmon_id;
};

constexpr uint32_t kBoNoMmap = 1;

constexpr unsigned long kDevQuery = _IOWR(drm::kType, 0x40, DevQuery);
constexpr unsigned long kBoCreate = _IOWR(drm::kType, 0x41, BoCreate);
constexpr unsigned long kBoWait = _IOWR(drm::kType, 0x42, BoWait);
constexpr unsigned long kBoMmapOffset = _IOWR(drm::kType, 0x43, BoMmapOffset);
constexpr unsigned long kCmdstreamBoCreate = _IOWR(drm::kType, 0x44, CmdstreamBoCreate);
constexpr unsigned long kSubmit = _IOWR(drm::kType, 0x45, Submit);

static_assert(kDevQuery == 0xC0106440 && kBoCreate == 0xC0106441 && kBoWait == 0xC0106442);
static_assert(kBoMmapOffset == 0xC0106443 && kCmdstreamBoCreate == 0xC0186444 && kSubmit == 0xC0106445);
static_assert(sizeof(SubmitJob) == 40 && offsetof(CmdstreamBoCreate, handle) == 16);

}  // namespace skillet::kernels::ethosu
