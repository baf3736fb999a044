// What ethosu reports about a chip, and what it asks of a command stream: from the rows of the chip's family.
// Called by the emulated ethosu, and by the table of emulated kernel drivers.
// Must not know: how the values are asked for.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "kernels/ethosu/abi.h"

namespace skillet::fake::ethosu {

// What the kernel finds in a stream: how many bytes of each region it uses (0: it does not), and which it writes.
struct StreamNeeds {
  std::array<uint64_t, kernels::ethosu::kRegions> bytes{};
  std::array<bool, kernels::ethosu::kRegions> writes{};
};

struct Identity {
  std::string_view compatible;
  std::string_view assumption = "";  // why a chip stands here that the mainline driver does not know; empty: it does
  uint32_t id = 0, config = 0, sram_bytes = 0;
  Result<StreamNeeds> (*check)(std::span<const uint32_t> stream) = nullptr;  // error: the kernel refuses it, and why
};

// Of a chip by its name; nothing for those that are no chip of this driver.
std::optional<Identity> identity_of(std::string_view chip);

}  // namespace skillet::fake::ethosu
