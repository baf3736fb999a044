// Linux's driver ethosu's check of a stream of commands (hardware specification, section 2.3): whether it refuses the
// stream, and how much of each region it counts as used. Shared: the compiler allocates buffers of that size, the
// emulated kernel driver requires them.
// Called by npus/ethosu/compiler and npus/ethosu/fake.
// Must not know: what an operation computes.
#pragma once

#include <array>

#include "base/result.h"
#include "npus/ethosu/hw/ethosu.h"

namespace skillet::ethosu::hw {

struct StreamNeeds {
  std::array<uint64_t, kRegions> bytes{};  // 0: the stream does not use the region
  std::array<bool, kRegions> writes{};
};

// Error malformed: the kernel refuses the stream; the text gives the place and the reason.
Result<StreamNeeds> needs_of(std::span<const uint32_t> stream, Generation generation = Generation::u5x);

}  // namespace skillet::ethosu::hw
