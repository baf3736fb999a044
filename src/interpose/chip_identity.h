// What the kernel tells about a chip that is simulated: its parameters and its place in sysfs.
// Called by the virtual device node.
// Must not know: how the values are asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace skillet::interpose {

struct ChipIdentity {
  std::string_view chip;
  std::string_view device_name;   // in sysfs: "ff100000.npu"
  std::string_view of_full_name;  // in the device tree: "/soc/npu@ff100000"
  uint32_t features[13];
};

// The identity of a chip; one without features, at a neutral place, for a chip whose values are not known.
const ChipIdentity& identity_of(std::string_view chip);

// The answer to GET_PARAM of the only core; nothing for a parameter that the kernel does not know.
std::optional<uint64_t> chip_param(std::string_view chip, uint32_t param);

}  // namespace skillet::interpose
