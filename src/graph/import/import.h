// Reads TensorFlow Lite model files into ir::Graph: the first subgraph of each, or that of a signature.
// Called by tools/ and the C API.
// Must not know: chips, passes.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "graph/ir/graph.h"

namespace skillet::tflite {

// What of a file is read, and how large.
struct ImportOptions {
  // "1x224x224x3" for the only input, or "NAME=1x224x224x3": sizes other than the file's. The rank stays.
  std::vector<std::string> input_shapes;
  std::string signature;  // whose subgraph is read; empty: the first subgraph
  // Borrowed; where there is one: by op, which of its fields its version has not (appended_fields.h).
  std::map<ir::OpId, std::string>* newer_fields = nullptr;
  // Variables and sparse weights stay with the operations that hold them (VAR_HANDLE, DENSIFY), which are opaque.
  bool as_hosts_have_it = false;
};

// Constants of the graph are views into one copy of `file`, which its tensors keep alive. Operations that the IR has no
// row for, and custom ones, become opaque ops with their TFLite name. Shapes are inferred and the graph is verified.
// Error: the file is damaged, or uses what we cannot represent; the message names the tensor or op. A warning is logged
// where sizes are free and nobody gave them, and where there are other signatures than the one that is read.
Result<ir::Graph> import(std::span<const uint8_t> file, std::string name, ImportOptions options = {});

// The same without the copy; the graph's name is the file's name without folder and ending.
Result<ir::Graph> import_file(const std::string& path, ImportOptions options = {});

// Of a file that was read from `path`.
Result<ir::Graph> import_read(Bytes file, const std::string& path, ImportOptions options = {});

// "CONV_2D"; empty where the code is not known.
std::string_view builtin_name(int32_t code);

}  // namespace skillet::tflite
