// Removes fields of a file that TFLite's kernels do not read.
// Called for each op by code that reads others' graphs: the importer of files and the delegate.
// Must not know: file formats, chips.
#pragma once

#include "graph/ir/graph.h"

namespace skillet::ir {

// Gives int8 filters zero point 0, as TFLite's kernels assume. If a filter has another one, the op reads a copy of the
// filter, which is added to the graph; an error if the kernel refuses it. (Our own graphs may have any.) The op's
// operands must be checked before.
Result<void> settle_filter(Graph& graph, OpId op);

}  // namespace skillet::ir
