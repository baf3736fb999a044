// Writes a model file with the operations that passes made of its first subgraph. All else stays as it is, byte by
// byte: names, metadata, signatures, other subgraphs, fields that we have no rows for.
// Called by tools.
// Must not know: chips, passes.
#pragma once

#include <span>

#include "base/result.h"
#include "graph/ir/graph.h"

namespace skillet::tflite {

// `before` is the result of import() of `file`; `after` has the same tensors, then new ones, and any operations. New
// tables are placed before the old file, whose own tables stay in use.
Result<Bytes> rewrite_file(std::span<const uint8_t> file, const ir::Graph& before, const ir::Graph& after);

// `file`, with other operations in place of loops, branches, calls and MediaPipe's TRANSPOSE_CONV, as import() reads
// them. `graph` is the result of import() of `file`. Returns the same bytes if there are none.
Result<Bytes> flat_file(Bytes file, const ir::Graph& graph);

}  // namespace skillet::tflite
