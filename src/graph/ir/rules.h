// Rules of single operations: operand counts and types, attribute ranges, output shapes as in TFLite's Prepare.
// Called by verify.cpp, shape_inference.cpp and passes/. The rules are in rules_*.cpp; op.def lists the rule of each
// op.
// Must not know: file formats, chips.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "graph/ir/graph.h"

namespace skillet::ir {

inline constexpr int kMaxRank = 16;
// Keeps element counts and byte offsets within a tensor in the range of the kernels' int32 arithmetic.
inline constexpr int64_t kMaxTensorElems = INT32_MAX;
inline constexpr int64_t kMaxGraphBytes = int64_t{1} << 36;

using Shapes = std::vector<Shape>;

// Product of the dimensions; error on a negative dimension, on too many dimensions and above kMaxTensorElems.
Result<int64_t> checked_elems(const Shape& shape);

// Checks indices, shapes, constants, quantization, order: everything that does not depend on the meaning of an op.
Result<void> check_structure(const Graph& graph);

// Checks the tensors from `first` on, and the total size of all tensors: for tensors added to a graph that is valid.
Result<void> check_tensors(const Graph& graph, size_t first = 0);

// Checks one op of a graph that has passed check_structure(). Returns the shapes of its outputs; empty if the op is
// opaque or they depend on values known only at run time. The error does not name the op: the caller adds it.
Result<Shapes> check_op(const Graph& graph, const Op& op);
// Does the same for `count` ops from `first` on, whose outputs must have the inferred shapes. The error names the op.
Result<void> check_ops(const Graph& graph, size_t first, size_t count);

// True if an input or output has no elements, e.g. a batch of no images. Lists of indices (axes, sizes) do not count.
bool has_empty_operand(const Graph& graph, const Op& op);

namespace rules {

// An op with its operands at hand. Inputs below the row's minimum are present; others may be absent.
struct OpView {
  const Graph& graph;
  const Op& op;

  bool has(size_t i) const { return op.input(i) != kNoTensor; }
  const Tensor& in(size_t i) const { return graph.tensor(op.inputs[i]); }
  const Tensor& out(size_t i) const { return graph.tensor(op.outputs[i]); }
  const Shape& shape(size_t i) const { return in(i).shape; }
};

using Rule = Result<Shapes>(const OpView& v);

// --- helpers of the rules ---
Result<void> need_rank(const OpView& v, size_t input, int rank);
// `axis` may be negative (counted from the end); the result is in [0, rank).
Result<int> resolve_axis(int64_t axis, int rank);
// Values of an index operand (int32 or int64); nothing if it is not constant.
Result<std::optional<std::vector<int64_t>>> constant_ints(const OpView& v, size_t input);
// Same, for one element.
Result<std::optional<int64_t>> constant_int(const OpView& v, size_t input);
// Error unless the operand is int16, int32 or int64.
Result<void> need_index_type(const OpView& v, size_t input);
// The shape that both broadcast to.
Result<Shapes> broadcast_shapes(const Shape& a, const Shape& b);
// A computed dimension as int32; an error if it is negative or too large. `what` names it.
Result<int32_t> dimension(int64_t value, std::string_view what);
// One output shape from computed dimensions, each checked by dimension().
Result<Shapes> one_shape(const std::vector<int64_t>& dims);

// --- the rules ---
#define OP(kind, name, code, attrs, inputs_min, inputs_max, outputs, types, shapes, ...) Rule shapes;
#include "graph/ir/op.def"
#undef OP

}  // namespace rules
}  // namespace skillet::ir
