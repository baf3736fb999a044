// Arguments of the calls that all DRM drivers share, for people who watch a program.
// Called by the tables of calls of emulated kernel drivers, which have the arguments of their own kernel driver beside
// it. Must not know: any single kernel driver.
#pragma once

#include <string>

#include "kernels/api/drm.h"

namespace skillet::kernels::drm {

std::string describe(const GetCap& args);
std::string describe(const GemClose& args);
std::string describe(const PrimeHandle& args);

}  // namespace skillet::kernels::drm
