// Converts float models to 8-bit weights and activations with a published quantizer in Python (float_quantizers.py).
// Called by quantize.cpp.
// Must not know: chips.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "graph/import/import.h"
#include "graph/ir/graph.h"

namespace skillet::tools {

// True if it has layers with weights, all computed in float with float weights.
bool is_float_model(const ir::Graph& graph);

enum class Weights : uint8_t { scale_per_channel, scale_per_tensor };

struct EightBits {
  Bytes file;       // the model's inputs and outputs; a TensorFlow Lite file always has a scale per channel
  ir::Graph graph;  // graph of the file
  std::string by;   // the quantizer and its version
  std::vector<std::string> notes;
};

// `path`: the .tflite or .onnx file of `graph`; `file`: its contents, of which an .onnx file may have more in other
// files; `inferences`: inputs by input of the graph. Errors: python3 (or SKILLET_PYTHON) cannot be started or has no
// such package, or the quantizer fails, with its message.
Result<EightBits> quantize_float(const std::string& path, const Bytes& file, const ir::Graph& graph,
                                 const std::vector<std::vector<Bytes>>& inferences, Weights weights,
                                 const tflite::ImportOptions& import_as);

}  // namespace skillet::tools
