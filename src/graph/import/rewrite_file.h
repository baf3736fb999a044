// A model file with other operations: what passes made of its first subgraph. All else in it stays as it is, byte by
// byte: names, metadata, signatures, other subgraphs, what we have no rows for.
// Called by tools.
// Must not know: chips, passes.
#pragma once

#include <span>

#include "base/result.h"
#include "graph/ir/graph.h"

namespace skillet::tflite {

// `before` is what import() made of `file`; `after` has its tensors, others behind them, and any operations. What is
// new stands in front of the old file, whose own tables are used where they are.
Result<Bytes> rewrite_file(std::span<const uint8_t> file, const ir::Graph& before, const ir::Graph& after);

}  // namespace skillet::tflite
