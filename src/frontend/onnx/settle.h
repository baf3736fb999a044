// What a host knows of a graph before it asks for its nodes: types and sizes of all values, and what follows from
// constants and sizes alone.
// Called by import.cpp; rules of sizes in sizes.cpp, constants in fold.cpp. Must not know: files, ir::Graph.
#pragma once

#include "frontend/onnx/file.h"

namespace skillet::onnx {

// In order, for all nodes: what only passes a value on goes, what is computed from constants becomes one, the others
// get types and sizes of their outputs. Where these cannot be told, those that the file declares stay. Error: a node
// does not fit what it reads.
Result<void> settle(ModelFile& file);

// Sets types and sizes of what `node` computes, where they follow from what it reads.
Result<void> infer(Model& model, const Node& node);
// The output of `node` as a constant; false: it is none.
bool fold(ModelFile& file, const Node& node);

// Of broadcasting; nothing: they do not fit.
std::optional<std::vector<int64_t>> broadcast(const std::vector<int64_t>& a, const std::vector<int64_t>& b);

}  // namespace skillet::onnx
