// Reads the attributes of one operation from the parameters that TensorFlow Lite keeps with a node.
// Called by graph_builder.cpp.
// Must not know: tensors, graphs.
#pragma once

#include "base/result.h"
#include "frontend/tflite_delegate/tflite_abi.h"
#include "graph/ir/op.h"

namespace skillet::delegate {

// `builtin_data`: parameters of an op of this kind and version. Error: they are missing, hold an unknown value, or
// require what the IR cannot express; the caller adds the op's name.
Result<ir::Attrs> read_attrs(ir::OpKind kind, const void* builtin_data, int version);

}  // namespace skillet::delegate
