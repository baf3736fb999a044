// Reads ONNX files into ir::Graph: quantized units as 8-bit operations, all other nodes in float or unchanged.
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
  // "1x3x224x224" for the only input, or "NAME=1x3x224x224": sets dynamic sizes or overrides sizes of the file.
  std::vector<std::string> input_shapes;
  std::string folder;  // folder of files beside the model; empty: none are read
  // Borrowed, may be null. Filled with the reasons of opaque operations, by source_index.
  std::vector<std::string>* left = nullptr;
};

// Inputs and outputs have the file's layout; inside the graph channels are last. Nodes without a matching operation
// become opaque ops with their ONNX name. Shapes are inferred and the graph is verified. Error: the file is damaged, or
// has something that the IR cannot represent; the message names the node or tensor.
Result<ir::Graph> import(Bytes file, std::string name, const ImportOptions& options = {});

// Sets the graph's name to the file name without folder and extension; errors start with the path.
Result<ir::Graph> import_file(const std::string& path, ImportOptions options = {});

}  // namespace skillet::onnx
