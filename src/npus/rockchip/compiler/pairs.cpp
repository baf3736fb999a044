// Sums and tables of the RK3576 as convolutions of one pixel (specification of the RK3576, sections 9 and 10). No board
// is known to add a second tensor after a convolution, or to look up a table without a convolution before it.
#include <algorithm>
#include <cmath>

#include "base/int_math.h"
#include "npus/rockchip/compiler/elementwise.h"
#include "npus/rockchip/compiler/numerics.h"
#include "npus/rockchip/compiler/packing.h"

namespace skillet::npus::rockchip {
namespace {

constexpr int32_t kGainBits = 15;
constexpr int32_t kWeightMax = 127, kSurfaces = 2, kLanes = kSurfaces * kAtom;

int32_t signed_zero(const ir::Tensor& tensor) { return unsigned_zero(tensor) - kZeroPoint; }
// The largest distance of a value from the zero point.
double reach_of(const ir::Tensor& tensor) {
  const int32_t zero = unsigned_zero(tensor);
  return std::max(zero, UINT8_MAX - zero);
}

// Relative error of a gain as a multiplier of 15 bits. Exact gains leave sums in the middle between two results.
double missed_of(double gain) {
  int exponent = 0;
  const double mantissa = std::ldexp(std::frexp(gain, &exponent), kGainBits);
  return std::abs(std::nearbyint(mantissa) - mantissa) / mantissa;
}

}  // namespace

PairPlane pair_plane(const Plane& tensor, const Tuning& tuning) {
  return {halves(surface_pitch(tensor, tuning) * ceil_div(tensor.channels, kLanes) * kSurfaces).plane};
}

// The best of all ratios of two weights. The remaining error is divided between the operands, one up, one down. Weights
// are bytes: byte 128 is zero where 127 steps are best, else the lowest byte that leaves room for both.
PairWeights pair_weights(const ir::Graph& graph, const ir::Op& op) {
  const ir::Tensor &a = graph.tensor(op.inputs[0]), &b = graph.tensor(op.inputs[1]);
  const double first = a.quant.scale(), second = b.quant.scale(), largest = std::max(first, second);
  const double reach = reach_of(a) + reach_of(b), step = graph.tensor(op.outputs[0]).quant.scale();
  const bool is_difference = op.kind == ir::OpKind::sub;
  PairWeights best;
  double least = 0;
  for (int32_t i = 0; i < UINT8_MAX; ++i) {
    const int32_t most = i < kWeightMax ? kWeightMax - i : UINT8_MAX + kWeightMax - i;
    PairWeights one{static_cast<int32_t>(std::lround(most * first / largest)),
                    static_cast<int32_t>(std::lround(most * second / largest))};
    if (is_difference && most > kWeightMax && one.first + one.second > UINT8_MAX) continue;
    one.unit = (first + second) / (one.first + one.second);
    one.error = std::abs(first - one.first * one.unit) * reach / step;
    const double missed = missed_of(one.unit / step) * UINT8_MAX;
    if (best.first != 0 && one.error + missed >= least) continue;
    best = one;
    least = one.error + missed;
  }
  if (is_difference) best.second = -best.second;
  if (std::max(best.first, std::abs(best.second)) > kWeightMax) best.zero = std::max(0, -best.second);
  return best;
}

Result<Conv> make_pair_sum(const ir::Graph& graph, const ir::Op& op, const Tuning& tuning) {
  const ir::Tensor &a = graph.tensor(op.inputs[0]), &b = graph.tensor(op.inputs[1]);
  const ir::Tensor& to = graph.tensor(op.outputs[0]);
  const PairWeights weights = pair_weights(graph, op);
  const PairPlane pair = pair_plane(plane_of(a.shape), tuning);
  Conv conv{.in = pair.plane, .out = pair.plane, .in_pitch = pair.pixels(), .out_pitch = pair.pixels()};
  conv.in.channels = 2 * kLanes;
  conv.weight_zero = weights.zero;
  Bytes bytes(static_cast<size_t>(2 * kLanes * kLanes), static_cast<uint8_t>(weights.zero));
  for (size_t c = 0; c < kLanes; ++c) {
    bytes[c * 2 * kLanes + c] = static_cast<uint8_t>(weights.zero + weights.first);
    bytes[c * 2 * kLanes + kLanes + c] = static_cast<uint8_t>(weights.zero + weights.second);
  }
  conv.weights = std::move(bytes);
  conv.bias.assign(kLanes, -weights.first * signed_zero(a) - weights.second * signed_zero(b));
  conv.out_offset = signed_zero(to);
  const Limits limits = limits_of(to, activation_of(op));
  conv.clamp.on = limits.lower || limits.upper;
  SK_TRY(tuning.packing->set_fine_scale(weights.unit / to.quant.scale(), limits.upper, to.quant.scale(), conv));
  return conv;
}

Result<Conv> make_table(const ir::Tensor& from, const std::array<int8_t, 256>& values, const Tuning& tuning) {
  constexpr int32_t kEntryLog2 = 7;  // entries per 1 in the output
  Conv conv = flat_diagonal(plane_of(from.shape), kTableStep, tuning);
  const auto lanes = static_cast<size_t>(conv.out.channels);
  conv.bias.assign(lanes, -kTableStep * signed_zero(from));
  conv.multipliers.assign(lanes, int16_t{1 << kOneLog2});
  conv.multiplier_shift = kOneLog2;
  conv.out_gain = power_of_two(kEntryLog2);
  conv.table_zero = signed_zero(from);
  conv.table = std::make_shared<const std::array<int8_t, 256>>(values);
  return conv;
}

}  // namespace skillet::npus::rockchip
