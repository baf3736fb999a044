// A graph of one operation that every chip takes.
// Called by files_test.cpp and calls_test.cpp.
// Must not know: what the tests check.
#pragma once

#include "graph/ir/graph.h"

namespace skillet::answers {

inline ir::Graph small_graph() {
  return ir::parse(R"(graph "small"
tensor 0 "x" uint8 1x3x4x5 scale=0.05 zero=120
tensor 1 "w" uint8 6x1x1x5 scale=0.02 zero=131 const=random:1
tensor 2 "b" int32 6 scale=0.001 zero=0 const=random:2
tensor 3 "y" uint8 1x3x4x6 scale=0.5 zero=110
inputs 0
outputs 3
op 0 CONV_2D in=[0 1 2] out=[3] padding=same
)")
      .value();
}

}  // namespace skillet::answers
