// Attributes of one operation from the options table of the model file.
// Called by import.cpp.
// Must not know: tensors, graphs.
#pragma once

#include "base/result.h"
#include "graph/ir/op.h"
#include "tflite_schema_generated.h"

namespace skillet::tflite {

// The error does not name the op: the caller adds it. Missing options have the schema's defaults, which ir::verify()
// may refuse (a stride of 0).
Result<ir::Attrs> read_attrs(ir::OpKind kind, const schema::Operator& op);

// True if the IR cannot express the options, so that the op must stay opaque.
bool must_stay_opaque(ir::OpKind kind, const schema::Operator& op);

}  // namespace skillet::tflite
