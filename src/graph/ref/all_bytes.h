// What ops that treat each element alike make of every byte, or of every pair of bytes, on the CPU kernels.
// Called by passes that prove a rewrite by trying all there is, and by drivers that put an op into a table.
// Must not know: why they ask.
#pragma once

#include <span>

#include "graph/ref/ref.h"

namespace skillet::ref {

// `ops` lead from `from` to `to`, tensors of `graph` whose last dimension is channels; their other operands are
// constants. Result [byte][channel]. Error: an op has no kernel, or is none of each element alone.
Result<Bytes> of_all_bytes(const ir::Graph& graph, std::span<const ir::Op> ops, ir::TensorId from, ir::TensorId to);
// Of ops whose constants are single numbers. Result [byte].
Result<Bytes> of_each_byte(const ir::Graph& graph, std::span<const ir::Op> ops, ir::TensorId from, ir::TensorId to);
// The same of int16. Result [value as uint16], elements of the output's type.
Result<Bytes> of_each_int16(const ir::Graph& graph, std::span<const ir::Op> ops, ir::TensorId from, ir::TensorId to);
// The same of two tensors, for ops that treat all channels alike. Result [byte of a][byte of b], and then from the
// start until a pixel is full.
Result<Bytes> of_all_pairs(const ir::Graph& graph, std::span<const ir::Op> ops, ir::TensorId a, ir::TensorId b,
                           ir::TensorId to);

}  // namespace skillet::ref
