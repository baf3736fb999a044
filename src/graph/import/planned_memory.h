// add_planned_memory(): what the maker of a model says of the memory of its tensors, for operations that a vendor's
// compiler made.
// Called by import.cpp.
// Must not know: what such operations do.
#pragma once

#include "graph/ir/graph.h"
#include "tflite_schema_generated.h"

namespace skillet::tflite {

// Sets ir::Tensor::planned_at where the metadata of the file has a plan for all of its tensors. Operands of custom
// operations that nobody computes are the operation's own memory: they become constants, zeros that take no memory
// until somebody reads them.
void add_planned_memory(const schema::Model& model, ir::Graph& graph);

}  // namespace skillet::tflite
