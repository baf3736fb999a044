// NnJob: an NN instruction as plain geometry and arithmetic, after all checks; and two ways to compute it.
// Called by nn.cpp (makes and runs jobs) and the tests (compare the two ways).
// Must not know: descriptors, device addresses, the coefficient format.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "npus/vivante/sim/nn_coefficients.h"
#include "npus/vivante/sim/requant.h"

namespace skillet::sim::vivante {

struct NnJob {
  int64_t in_width = 0, in_height = 0, in_planes = 0;
  int64_t in_row_bytes = 0, in_plane_bytes = 0;           // distance of rows, of planes
  uint8_t border = 0;                                     // value of pixels outside the image
  int64_t out_width = 0, out_height = 0, out_planes = 0;  // as stored, after pooling
  int64_t out_row_bytes = 0, out_plane_bytes = 0;
  int kernel_width = 1, kernel_height = 1;
  int64_t offset_x = 0, offset_y = 0;  // input pixel of output pixel (0, 0) and tap (0, 0)
  int step = 1;                        // distance of evaluated pixels: 2 for first-pixel pooling
  Requant requant;

  int64_t taps() const { return int64_t{kernel_width} * kernel_height; }
  // Bytes from the first to the last byte that the job can touch.
  int64_t in_extent() const { return in_plane_bytes * (in_planes - 1) + in_row_bytes * (in_height - 1) + in_width; }
  int64_t out_plane_extent() const { return out_row_bytes * (out_height - 1) + out_width; }
};

// A kernel and the place of its output plane (out_plane_extent() bytes).
struct KernelTask {
  const Kernel* kernel = nullptr;
  uint8_t* out = nullptr;
};

// The definition: computes one output pixel after the other, in 64 bits. Error if a sum does not fit 32 bits.
Result<void> convolve_plain(const NnJob& job, std::span<const KernelTask> tasks, std::span<const uint8_t> in);

// Weights in the formats of the matrix product, stored next to their kernels.
struct PackedKernels {
  std::vector<const Kernel*> kernels;
  std::vector<int8_t> bytes;  // minus `offset`; or, if they do not fit bytes or the CPU has no product for these:
  int32_t offset = 0;
  std::vector<int16_t> pairs;
};

// Computes the same result fast: kernels with few used planes directly, the others as a matrix product. Needs
// sums_fit(). `packed` is empty, or from a job of the same shape with unchanged kernels.
void convolve_fast(const NnJob& job, std::span<const KernelTask> tasks, std::span<const uint8_t> in,
                   PackedKernels& packed);

// Whether all sums of this kernel fit 32 bits for any image.
constexpr bool sums_fit(const Kernel& kernel) {
  const int64_t bias = kernel.bias < 0 ? -int64_t{kernel.bias} : int64_t{kernel.bias};
  return bias + kernel.magnitude * 255 <= INT32_MAX;
}

}  // namespace skillet::sim::vivante
