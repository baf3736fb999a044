// Arguments of this kernel driver's calls, for people who watch a program.
// Called by the table of calls.
// Must not know: what the calls do.
#pragma once

#include <string>

#include "kernels/ethosu/abi.h"

namespace skillet::kernels::ethosu {

std::string describe(const DevQuery& args);
std::string describe(const BoCreate& args);
std::string describe(const BoWait& args);
std::string describe(const BoMmapOffset& args);
std::string describe(const CmdstreamBoCreate& args);
std::string describe(const Submit& args);

}  // namespace skillet::kernels::ethosu
