// Results of the CPU kernels for every byte, or every pair of bytes, for ops that treat all elements alike.
// Called by passes that prove a rewrite by testing all values, and by drivers that put an op into a table.
// Must not know: the purpose of the results.
#pragma once

#include <span>

#include "graph/ref/ref.h"

namespace skillet::ref {

// `ops` lead from `from` to `to`, tensors of `graph` whose last dimension is channels; their other operands are
// constants. Of one channel that becomes several, each has the byte. Result [byte][channel]. Error: an op has no
// kernel, or is none of each element alone.
Result<Bytes> of_all_bytes(const ir::Graph& graph, std::span<const ir::Op> ops, ir::TensorId from, ir::TensorId to);
// For ops whose constants are single numbers. Result [byte].
Result<Bytes> of_each_byte(const ir::Graph& graph, std::span<const ir::Op> ops, ir::TensorId from, ir::TensorId to);
// The same for int16. Result [value as uint16], elements of the output's type.
Result<Bytes> of_each_int16(const ir::Graph& graph, std::span<const ir::Op> ops, ir::TensorId from, ir::TensorId to);
// The same for two tensors, for ops that treat all channels alike. Result [byte of a][byte of b], then repeated from
// the start until a pixel is full.
Result<Bytes> of_all_pairs(const ir::Graph& graph, std::span<const ir::Op> ops, ir::TensorId a, ir::TensorId b,
                           ir::TensorId to);

}  // namespace skillet::ref
