// Finds which elements are selected by an op that only moves elements, by running the CPU kernel.
// Called by the passes that replace such ops.
// Must not know: the ops that replace them.
#pragma once

#include <optional>
#include <vector>

#include "graph/passes/rewrite.h"

namespace skillet::passes {

// Index of the operand that is the image.
size_t image_operand(const ir::Op& op);
// Index in the image of each element of each output: the kernel runs on elements whose values are their indices. -1:
// padding. Empty: the CPU has no kernel for the op.
std::vector<std::vector<int32_t>> picked(const Rewriter& rewriter, ir::Op op);

// Adjacent elements along each axis.
struct Box {
  std::vector<int32_t> begin, size;
};
// The box of the elements in their order; nothing if they are not all elements of a box.
std::optional<Box> box_of(const std::vector<int32_t>& elements, const ir::Shape& shape);
ir::Op slice_of(Rewriter& rewriter, ir::TensorId image, const Box& box, ir::TensorId to);  // SLICE

// Filters for each pixel and channel of a window, in order, each with a single 1. `shape`: has that many filters.
ir::TensorId picks_in_order(Rewriter& rewriter, std::string name, ir::DType dtype, ir::Shape shape);

}  // namespace skillet::passes
