// The ioctls of the DRM core and of etnaviv that only a stand-in for the kernel needs; the others: etnaviv_uapi.h.
// Called by the virtual device node.
// Must not know: what the commands mean.
#pragma once

#include <cstddef>
#include <cstdint>

namespace skillet::interpose {

struct DrmUnique {
  size_t unique_len;
  char* unique;
};
struct DrmAuth {
  uint32_t magic;
};
struct DrmSetVersion {
  int32_t di_major, di_minor, dd_major, dd_minor;
};
struct DrmGetCap {
  uint64_t capability, value;
};
struct GemUserptr {
  uint64_t user_ptr, user_size;
  uint32_t flags, handle;
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
static_assert(sizeof(GemUserptr) == 24 && sizeof(PmDomain) == 72 && sizeof(PmSignal) == 76);

constexpr uint64_t kCapPrime = 5, kCapTimestampMonotonic = 6, kCapSyncobj = 0x13, kCapSyncobjTimeline = 0x14;
constexpr uint64_t kPrimeImport = 1, kPrimeExport = 2;
constexpr uint32_t kUserptrRead = 1, kUserptrWrite = 2;

}  // namespace skillet::interpose
