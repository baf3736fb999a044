// What sysfs contains about the cores of rocket.
// Called by the emulated rocket, and by the table of emulated kernel drivers.
// Must not know: what a core does.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "kernels/fake/kernel.h"

namespace skillet::fake::rocket {

// The cores of a chip by its name; none: not a chip of this driver.
std::optional<std::vector<NodePlace::Device>> cores_of(std::string_view chip);

}  // namespace skillet::fake::rocket
