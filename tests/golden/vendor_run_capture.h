// Operations of the RK3576's vendor compiler beyond a single convolution or pool: additions, with or without a
// convolution, and tables. Runs their captures on the simulator and compares the results with the float model. Called
// by vendor_run.cpp. Must not know: how programs are encoded.
#pragma once

#include "npu/driver.h"
#include "vendor_float.h"

namespace skillet::golden {

bool is_of_floats(const VendorCase& c);  // of 16 bits
// Error: something the simulator does not model. `steps`: the convolutions of the case.
Result<ReplayRow> run_capture_of(const VendorCase& c, const npu::Chip& chip, const std::string& name, int number,
                                 const std::vector<VendorStep>& steps);

}  // namespace skillet::golden
