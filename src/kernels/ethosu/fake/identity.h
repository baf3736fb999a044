// What ethosu reports about a chip, and its checks of a command stream: from the rows of the chip's family.
// Called by the emulated ethosu, and by the table of emulated kernel drivers.
// Must not know: how the values are queried.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "kernels/ethosu/abi.h"

namespace skillet::fake::ethosu {

// Results of the kernel's check of a stream: the bytes that it uses of each region (0: unused), and the regions it
// writes.
struct StreamNeeds {
  std::array<uint64_t, kernels::ethosu::kRegions> bytes{};
  std::array<bool, kernels::ethosu::kRegions> writes{};
};

struct Identity {
  std::string_view compatible;
  std::string_view assumption = "";  // why it is listed although mainline does not support it; empty: it does
  uint32_t id = 0, config = 0, sram_bytes = 0;
  Result<StreamNeeds> (*check)(std::span<const uint32_t> stream) = nullptr;  // error: why the kernel refuses the stream
};

// The identity of a chip by its name; none: not a chip of this driver.
std::optional<Identity> identity_of(std::string_view chip);

}  // namespace skillet::fake::ethosu
