// Reads TensorFlow Lite model files into ir::Graph, the first subgraph of each.
// Called by tools/ and the C API.
// Must not know: chips, passes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "ir/graph.h"

namespace skillet::tflite {

// Constants of the graph are views into one copy of `file`, which its tensors keep alive. Operations that the IR has no
// row for, and custom ones, become opaque ops with their TFLite name. Shapes are inferred and the graph is verified.
// Error: the file is damaged, or uses what we cannot represent; the message names the tensor or op.
Result<ir::Graph> import(std::span<const uint8_t> file, std::string name);

// The same without the copy; the graph's name is the file's name without folder and ending.
Result<ir::Graph> import_file(const std::string& path);

// Of a file that was read from `path`.
Result<ir::Graph> import_read(Bytes file, const std::string& path);

// "CONV_2D"; empty where the code is not known.
std::string_view builtin_name(int32_t code);

}  // namespace skillet::tflite
