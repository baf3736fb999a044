// Reads TensorFlow Lite model files into ir::Graph: the first subgraph, or the subgraph of a signature.
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

// Which part of a file is read, and with which input shapes.
struct ImportOptions {
  // "1x224x224x3" for the only input, or "NAME=1x224x224x3": replaces the file's sizes. The rank stays.
  std::vector<std::string> input_shapes;
  std::string signature;  // signature whose subgraph is read; empty: the first subgraph
  // Borrowed, may be null. By op: the fields that its version does not have (appended_fields.h).
  std::map<ir::OpId, std::string>* newer_fields = nullptr;
  // Variables and sparse weights stay with the operations that hold them (VAR_HANDLE, DENSIFY), as opaque ops.
  bool as_hosts_have_it = false;
};

// Constants of the graph are views into one copy of `file`, which its tensors keep alive. Operations without a row in
// the IR, and custom ones, become opaque ops with their TFLite name. Shapes are inferred and the graph is verified.
// Error: the file is damaged, or uses something that we cannot represent; the message names the tensor or op. Logs a
// warning for free sizes that were not given, and for signatures other than the one that is read.
Result<ir::Graph> import(std::span<const uint8_t> file, std::string name, ImportOptions options = {});

// The same without the copy; the graph's name is the file's name without folder and extension.
Result<ir::Graph> import_file(const std::string& path, ImportOptions options = {});

// The same for a file that was read from `path`.
Result<ir::Graph> import_read(Bytes file, const std::string& path, ImportOptions options = {});

// "CONV_2D"; empty if the code is not known.
std::string_view builtin_name(int32_t code);

}  // namespace skillet::tflite
