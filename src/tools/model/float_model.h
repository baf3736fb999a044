// Float models written with 8-bit weights and activations, by a published quantizer in Python (float_quantizers.py).
// Called by quantize.cpp.
// Must not know: chips.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "graph/import/import.h"
#include "graph/ir/graph.h"

namespace skillet::tools {

// It has layers with weights, and all of them compute in float with float weights.
bool is_float_model(const ir::Graph& graph);

enum class Weights : uint8_t { scale_per_channel, scale_per_tensor };

struct EightBits {
  Bytes file;       // inputs and outputs as the model has them; TensorFlow Lite's: always a scale per channel
  ir::Graph graph;  // what the file holds
  std::string by;   // the quantizer and its version
  std::vector<std::string> notes;
};

// `path`: the .tflite or .onnx file that `graph` was read from, so; `inferences`: by input of the graph.
// Errors: python3 (or SKILLET_PYTHON) cannot be started, has no such package, or the quantizer fails: its own words.
Result<EightBits> quantize_float(const std::string& path, const ir::Graph& graph,
                                 const std::vector<std::vector<Bytes>>& inferences, Weights weights,
                                 const tflite::ImportOptions& import_as);

}  // namespace skillet::tools
