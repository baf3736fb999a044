// Operations of single elements: sums, products, functions of one byte.
// Called by support.cpp (whether there is such a convolution), lower.cpp (which places it).
// Must not know: tasks, registers, memory.
#pragma once

#include "npus/rockchip/compiler/conv.h"

namespace skillet::npus::rockchip {

// ADD and SUB: the operand with the smaller scale is multiplied, the other one is added.
struct SumScales {
  size_t main = 0;  // which input of the operation
  float unit = 1;   // real value of 1 in the sum
  float ratio = 1;  // the other operand's scale / unit
};
SumScales sum_scales(const ir::Graph& graph, const ir::Op& op);
// main + other (sign 1) or other - main (-1), element by element: a flat diagonal of `main` with `other` added.
Result<Conv> make_sum(const ir::Tensor& main, const ir::Tensor& other, const ir::Tensor& to, int32_t sign,
                      ir::Activation activation, const Tuning& tuning);

// MUL: which operand is the factor, and what each of its values applies to.
enum class Factor : uint8_t {
  element,   // one value for each element
  pixel,     // one value for each channel, the same for all pixels
  constant,  // as `pixel`, or one value for all; part of the model
  none,      // any other shapes
};
struct Product {
  Factor factor = Factor::none;
  size_t main = 0;  // which input of the operation is multiplied
};
Product product_of(const ir::Graph& graph, const ir::Op& op);
// `factor` and `main` as in Product: a flat identity of `main` times `factor`. A factor for all pixels is spread over
// the image and multiplied by `main`; a constant factor becomes the weights.
Result<Conv> make_product(const Product& product, const ir::Tensor& main, const ir::Tensor& factor,
                          const ir::Tensor& to, ir::Activation activation, const Tuning& tuning);

// LEAKY_RELU as alpha x + (1 - alpha) RELU(x): `positive` holds RELU(x), of x's scale and zero point 0.
Result<Conv> make_leaky_sum(const ir::Tensor& from, const ir::Tensor& positive, const ir::Tensor& to, float alpha,
                            const Tuning& tuning);
ir::Tensor positive_part(const ir::Tensor& from);
// Whether the sum is fine enough for this slope.
bool is_leaky_sum(const ir::Tensor& from, const ir::Tensor& to, float alpha);

// RK3576: w1 * first + w2 * second in one pass. It reads two surfaces of the first operand, then two of the second, all
// at equal distances. Like Flat, but in whole groups of 32 channels, which the chip always reads and writes.
struct PairPlane {
  Plane plane;  // of one surface
  int64_t pixels() const { return plane.pixels(); }
  int64_t operand_pixels() const { return 2 * pixels(); }
};
PairPlane pair_plane(const Plane& tensor, const Tuning& tuning);
// Weights of a pair, the byte of a zero weight, and the real value of 1 in their sum. `error`: largest error of the
// result in steps, besides its rounding.
struct PairWeights {
  int32_t first = 0, second = 0, zero = kWeightZero;
  double unit = 1, error = 0;
};
PairWeights pair_weights(const ir::Graph& graph, const ir::Op& op);
Result<Conv> make_pair_sum(const ir::Graph& graph, const ir::Op& op, const Tuning& tuning);

// RK3576: each byte is replaced by its entry in the table. Sums are kTableStep * (byte - zero point), with two entries
// for each byte.
constexpr int32_t kTableStep = 64;
Result<Conv> make_table(const ir::Tensor& from, const std::array<int8_t, 256>& values, const Tuning& tuning);

// Functions of one byte that the chip can do only by a table.
bool is_table(ir::OpKind kind);
// The CPU kernel's result for each byte as stored on the chip, indexed by the signed value + 128. Error: no such
// kernel.
Result<std::array<int8_t, 256>> table_of(const ir::Graph& graph, const ir::Op& op);

}  // namespace skillet::npus::rockchip
