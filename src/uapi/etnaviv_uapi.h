// The kernel interface of the etnaviv DRM driver, as the ioctls take it: numbers and structs, checked for size.
// Called by uapi/etnaviv*.cpp and the interposers that stand in for that kernel driver.
// Must not know: what the commands mean.
#pragma once

#include <sys/ioctl.h>

#include <cstddef>
#include <cstdint>

namespace skillet::uapi::etnaviv {

constexpr const char* kDriverName = "etnaviv";
constexpr uint32_t kMaxPipes = 4;                    // cores of one DRM device
constexpr uint64_t kNoSoftpin = ~uint64_t{0};        // SOFTPIN_START_ADDR of a core without MMUv2
constexpr uint64_t kAddressEnd = uint64_t{1} << 32;  // of the device's address space
constexpr uint64_t kPageBytes = 4096;                // of the device's MMU
constexpr int kFirstRenderMinor = 128, kLastRenderMinor = 191;

enum Param : uint32_t {
  kParamModel = 0x01,
  kParamRevision = 0x02,
  kParamSoftpinStart = 0x1b,
  kParamProductId = 0x1c,
  kParamCustomerId = 0x1d,
  kParamEcoId = 0x1e,
};

enum BoFlag : uint32_t { kBoCached = 0x00010000, kBoWriteCombined = 0x00020000, kBoUncached = 0x00040000 };
enum PrepOp : uint32_t { kPrepRead = 1, kPrepWrite = 2, kPrepNoSync = 4 };
enum SubmitBoFlag : uint32_t { kSubmitBoRead = 1, kSubmitBoWrite = 2 };
enum SubmitFlag : uint32_t { kSubmitNoImplicit = 1, kSubmitFenceFdIn = 2, kSubmitFenceFdOut = 4, kSubmitSoftpin = 8 };
constexpr uint32_t kWaitNonBlock = 1;
constexpr uint32_t kPrimeCloexec = 02000000, kPrimeReadWrite = 02;  // O_CLOEXEC, O_RDWR

struct DrmVersion {
  int32_t version_major, version_minor, version_patch;
  size_t name_len;
  char* name;
  size_t date_len;
  char* date;
  size_t desc_len;
  char* desc;
};
struct GemClose {
  uint32_t handle, pad;
};
struct PrimeHandle {
  uint32_t handle, flags;
  int32_t fd;
};
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
struct WaitFence {
  uint32_t pipe, fence, flags, pad;
  Timespec timeout;
};
struct GemWait {
  uint32_t pipe, handle, flags, pad;
  Timespec timeout;
};

constexpr unsigned long kDrmVersion = _IOWR('d', 0x00, DrmVersion);
constexpr unsigned long kGemClose = _IOW('d', 0x09, GemClose);
constexpr unsigned long kPrimeHandleToFd = _IOWR('d', 0x2d, PrimeHandle);
constexpr unsigned long kPrimeFdToHandle = _IOWR('d', 0x2e, PrimeHandle);
constexpr unsigned long kGetParam = _IOWR('d', 0x40, GetParam);
constexpr unsigned long kGemNew = _IOWR('d', 0x42, GemNew);
constexpr unsigned long kGemInfo = _IOWR('d', 0x43, GemInfo);
constexpr unsigned long kGemCpuPrep = _IOW('d', 0x44, GemCpuPrep);
constexpr unsigned long kGemCpuFini = _IOW('d', 0x45, GemCpuFini);
constexpr unsigned long kGemSubmit = _IOWR('d', 0x46, GemSubmit);
constexpr unsigned long kWaitFence = _IOW('d', 0x47, WaitFence);
constexpr unsigned long kGemWait = _IOW('d', 0x49, GemWait);

static_assert(kGemClose == 0x40086409 && kPrimeHandleToFd == 0xC00C642D && kPrimeFdToHandle == 0xC00C642E);
static_assert(kGetParam == 0xC0106440 && kGemNew == 0xC0106442 && kGemInfo == 0xC0106443);
static_assert(kGemCpuPrep == 0x40186444 && kGemCpuFini == 0x40086445 && kGemSubmit == 0xC0486446);
static_assert(kWaitFence == 0x40206447 && kGemWait == 0x40206449);
static_assert(sizeof(void*) != 8 || kDrmVersion == 0xC0406400);
static_assert(sizeof(SubmitBo) == 16 && sizeof(SubmitReloc) == 24);
static_assert(offsetof(GemSubmit, bos) == 24 && offsetof(GemSubmit, stream) == 40 && offsetof(GemSubmit, flags) == 48);
static_assert(offsetof(GemSubmit, fence_fd) == 52 && offsetof(GemSubmit, pmrs) == 56);

}  // namespace skillet::uapi::etnaviv
