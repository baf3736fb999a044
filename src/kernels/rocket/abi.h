// The kernel interface of the rocket accel driver (Linux 6.18): ioctl numbers and structs, checked for size. Called by
// kernels/rocket/client/, the emulated kernel driver and tests. No package of Debian 12 has the header. Must not know:
// what the commands mean.
#pragma once

#include "kernels/api/drm.h"

namespace skillet::kernels::rocket {

constexpr const char* kDriverName = "rocket";
constexpr unsigned kAccelMajor = 261;                // of the character devices in /dev/accel
constexpr uint64_t kPageBytes = 4096;                // of the IOMMU
constexpr uint64_t kAddressEnd = uint64_t{1} << 32;  // of each file's address space, which begins at 0
constexpr uint64_t kCommandBytes = 8;
constexpr uint64_t kCommandsAlignment = 16;  // of the address of a task's commands

struct CreateBo {
  uint32_t size, handle;
  uint64_t dma_address, offset;
};
struct PrepBo {
  uint32_t handle, reserved;
  int64_t timeout_ns;  // absolute, CLOCK_MONOTONIC
};
struct FiniBo {
  uint32_t handle, reserved;
};
struct Task {
  uint32_t regcmd, regcmd_count;  // address and number of 64-bit commands
};
struct SubmitJob {
  uint64_t tasks, in_bo_handles, out_bo_handles;
  uint32_t task_count, task_struct_size, in_bo_handle_count, out_bo_handle_count;
};
struct Submit {
  uint64_t jobs;
  uint32_t job_count, job_struct_size;
  uint64_t reserved;
};

constexpr unsigned long kCreateBo = _IOWR(drm::kType, 0x40, CreateBo);
constexpr unsigned long kSubmit = _IOW(drm::kType, 0x41, Submit);
constexpr unsigned long kPrepBo = _IOW(drm::kType, 0x42, PrepBo);
constexpr unsigned long kFiniBo = _IOW(drm::kType, 0x43, FiniBo);

static_assert(kCreateBo == 0xC0186440 && kSubmit == 0x40186441 && kPrepBo == 0x40106442 && kFiniBo == 0x40086443);
static_assert(sizeof(Task) == 8 && sizeof(SubmitJob) == 40 && offsetof(SubmitJob, task_count) == 24);
static_assert(offsetof(CreateBo, dma_address) == 8 && offsetof(Submit, reserved) == 16);

}  // namespace skillet::kernels::rocket
