// Ops that compute each pixel from other pixels, alike for every channel: sums of pixels in whole parts, divided by the
// number of parts, and rounded as the CPU kernel does.
// Called by lower_resize_as_conv.cpp, repeat_operands.cpp.
// Must not know: the ops that replace them.
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
  int32_t whole = 1;  // sum of the amounts of a pixel
  std::vector<std::vector<MixturePart>> pixels;
  ir::Activation activation = ir::Activation::none;
  // The result for a sum of bytes times amounts, before clamping. `at_turn` is the result for `turn`, the turning
  // point: on both sides of it the kernels round away from it.
  std::function<int64_t(int64_t)> rounded;
  int64_t turn = 0, at_turn = 0;

  int32_t height = 0, width = 0;  // of the result, if it is not an image

  int32_t most() const;  // the largest amount
};

// MEAN, AVERAGE_POOL_2D, RESIZE_BILINEAR, and ops that only select pixels: MIRROR_PAD, RESIZE_NEAREST_NEIGHBOR, SLICE,
// STRIDED_SLICE, GATHER. Nothing if the op is none of these, does not read bytes of one image, or its parts are not
// whole.
std::optional<Mixture> mixture_of(const Rewriter& rewriter, ir::OpId op);

// Selects pixels of the image `from` for the image `to`, as a 1x1 convolution whose channels are the pixels. Empty:
// there is no such filter.
std::vector<ir::Op> chosen_pixels(Rewriter& rewriter, ir::TensorId from, ir::TensorId to,
                                  std::span<const int32_t> pixels);

}  // namespace skillet::passes
