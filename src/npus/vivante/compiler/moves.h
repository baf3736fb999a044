// Operations that move elements, by TP jobs that no driver is recorded with: the destination of each element.
// Called by support.cpp (are there such jobs?) and lower.cpp.
// Must not know: slots, bit positions.
#pragma once

#include "base/result.h"
#include "graph/ir/graph.h"
#include "npus/vivante/compiler/operations.h"
#include "npus/vivante/compiler/tp.h"

namespace skillet::npus::vivante {

struct Moves {
  Layout layout = Layout::nhwc;  // of input and output
  std::vector<Scatter> jobs;     // each reads the whole input
};
// DEPTH_TO_SPACE, RESIZE_NEAREST_NEIGHBOR by whole factors, TRANSPOSE of one image. An error is the reason why not.
Result<Moves> moves_of(const ir::Graph& graph, const ir::Op& op);

// For a PAD.
PadShape pad_shape(const ir::Graph& graph, ir::OpId op, Layout layout);

}  // namespace skillet::npus::vivante
