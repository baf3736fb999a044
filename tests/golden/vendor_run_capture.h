// Operations of the RK3576's vendor compiler that are more than a convolution or a pool: additions, with or without a
// convolution, and tables. Their captures run on the simulator, and what they write is beside the float model. Called
// by vendor_run.cpp. Must not know: how programs are encoded.
#pragma once

#include "npu/driver.h"
#include "vendor_float.h"

namespace skillet::golden {

bool is_of_floats(const VendorCase& c);  // of 16 bits
// Error: what the simulator does not model. `steps`: the convolutions of the case.
Result<ReplayRow> run_capture_of(const VendorCase& c, const npu::Chip& chip, const std::string& name, int number,
                                 const std::vector<VendorStep>& steps);

}  // namespace skillet::golden
