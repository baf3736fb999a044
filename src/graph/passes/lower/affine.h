// Ops that multiply each channel of an image by a number and add one to it, in a row: as one depthwise convolution of
// 1x1 whose result on a chip is within a step of the original, which is tried with each of the 256 bytes.
// Called by the passes that make it of them.
// Must not know: which ops a chip takes.
#pragma once

#include <optional>
#include <vector>

#include "graph/passes/rewrite.h"

namespace skillet::passes {

// The input of `op` that is computed, where `op` is QUANTIZE, RELU and the like, or MUL, ADD or SUB with a constant for
// all pixels; else none.
ir::TensorId affine_input(const Rewriter& rewriter, const ir::Op& op);

// What makes `ops`'s result, tensors of other ranks than 4 as images. Empty: nothing that stays within a step.
std::vector<ir::Op> affine_within_a_step(Rewriter& rewriter, const std::vector<ir::Op>& ops);

}  // namespace skillet::passes
