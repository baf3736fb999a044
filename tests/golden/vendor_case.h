// Compares programs of the RK3576's vendor compiler (DIR/CHIP/SET/CASE/case.json: no model, but formulas for its
// numbers) with ours for the same operations. Called by skillet_golden and its tests.
// Must not know: simulators, how programs are encoded.
#pragma once

#include <string>

#include "expectations.h"
#include "npu/driver.h"
#include "vendor_files.h"
#include "vendor_model.h"

namespace skillet::golden {

// Returns whether the folder of a case contains vendor programs.
bool is_vendor_case(const std::string& dir, const std::string& chip, const std::string& name);

// Outcomes:
//   identical     words, weights and coefficients of all convolutions and pools are the same but for base addresses
//   differs       the details have the first words and bytes that differ; the summary has how many of each
//   not_compared  a kind of program that our compiler does not write like the vendor's: the details say which
//   failed        the case could not be read or compiled
Outcome compare_vendor_case(const std::string& dir, const npu::Chip& chip, const std::string& name);

// A convolution or pool of a case, with its numbers.
struct VendorStep {
  int number = 0;
  VendorOp op;
  Quantized in, out;
  FloatConv conv;
  QuantizedConv q;
  ConvWords words;
};
// Parses one of the "ops" of a case.
VendorOp vendor_op(const nlohmann::json& op);
Result<std::vector<VendorStep>> vendor_steps(const VendorCase& c, const npu::Chip& chip, const std::string& name);

}  // namespace skillet::golden
