// What a file says of an operation and TFLite's kernels do not read.
// Called where graphs of others are read: by the importer of files and by the delegate, for each op.
// Must not know: file formats, chips.
#pragma once

#include "graph/ir/graph.h"

namespace skillet::ir {

// Int8 filters have zero point 0, as TFLite's kernels take them: where it is another, the op reads a copy of its
// filter, which is added to the graph, or there is an error where the kernel refuses it. (Our own graphs may have any.)
// The op's operands must be checked.
Result<void> settle_filter(Graph& graph, OpId op);

}  // namespace skillet::ir
