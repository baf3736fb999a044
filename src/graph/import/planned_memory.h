// What the maker of a model says of the memory of its tensors, for operations that a vendor's
// compiler made.
// Called by import.cpp, and by the delegate for what its host has read.
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

// Sets ir::Tensor::planned_at where the metadata of the file has a plan for all of its tensors; `number_of`: of each
// tensor of the graph in the file, -1 for none.
void set_planned_places(std::span<const uint8_t> plan, size_t tensors, std::span<const int> number_of,
                        ir::Graph& graph);
// The same of a whole file, and make_zeros() for operands of custom operations that nobody computes. Memory that
// several operations name is handed on from each to the next, as a value.
void add_planned_memory(const schema::Model& model, ir::Graph& graph);
// Gives each value one maker, and hands on memory that several operations name, from each to the next, as a value.
// `is_memory`: by tensor. Returns of which tensor each added one is a later value; kNoTensor: of memory.
std::vector<ir::TensorId> separate_values(const std::vector<bool>& is_memory, ir::Graph& graph);
// After that: the operations from the first to the last one that hand memory on, those between them too.
std::vector<ir::OpId> joined_by_memory(const ir::Graph& graph);
// Makes a tensor that is an operation's own memory a constant: zeros that take no memory until somebody reads them.
void make_zeros(ir::Tensor& tensor);

}  // namespace skillet::tflite
