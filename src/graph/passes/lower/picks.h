// Which elements ops that only move some choose: the CPU's kernel says it.
// Called by the passes that make other ops of them.
// Must not know: what becomes of the ops.
#pragma once

#include "graph/passes/rewrite.h"

namespace skillet::passes {

// The operand that is the image.
size_t image_operand(const ir::Op& op);
// The element of the image that each one of the outputs is, by output: the kernel is run on elements that are their own
// numbers. -1: it is padding. Empty: the CPU has no kernel for the op.
std::vector<std::vector<int32_t>> picked(const Rewriter& rewriter, ir::Op op);

// A filter for each pixel and channel of a window, in their order, with a single 1 there. `shape`: of as many filters.
ir::TensorId picks_in_order(Rewriter& rewriter, std::string name, ir::DType dtype, ir::Shape shape);

}  // namespace skillet::passes
