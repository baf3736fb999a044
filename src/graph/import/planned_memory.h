// Offsets that the maker of a model planned for its tensors in memory, for operations that a vendor's compiler made.
// Called by import.cpp, and by the delegate for the model that its host has read.
// Must not know: what such operations do.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "graph/ir/graph.h"

namespace skillet::tflite {
namespace schema {
struct Model;
}

inline constexpr std::string_view kMemoryPlan = "OfflineMemoryAllocation";  // the name of the metadata

// Sets ir::Tensor::planned_at if the file's metadata has a plan for all of its tensors. `number_of`: the number in the
// file of each tensor of the graph, -1 for none.
void set_planned_places(std::span<const uint8_t> plan, size_t tensors, std::span<const int> number_of,
                        ir::Graph& graph);
// The same for a whole file; also make_zeros() for operands of custom operations that no op computes. Memory that
// several operations use is passed from each to the next, as a value.
void add_planned_memory(const schema::Model& model, ir::Graph& graph);
// Gives each value one producer, and passes memory that several operations use from each to the next, as a value.
// `is_memory`: by tensor. Returns, for each added tensor, the tensor of which it is a later value; kNoTensor: memory.
std::vector<ir::TensorId> separate_values(const std::vector<bool>& is_memory, ir::Graph& graph);
// After that: the operations from the first to the last that pass memory on, including those between them.
std::vector<ir::OpId> joined_by_memory(const ir::Graph& graph);
// Makes a tensor that is an operation's own memory a constant: zeros that take no memory until they are read.
void make_zeros(ir::Tensor& tensor);

}  // namespace skillet::tflite
