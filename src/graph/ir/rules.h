// Rules of single operations: operand counts and types, attribute ranges, output shapes as TFLite's Prepare has them.
// Called by verify.cpp, shape_inference.cpp and passes/; the rules are in rules_*.cpp; op.def says which an op has.
// Must not know: file formats, chips.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "graph/ir/graph.h"

namespace skillet::ir {

inline constexpr int kMaxRank = 16;
// So that element counts and byte offsets within a tensor fit int32 arithmetic of kernels.
inline constexpr int64_t kMaxTensorElems = INT32_MAX;
inline constexpr int64_t kMaxGraphBytes = int64_t{1} << 36;

using Shapes = std::vector<Shape>;

// Product of the dimensions; error on a negative dimension, on too many dimensions and above kMaxTensorElems.
Result<int64_t> checked_elems(const Shape& shape);

// Indices, shapes, constants, quantization, order: everything that does not depend on what an op means.
Result<void> check_structure(const Graph& graph);

// The same of tensors from `first` on alone, and of what all take together: for what is added to a graph that is sound.
Result<void> check_tensors(const Graph& graph, size_t first = 0);

// Checks one op of a graph that has passed check_structure(). Returns the shapes of its outputs; none where the op is
// opaque or they depend on values known only at run time. The error does not name the op: the caller adds it.
Result<Shapes> check_op(const Graph& graph, const Op& op);
// The same of `count` ops from `first` on, whose outputs have the shapes that follow. The error names the op.
Result<void> check_ops(const Graph& graph, size_t first, size_t count);

// An input or output of it has no elements, as of a batch of no images. Lists of indices (axes, sizes) do not count.
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
// `axis` may count from the end; the result is in [0, rank).
Result<int> resolve_axis(int64_t axis, int rank);
// Values of an index operand (int32 or int64); nothing when it is not constant.
Result<std::optional<std::vector<int64_t>>> constant_ints(const OpView& v, size_t input);
// Same, of one element.
Result<std::optional<int64_t>> constant_int(const OpView& v, size_t input);
// Error unless the operand is int16, int32 or int64.
Result<void> need_index_type(const OpView& v, size_t input);
// The shape that both broadcast to.
Result<Shapes> broadcast_shapes(const Shape& a, const Shape& b);
// A computed dimension as int32; error when it is negative or too large. `what` names it.
Result<int32_t> dimension(int64_t value, std::string_view what);
// One output shape from computed dimensions, each checked by dimension().
Result<Shapes> one_shape(const std::vector<int64_t>& dims);

// --- the rules ---
#define OP(kind, name, code, attrs, inputs_min, inputs_max, outputs, types, shapes, ...) Rule shapes;
#include "graph/ir/op.def"
#undef OP

}  // namespace rules
}  // namespace skillet::ir
