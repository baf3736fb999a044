#include "npus/vivante/sim/requant.h"

#include "simd/gemm.h"

namespace skillet::sim::vivante {
namespace {

gemm::Ties ties_of(TieRule rule) {
  switch (rule) {
    case TieRule::half_up: return gemm::Ties::up;
    case TieRule::half_even: return gemm::Ties::even;
    case TieRule::half_away: return gemm::Ties::away;
    case TieRule::half_down: break;
  }
  return gemm::Ties::down;
}

}  // namespace

void requantize(std::span<int32_t> sums, const Requant& q, uint8_t* out) {
  if (q.shift < 1 || q.shift > 61 || q.multiplier > INT32_MAX) {
    for (size_t i = 0; i < sums.size(); ++i) out[i] = requantize(int64_t{sums[i]}, q);
    return;
  }
  const gemm::Step step{.multiplier = static_cast<int32_t>(q.multiplier), .shift = q.shift, .ties = ties_of(q.rule)};
  gemm::run_step(step, sums.size(), sums.data());
  gemm::narrow(sums.data(), sums.size(), q.relu ? 0 : -q.zero_point, 255 - q.zero_point, q.zero_point, out);
}

}  // namespace skillet::sim::vivante
