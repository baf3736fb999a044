// Reads ONNX files into ir::Graph: quantized units as operations of 8 bits, all else in float or as it is.
// Called by tools/.
// Must not know: chips, passes, hosts.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "graph/ir/graph.h"

namespace skillet::onnx {

struct ImportOptions {
  // "1x3x224x224" for the only input, or "NAME=1x3x224x224": sizes that the file leaves free, or other ones.
  std::vector<std::string> input_shapes;
  std::string folder;  // of files beside the model; empty: none are read
  // Borrowed; where there is one: by op of the graph's source_index, why it is opaque.
  std::vector<std::string>* left = nullptr;
};

// Inputs and outputs are as the file has them; inside, channels are last. Nodes that we have no operation for become
// opaque ops with their ONNX name. Shapes are inferred and the graph is verified.
// Error: the file is damaged, or uses what we cannot represent; the message names the node or tensor.
Result<ir::Graph> import(Bytes file, std::string name, const ImportOptions& options = {});

// The graph's name is the file's name without folder and ending; errors start with the path.
Result<ir::Graph> import_file(const std::string& path, ImportOptions options = {});

}  // namespace skillet::onnx
