// Averages as sums of a convolution: what passes that rewrite AVERAGE_POOL_2D, MEAN and SUM share.
// Called by lower_average_as_depthwise.cpp, lower_average_as_pointwise.cpp and mixture.cpp.
// Must not know: what an average becomes.
#pragma once

#include <algorithm>
#include <optional>

#include "base/fixed_point.h"
#include "graph/passes/rewrite.h"

namespace skillet::passes {

// Of each pixel of a window, and beside their sum.
struct Weights {
  int32_t weight = 1, bias = 0;
  int32_t ulps = 0;  // of their scale: which of the floats near it
  int off = 0;       // steps by which a chip's result may be off
};

// What becomes a byte: the average of so many pixels, or their sum.
struct Average {
  ir::TensorId from = ir::kNoTensor, to = ir::kNoTensor;
  int32_t rows = 0, columns = 0;
  ir::ConvAttrs attrs;
  ir::OpKind kind = ir::OpKind::average_pool_2d;  // of MEAN and SUM, which round in other ways

  int64_t pixels() const { return int64_t{rows} * columns; }
  float scale(const Weights& weights) const;
};

// None: it is no average, or one with padding, or not of bytes in images.
std::optional<Average> average_of(const Rewriter& rewriter, const ir::Op& op);
// Of the channels of each pixel, the last dimension: one row of as many columns.
std::optional<Average> average_of_channels(const Rewriter& rewriter, const ir::Op& op);

// The CPU kernels' arithmetic (graph/ref/): of a sum of pixels, before limits.
class AverageRounding {
 public:
  AverageRounding(const Average& average, const ir::Tensor& from, const ir::Tensor& to);
  // Right shifts, the second of two roundings; 0: there is none.
  int32_t shift() const { return mean_ ? std::max(-mean_->shift, 0) : 0; }
  int64_t operator()(int64_t sum) const;

 private:
  int64_t pixels_;
  int32_t zero_, out_zero_;
  std::optional<QuantizedMultiplier> mean_;
  float sum_scale_ = 0, sum_zero_ = 0;
};

// With which a convolution gives the same byte for every sum that there can be: all of them are tried.
std::optional<Weights> exact_weights(const Average& average, const ir::Tensor& from, const ir::Tensor& to);
// The same, or where the user allows it those with which a chip is within a step for every sum.
std::optional<Weights> weights_of(const Rewriter& rewriter, const Average& average);

// A filter of this shape and the biases, as inputs of `op`.
void add_weights(Rewriter& rewriter, const Average& average, const Weights& weights, ir::Shape filter, int32_t outputs,
                 ir::Op& op);

}  // namespace skillet::passes
