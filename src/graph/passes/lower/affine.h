// Ops that multiply each channel of an image by a number and add one to it, in a row: as one depthwise convolution of
// 1x1 (of one channel that becomes several, an ordinary one) whose result on a chip is within a step of the original,
// which is tried with each of the 256 bytes.
// Called by the passes that make it of them.
// Must not know: which ops a chip takes.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "graph/passes/rewrite.h"

namespace skillet::passes {

// The computed input of `op`, if `op` is QUANTIZE, RELU or similar, or MUL, ADD or SUB with a constant that is the same
// for all pixels; else none.
ir::TensorId affine_input(const Rewriter& rewriter, const ir::Op& op);

// The ops that replace `ops`; tensors whose rank is not 4 become images. Empty: no result within a step.
std::vector<ir::Op> affine_within_a_step(Rewriter& rewriter, const std::vector<ir::Op>& ops);
// Which convolution it is among them.
std::string_view affine_name(const std::vector<ir::Op>& made);

}  // namespace skillet::passes
