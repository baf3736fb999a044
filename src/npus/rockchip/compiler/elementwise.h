// Operations of single elements: sums, products, functions of one byte.
// Called by support.cpp (which asks whether there is one), lower.cpp (which places it).
// Must not know: tasks, registers, memory.
#pragma once

#include "npus/rockchip/compiler/conv.h"

namespace skillet::npus::rockchip {

// ADD and SUB: the operand with the smaller scale is multiplied, the other one is added.
struct SumScales {
  size_t main = 0;  // which input of the operation
  float unit = 1;   // real value of 1 in the sum
  float ratio = 1;  // of the other operand's scale to that
};
SumScales sum_scales(const ir::Graph& graph, const ir::Op& op);
// main + other (sign 1) or other - main (-1), element by element: a flat diagonal of `main` with `other` added.
Result<Conv> make_sum(const ir::Tensor& main, const ir::Tensor& other, const ir::Tensor& to, int32_t sign,
                      ir::Activation activation, const Tuning& tuning);

// MUL: which operand is the other one's factor, and what it is one for.
enum class Factor : uint8_t {
  element,   // of an element each
  pixel,     // of all pixels: one value for each channel
  constant,  // the same, or one value for all; part of the model
  none,      // shapes that are none of these
};
struct Product {
  Factor factor = Factor::none;
  size_t main = 0;  // which input of the operation is multiplied
};
Product product_of(const ir::Graph& graph, const ir::Op& op);
// `factor` and `main` as in Product: a flat identity of `main` times `factor`; where the factor is for all pixels, the
// factor spread over the image times `main`; a constant one is the weights.
Result<Conv> make_product(const Product& product, const ir::Tensor& main, const ir::Tensor& factor,
                          const ir::Tensor& to, ir::Activation activation, const Tuning& tuning);

// LEAKY_RELU as alpha x + (1 - alpha) RELU(x): `positive` holds RELU(x), of x's scale and zero point 0.
Result<Conv> make_leaky_sum(const ir::Tensor& from, const ir::Tensor& positive, const ir::Tensor& to, float alpha,
                            const Tuning& tuning);
ir::Tensor positive_part(const ir::Tensor& from);
// Slopes for which it is fine enough.
bool is_leaky_sum(const ir::Tensor& from, const ir::Tensor& to, float alpha);

// RK3576: w1 * first + w2 * second in one pass, over surfaces of both at one distance from each other: two of
// the first, then two of the second. Like Flat, but of whole groups of 32 channels: so much is written and read of
// each.
struct PairPlane {
  Plane plane;  // of one surface
  int64_t pixels() const { return plane.pixels(); }
  int64_t operand_pixels() const { return 2 * pixels(); }
};
PairPlane pair_plane(const Plane& tensor, const Tuning& tuning);
// Weights of a pair, the byte that stands for 0 in them, and what 1 in their sum is worth. `error`: of the result at
// most, beside its rounding, in steps.
struct PairWeights {
  int32_t first = 0, second = 0, zero = kWeightZero;
  double unit = 1, error = 0;
};
PairWeights pair_weights(const ir::Graph& graph, const ir::Op& op);
Result<Conv> make_pair_sum(const ir::Graph& graph, const ir::Op& op, const Tuning& tuning);

// RK3576: each byte becomes what the table has for it. Sums are kTableStep * (byte - zero point), there are two
// entries for each byte.
constexpr int32_t kTableStep = 64;
Result<Conv> make_table(const ir::Tensor& from, const std::array<int8_t, 256>& values, const Tuning& tuning);

// Functions of one byte for which there is nothing but a table.
bool is_table(ir::OpKind kind);
// What the CPU's kernel makes of each byte, as stored on the chip: by the signed value + 128. Error: it has none.
Result<std::array<int8_t, 256>> table_of(const ir::Graph& graph, const ir::Op& op);

}  // namespace skillet::npus::rockchip
