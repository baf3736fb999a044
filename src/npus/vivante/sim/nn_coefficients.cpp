#include "npus/vivante/sim/nn_coefficients.h"

#include <algorithm>
#include <cstdlib>

namespace skillet::sim::vivante {

CoefficientShape coefficient_shape(const ::skillet::vivante::hw::NnInstruction& d) {
  return {.kernel_width = static_cast<int>(d.kernel_x_size),
          .kernel_height = static_cast<int>(d.kernel_y_size),
          .planes = d.kernel_z_size,
          .kernels_per_core = d.kernels_per_core,
          .zero_point = static_cast<uint8_t>(d.coef_zero_point),
          .depthwise = d.depthwise,
          .output_planes = d.out_z_size,
          .plane_bytes = int64_t{d.out_x_stride} * d.out_y_stride};
}

void Kernel::add_plane(int64_t plane, std::span<const int16_t> plane_weights) {
  if (std::all_of(plane_weights.begin(), plane_weights.end(), [](int16_t w) { return w == 0; })) return;
  planes.push_back(static_cast<uint32_t>(plane));
  weights.insert(weights.end(), plane_weights.begin(), plane_weights.end());
  for (const int16_t weight : plane_weights) magnitude += std::abs(weight);
}

}  // namespace skillet::sim::vivante
