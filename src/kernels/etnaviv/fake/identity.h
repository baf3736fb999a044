// What the kernel reports about a core of etnaviv: its parameters, and its entry in the device tree.
// Called by the emulated etnaviv.
// Must not know: how the values are queried.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace skillet::fake::etnaviv {

struct Identity {
  std::string_view chip;                         // name in the table of known chips; empty for others
  std::string_view device_name = "virtual.npu";  // in sysfs: "ff100000.npu"
  std::string_view of_full_name = "/npu";        // in the device tree: "/soc/npu@ff100000"
  std::string_view compatible = "vivante,gc";
  // Why the chip is listed although the mainline driver does not support it; empty: it does.
  std::string_view assumption = "";
  std::array<uint32_t, 5> ids = {1};  // model, revision, product, customer, eco
  std::array<uint32_t, 13> features = {};
};

// The identity of a chip by name; a neutral one, without features, if its values are not known.
Identity identity_of(std::string_view chip);

// The result of GET_PARAM; none for an unknown parameter.
std::optional<uint64_t> param_of(const Identity& identity, uint32_t param);

}  // namespace skillet::fake::etnaviv
