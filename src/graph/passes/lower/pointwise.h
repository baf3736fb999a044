// Depthwise convolutions of 1x1 that multiply each channel's bytes by a factor and add to them.
// Called by the passes that make them of what treats each byte alike.
// Must not know: which op they stand for.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "graph/passes/rewrite.h"

namespace skillet::passes {

// A factor of one is written as so many 64ths: requantization scales stay small, and biases can be fractions of steps.
constexpr int32_t kFine = 64;

// byte * weight + bias, by channel, at a scale.
struct Factors {
  std::vector<int32_t> weights, biases;  // no biases: all are 0
  int32_t weight_zero = 0;
  float scale = 1;
  ir::Activation activation = ir::Activation::none;
};
Factors ones(int32_t channels, int32_t sign = 1);

// A constant operand by channel, less its zero point; empty: it is not that.
std::vector<int32_t> by_channel(const ir::Tensor& tensor, int32_t channels);

// Computed images of one type and shape, of no more channels than a chip without depthwise filters can write out: 4 MB.
bool is_pointwise(const ir::Tensor& from, const ir::Tensor& to);

// Nothing: a weight fits no byte. `weight_zero` moves where the weights need it.
std::optional<ir::Op> pointwise(Rewriter& rewriter, ir::TensorId from, ir::TensorId to, Factors factors);

int32_t lowest_of(ir::DType dtype);     // byte
bool is_elementwise(const ir::Op& op);  // ADD, SUB, MUL, MAXIMUM or MINIMUM of two operands
// Its scale times powers of two is a float, so that sums and factors of one count in whole steps.
bool has_exact_steps(const ir::Tensor& tensor);

// A tensor like `one` whose bytes end at zero: nothing below it, or nothing above it.
ir::Tensor ending_at_zero(const ir::Tensor& one, std::string_view name, bool above);

// a - b in `to`, by SUB or (by_add) as the sum with the negated; empty: there is no way.
std::vector<ir::Op> difference(Rewriter& rewriter, bool by_add, ir::TensorId a, ir::TensorId b, ir::TensorId to);
// The larger of a and b (smaller: the smaller), which mean the same as `to`: b + max(a - b, 0).
std::vector<ir::Op> larger(Rewriter& rewriter, bool by_add, ir::TensorId a, ir::TensorId b, ir::TensorId to,
                           bool smaller = false);
ir::Op sum_of(ir::TensorId a, ir::TensorId b, ir::TensorId to);

}  // namespace skillet::passes
