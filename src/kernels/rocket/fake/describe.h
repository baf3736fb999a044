// Arguments of this kernel driver's calls, for people who watch a program.
// Called by the table of calls.
// Must not know: what the calls do.
#pragma once

#include <string>

#include "kernels/rocket/abi.h"

namespace skillet::kernels::rocket {

std::string describe(const CreateBo& args);
std::string describe(const Submit& args);
std::string describe(const PrepBo& args);
std::string describe(const FiniBo& args);

}  // namespace skillet::kernels::rocket
