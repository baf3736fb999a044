// The kernel interface of the DRM core, which the drivers of NPUs share: ioctl numbers and structs, checked for size.
// Called by kernels/api/ and the emulated kernel drivers. linux-libc-dev of Debian has no DRM headers.
// Must not know: any single driver.
#pragma once

#include <sys/ioctl.h>

#include <cstddef>
#include <cstdint>

namespace skillet::kernels::drm {

struct Version {
  int32_t version_major, version_minor, version_patch;
  size_t name_len;
  char* name;
  size_t date_len;
  char* date;
  size_t desc_len;
  char* desc;
};
struct Unique {
  size_t unique_len;
  char* unique;
};
struct Auth {
  uint32_t magic;
};
struct SetVersion {
  int32_t di_major, di_minor, dd_major, dd_minor;
};
struct GetCap {
  uint64_t capability, value;
};
struct GemClose {
  uint32_t handle, pad;
};
struct PrimeHandle {
  uint32_t handle, flags;
  int32_t fd;
};

constexpr unsigned kType = 'd';            // of all ioctls of DRM
constexpr unsigned kFirstDriverNr = 0x40;  // numbers from here on are the driver's own

constexpr unsigned long kVersion = _IOWR(kType, 0x00, Version);
constexpr unsigned long kGetUnique = _IOWR(kType, 0x01, Unique);
constexpr unsigned long kGetMagic = _IOR(kType, 0x02, Auth);
constexpr unsigned long kSetVersion = _IOWR(kType, 0x07, SetVersion);
constexpr unsigned long kGemClose = _IOW(kType, 0x09, GemClose);
constexpr unsigned long kGetCap = _IOWR(kType, 0x0c, GetCap);
constexpr unsigned long kPrimeHandleToFd = _IOWR(kType, 0x2d, PrimeHandle);
constexpr unsigned long kPrimeFdToHandle = _IOWR(kType, 0x2e, PrimeHandle);

constexpr uint64_t kCapPrime = 5, kCapTimestampMonotonic = 6, kCapSyncobj = 0x13, kCapSyncobjTimeline = 0x14;
constexpr uint64_t kPrimeImport = 1, kPrimeExport = 2;
constexpr uint32_t kPrimeCloexec = 02000000, kPrimeReadWrite = 02;  // O_CLOEXEC, O_RDWR

constexpr unsigned kMajor = 226;  // of the character devices in /dev/dri
constexpr unsigned kCardMinor = 0, kRenderMinor = 128, kLastRenderMinor = 191;

static_assert(kGemClose == 0x40086409 && kPrimeHandleToFd == 0xC00C642D && kPrimeFdToHandle == 0xC00C642E);
static_assert(sizeof(void*) != 8 || (kVersion == 0xC0406400 && kGetUnique == 0xC0106401));
static_assert(kGetMagic == 0x80046402 && kSetVersion == 0xC0106407 && kGetCap == 0xC010640C);

}  // namespace skillet::kernels::drm
