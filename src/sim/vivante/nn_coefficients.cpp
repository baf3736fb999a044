#include "sim/vivante/nn_coefficients.h"

#include <algorithm>
#include <cstdlib>

namespace skillet::sim::vivante {

void Kernel::add_plane(int64_t plane, std::span<const int16_t> plane_weights) {
  if (std::all_of(plane_weights.begin(), plane_weights.end(), [](int16_t w) { return w == 0; })) return;
  planes.push_back(static_cast<uint32_t>(plane));
  weights.insert(weights.end(), plane_weights.begin(), plane_weights.end());
  for (const int16_t weight : plane_weights) magnitude += std::abs(weight);
}

}  // namespace skillet::sim::vivante
