// The kernel interface of the etnaviv DRM driver: ioctl numbers and structs, checked for size. Called by
// kernels/etnaviv/client/, the emulated kernel driver and tests. No package of Debian 12 has the header. Must not know:
// what the commands mean.
#pragma once

#include "kernels/api/drm.h"

namespace skillet::kernels::etnaviv {

constexpr const char* kDriverName = "etnaviv";
constexpr uint32_t kMaxPipes = 4;                    // cores of one DRM device
constexpr uint64_t kNoSoftpin = ~uint64_t{0};        // SOFTPIN_START_ADDR of a core without MMUv2
constexpr uint64_t kAddressStart = 0x00400000;       // where user space may put buffers
constexpr uint64_t kAddressEnd = uint64_t{1} << 32;  // of the device's address space
constexpr uint64_t kPageBytes = 4096;                // of the device's MMU
// Limits of newer kernels, for the stream in bytes and for the numbers of buffers and relocations.
constexpr uint32_t kLargestSubmission = 128 * 1024;

enum Param : uint32_t {
  kParamModel = 0x01,
  kParamRevision = 0x02,
  kParamSoftpinStart = 0x1b,
  kParamProductId = 0x1c,
  kParamCustomerId = 0x1d,
  kParamEcoId = 0x1e,
};

enum BoFlag : uint32_t {
  kBoCached = 0x00010000,
  kBoWriteCombined = 0x00020000,
  kBoUncached = 0x00040000,
  kBoForceMmu = 0x00100000
};
enum PrepOp : uint32_t { kPrepRead = 1, kPrepWrite = 2, kPrepNoSync = 4 };
enum SubmitBoFlag : uint32_t { kSubmitBoRead = 1, kSubmitBoWrite = 2 };
enum SubmitFlag : uint32_t { kSubmitNoImplicit = 1, kSubmitFenceFdIn = 2, kSubmitFenceFdOut = 4, kSubmitSoftpin = 8 };
constexpr uint32_t kWaitNonBlock = 1;
constexpr uint32_t kUserptrRead = 1, kUserptrWrite = 2;

struct GetParam {
  uint32_t pipe, param;
  uint64_t value;
};
struct GemNew {
  uint64_t size;
  uint32_t flags, handle;
};
struct GemInfo {
  uint32_t handle, pad;
  uint64_t offset;
};
struct Timespec {  // absolute, CLOCK_MONOTONIC
  int64_t sec, nsec;
};
struct GemCpuPrep {
  uint32_t handle, op;
  Timespec timeout;
};
struct GemCpuFini {
  uint32_t handle, flags;
};
struct SubmitBo {
  uint32_t flags, handle;
  uint64_t presumed;  // the device address, with kSubmitSoftpin
};
struct SubmitReloc {
  uint32_t submit_offset, reloc_idx;
  uint64_t reloc_offset;
  uint32_t flags, pad;
};
struct GemSubmit {
  uint32_t fence, pipe, exec_state, nr_bos, nr_relocs, stream_size;
  uint64_t bos, relocs, stream;
  uint32_t flags;
  int32_t fence_fd;
  uint64_t pmrs;
  uint32_t nr_pmrs, pad;
};
// A performance counter that is read before or after the job. Its value goes into word `read_offset` of a listed
// buffer; `sequence` goes into word 0.
struct SubmitCounter {
  uint32_t flags;
  uint8_t domain, pad;
  uint16_t signal;
  uint32_t sequence, read_offset, read_idx;
};
struct WaitFence {
  uint32_t pipe, fence, flags, pad;
  Timespec timeout;
};
struct GemUserptr {
  uint64_t user_ptr, user_size;
  uint32_t flags, handle;
};
struct GemWait {
  uint32_t pipe, handle, flags, pad;
  Timespec timeout;
};
struct PmDomain {
  uint32_t pipe;
  uint8_t iter, id;
  uint16_t signal_count;
  char name[64];
};
struct PmSignal {
  uint32_t pipe;
  uint8_t domain, pad;
  uint16_t iter, id;
  char name[64];
};

constexpr unsigned long kGetParam = _IOWR(drm::kType, 0x40, GetParam);
constexpr unsigned long kGemNew = _IOWR(drm::kType, 0x42, GemNew);
constexpr unsigned long kGemInfo = _IOWR(drm::kType, 0x43, GemInfo);
constexpr unsigned long kGemCpuPrep = _IOW(drm::kType, 0x44, GemCpuPrep);
constexpr unsigned long kGemCpuFini = _IOW(drm::kType, 0x45, GemCpuFini);
constexpr unsigned long kGemSubmit = _IOWR(drm::kType, 0x46, GemSubmit);
constexpr unsigned long kWaitFence = _IOW(drm::kType, 0x47, WaitFence);
constexpr unsigned long kGemUserptr = _IOWR(drm::kType, 0x48, GemUserptr);
constexpr unsigned long kGemWait = _IOW(drm::kType, 0x49, GemWait);
constexpr unsigned long kPmQueryDomain = _IOWR(drm::kType, 0x4a, PmDomain);
constexpr unsigned long kPmQuerySignal = _IOWR(drm::kType, 0x4b, PmSignal);

static_assert(kGetParam == 0xC0106440 && kGemNew == 0xC0106442 && kGemInfo == 0xC0106443);
static_assert(kGemCpuPrep == 0x40186444 && kGemCpuFini == 0x40086445 && kGemSubmit == 0xC0486446);
static_assert(kWaitFence == 0x40206447 && kGemUserptr == 0xC0186448 && kGemWait == 0x40206449);
static_assert(kPmQueryDomain == 0xC048644A && kPmQuerySignal == 0xC04C644B);
static_assert(sizeof(SubmitBo) == 16 && sizeof(SubmitReloc) == 24);
static_assert(offsetof(GemSubmit, bos) == 24 && offsetof(GemSubmit, stream) == 40 && offsetof(GemSubmit, flags) == 48);
static_assert(offsetof(GemSubmit, fence_fd) == 52 && offsetof(GemSubmit, pmrs) == 56);

}  // namespace skillet::kernels::etnaviv
