// The property that the fuzz targets of the IR check: the text form loses nothing but long constants.
// Called by the fuzz targets of this folder.
// Must not know: where the graph came from.
#pragma once

#include "base/check.h"
#include "graph/ir/graph.h"

namespace skillet::fuzz {

// `graph` has passed verify().
inline void check_round_trip(ir::Graph graph) {
  // Constants that print() shortens to a hash are read back as zeros: make them zeros before comparing.
  for (ir::Tensor& tensor : graph.tensors) {
    if (tensor.is_constant() && tensor.data.size() > 16) ir::set_constant(tensor, Bytes(tensor.data.size()));
  }
  const std::string text = ir::print(graph);
  const auto again = ir::parse(text);
  SK_CHECK(again.ok());
  SK_CHECK(ir::print(*again) == text);
  // Not always true: a cleared constant may have been a list of indices.
  SK_CHECK(ir::verify(*again).ok() == ir::verify(graph).ok());
}

}  // namespace skillet::fuzz
