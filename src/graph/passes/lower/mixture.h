// Ops that make each pixel of others, in the same way for every channel: sums of pixels in whole parts, divided by what
// the parts add up to, and rounded as the CPU's kernel does.
// Called by lower_resize_as_conv.cpp, repeat_operands.cpp.
// Must not know: what becomes of them.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "graph/passes/rewrite.h"

namespace skillet::passes {

struct MixturePart {
  int32_t pixel = 0, amount = 0;
};

struct Mixture {
  ir::TensorId from = ir::kNoTensor, to = ir::kNoTensor;
  int32_t whole = 1;  // what the amounts of a pixel add up to
  std::vector<std::vector<MixturePart>> pixels;
  ir::Activation activation = ir::Activation::none;
  // Of a sum of bytes times amounts, before limits; where it turns: what it makes of `turn`. On both sides of it the
  // kernels round alike, away from it.
  std::function<int64_t(int64_t)> rounded;
  int64_t turn = 0, at_turn = 0;

  int32_t height = 0, width = 0;  // of the result, where it is no image

  int32_t most() const;  // of all amounts
};

// MEAN, AVERAGE_POOL_2D, RESIZE_BILINEAR, and what only chooses pixels: MIRROR_PAD, RESIZE_NEAREST_NEIGHBOR, SLICE,
// STRIDED_SLICE, GATHER. Nothing: the op is none of these, or not of bytes in one image, or its parts are no whole
// ones.
std::optional<Mixture> mixture_of(const Rewriter& rewriter, ir::OpId op);

// Pixels of the image `from`, by those of the image `to`, as a convolution of 1x1 whose channels are the pixels. Empty:
// there is no such filter.
std::vector<ir::Op> chosen_pixels(Rewriter& rewriter, ir::TensorId from, ir::TensorId to,
                                  std::span<const int32_t> pixels);

}  // namespace skillet::passes
