// Completes a graph as hosts do before they pass its nodes: types and sizes of all values, and constants that follow
// from constants and sizes.
// Called by import.cpp; rules of sizes in sizes.cpp, constants in fold.cpp, the rest in settle.cpp. Must not know:
// files, ir::Graph.
#pragma once

#include "frontend/onnx/file.h"

namespace skillet::onnx {

// Visits all nodes in order. Removes nodes that only pass a value on, replaces nodes computed from constants by
// constants, and sets types and sizes of the others' outputs. If these cannot be inferred, the declared ones stay.
// Error: a node does not fit its inputs.
Result<void> settle(ModelFile& file);

// Sets types and sizes of the outputs of `node`, if they follow from its inputs.
Result<void> infer(Model& model, const Node& node);
// A few bytes of a file may describe any number of elements. Larger results are left to the program that runs the
// graph.
constexpr int64_t kMostElems = 1 << 24;
// The number of elements; none: it is not known, or not plausible.
std::optional<int64_t> elems_of(const Value& value);

// Computes the output of `node` as a constant. False: it is not constant.
bool fold(ModelFile& file, const Node& node);

// The broadcast shape; none: the shapes do not fit.
std::optional<std::vector<int64_t>> broadcast(const std::vector<int64_t>& a, const std::vector<int64_t>& b);

}  // namespace skillet::onnx
