// One side of a comparison: a capture file, a folder with capture.json (a golden case), a compiled model, or a model to
// compile. Called by `skillet diff`, and by the test that compares its result with the golden comparison.
// Must not know: anything of a vendor.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "lab/compare/compare.h"
#include "runtime/compiled_model.h"

namespace skillet::tools {

struct DiffSide {
  std::string kind;  // "capture", "program", "model"
  capture::Reader reader;
  std::optional<npu::Chip> chip;  // its chip, if known
  bool exact_sizes = false;
  std::vector<npu::KnownTensor> tensors = {};  // for programs and models
  std::optional<runtime::CompiledModel> compiled = {};
};

// `chip`: the chip to compile a model for, or to select of a compiled model; captures have their own.
Result<DiffSide> load_side(const std::string& path, const std::optional<npu::Chip>& chip,
                           const npu::CompileOptions& options);

// Decodes both for `chip`. Addresses of tensors are compared if both sides have them.
Result<npu::CaptureComparison> compare(const npu::Chip& chip, DiffSide a, DiffSide b);

}  // namespace skillet::tools
