// One side of a comparison: a capture file, a folder with capture.json (a golden case), a compiled model, or a model
// that is compiled here. Called by `skillet diff`, and by the test that its verdict is that of the golden comparison.
// Must not know: a vendor's anything.
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
  std::optional<npu::Chip> chip;  // what it was made for, where that is known
  bool exact_sizes = false;
  std::vector<npu::KnownTensor> tensors = {};  // of programs and models
  std::optional<runtime::CompiledModel> compiled = {};
};

// `chip`: what a model is compiled for, or which of a compiled model's chips; captures know theirs.
Result<DiffSide> load_side(const std::string& path, const std::optional<npu::Chip>& chip,
                           const npu::CompileOptions& options);

// As `chip` reads them. Where tensors are is compared when both sides say so.
Result<npu::CaptureComparison> compare(const npu::Chip& chip, DiffSide a, DiffSide b);

}  // namespace skillet::tools
