// A chain of ops that multiply each channel of an image by a number and add a number, as one 1x1 depthwise convolution.
// A chip's result is within a step of the original, which is tested for each of the 256 bytes.
// Called by the passes that rewrite such ops.
// Must not know: which ops a chip takes.
#pragma once

#include <optional>
#include <vector>

#include "graph/passes/rewrite.h"

namespace skillet::passes {

// The computed input of `op`, if `op` is QUANTIZE, RELU or similar, or MUL, ADD or SUB with a constant that is the same
// for all pixels; else none.
ir::TensorId affine_input(const Rewriter& rewriter, const ir::Op& op);

// The ops that replace `ops`; tensors whose rank is not 4 become images. Empty: no result within a step.
std::vector<ir::Op> affine_within_a_step(Rewriter& rewriter, const std::vector<ir::Op>& ops);

}  // namespace skillet::passes
