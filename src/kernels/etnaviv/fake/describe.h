// Arguments of this kernel driver's calls, for people who watch a program.
// Called by the table of calls.
// Must not know: what the calls do.
#pragma once

#include <string>

#include "kernels/etnaviv/abi.h"

namespace skillet::kernels::etnaviv {

std::string describe(const GetParam& args);
std::string describe(const GemNew& args);
std::string describe(const GemInfo& args);
std::string describe(const GemCpuPrep& args);
std::string describe(const GemCpuFini& args);
std::string describe(const GemSubmit& args);
std::string describe(const WaitFence& args);
std::string describe(const GemUserptr& args);
std::string describe(const GemWait& args);

}  // namespace skillet::kernels::etnaviv
