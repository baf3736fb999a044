// A model compiled for a chip as a session compiles it, with all operations that the chip takes on the chip.
// Called by the golden comparison and by skillet_streams.
// Must not know: captures, devices, anything about vendors.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "npu/driver.h"

namespace skillet::golden {

struct CompiledPart {
  std::vector<int32_t> ops;  // ids in the model file
  ir::Graph graph;
  std::vector<int32_t> model_inputs;  // for each input of `graph`: the index of the model's input, or -1
  npu::Program program;
};
struct CompiledModel {
  npu::Chip chip;
  std::vector<CompiledPart> parts;    // those on the chip, in execution order
  std::vector<std::string> refusals;  // "op 3 CONV_2D -> 'x': reason"
};

// Error when the model cannot be read, or when a part does not compile.
Result<CompiledModel> compile_model(const std::string& path, const npu::Chip& chip, const npu::CompileOptions& options);

}  // namespace skillet::golden
