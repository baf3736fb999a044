// Averages as sums of a convolution: shared by the passes that rewrite AVERAGE_POOL_2D, MEAN and SUM.
// Called by lower_average_as_depthwise.cpp, lower_average_as_pointwise.cpp and mixture.cpp.
// Must not know: the op that replaces the average.
#pragma once

#include <algorithm>
#include <optional>

#include "base/fixed_point.h"
#include "graph/passes/rewrite.h"

namespace skillet::passes {

// The weight of each pixel of a window, and the bias.
struct Weights {
  int32_t weight = 1, bias = 0;
  int32_t ulps = 0;  // offset of their scale, in floats next to it
  int off = 0;       // steps by which a chip's result may be off
};

// An average over a window of this size, or its sum, as a byte.
struct Average {
  ir::TensorId from = ir::kNoTensor, to = ir::kNoTensor;
  int32_t rows = 0, columns = 0;
  ir::ConvAttrs attrs;
  ir::OpKind kind = ir::OpKind::average_pool_2d;  // MEAN and SUM round differently

  int64_t pixels() const { return int64_t{rows} * columns; }
  float scale(const Weights& weights) const;
};

// Nothing if the op is not an average, has padding, or does not read images of bytes.
std::optional<Average> average_of(const Rewriter& rewriter, const ir::Op& op);
// Average over the channels of each pixel (the last dimension): one row with that many columns.
std::optional<Average> average_of_channels(const Rewriter& rewriter, const ir::Op& op);

// The CPU kernels' arithmetic (graph/ref/) for a sum of pixels, before clamping.
class AverageRounding {
 public:
  AverageRounding(const Average& average, const ir::Tensor& from, const ir::Tensor& to);
  // Right shift of the second of two roundings; 0: there is only one.
  int32_t shift() const { return mean_ ? std::max(-mean_->shift, 0) : 0; }
  int64_t operator()(int64_t sum) const;

 private:
  int64_t pixels_;
  int32_t zero_, out_zero_;
  std::optional<QuantizedMultiplier> mean_;
  float sum_scale_ = 0, sum_zero_ = 0;
};

// Weights with which a convolution gives the same byte for every possible sum; tests all sums.
std::optional<Weights> exact_weights(const Average& average, const ir::Tensor& from, const ir::Tensor& to);
// The same; if there are none and the user allows it, weights with which a chip is within a step for every sum.
std::optional<Weights> weights_of(const Rewriter& rewriter, const Average& average);

// Adds a filter of this shape and the biases as inputs of `op`.
void add_weights(Rewriter& rewriter, const Average& average, const Weights& weights, ir::Shape filter, int32_t outputs,
                 ir::Op& op);
// The same, with these taps.
void add_taps(Rewriter& rewriter, const Average& average, const Weights& weights, ir::Shape filter, Bytes taps,
              int32_t outputs, ir::Op& op);

}  // namespace skillet::passes
