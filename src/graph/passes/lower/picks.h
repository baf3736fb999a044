// Which elements ops that only move some choose: the CPU's kernel says it.
// Called by lower_slice_as_conv.cpp and mixture.cpp.
// Must not know: what becomes of the ops.
#pragma once

#include "graph/passes/rewrite.h"

namespace skillet::passes {

// The operand that is the image.
size_t image_operand(const ir::Op& op);
// The element of the image that each one of the outputs is, by output: the kernel is run on elements that are their own
// numbers. -1: it is padding. Empty: the CPU has no kernel for the op.
std::vector<std::vector<int32_t>> picked(const Rewriter& rewriter, ir::Op op);

}  // namespace skillet::passes
