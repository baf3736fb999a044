#include "npus/vivante/sim/nn_job.h"

namespace skillet::sim::vivante {
namespace {

uint8_t pixel(const NnJob& job, std::span<const uint8_t> in, int64_t x, int64_t y, int64_t z) {
  if (x < 0 || y < 0 || x >= job.in_width || y >= job.in_height) return job.border;
  return in[static_cast<size_t>(x + job.in_row_bytes * y + job.in_plane_bytes * z)];
}

// bias + sum of raw pixel * (weight - zero point); planes that the kernel leaves out have weight - zero point = 0.
int64_t accumulate(const NnJob& job, const Kernel& kernel, std::span<const uint8_t> in, int64_t out_x, int64_t out_y) {
  int64_t sum = kernel.bias;
  const int16_t* weight = kernel.weights.data();
  for (const uint32_t plane : kernel.planes) {
    for (int row = 0; row < job.kernel_height; ++row) {
      for (int column = 0; column < job.kernel_width; ++column) {
        const int64_t x = out_x * job.step + column + job.offset_x;
        const int64_t y = out_y * job.step + row + job.offset_y;
        sum += int64_t{pixel(job, in, x, y, plane)} * *weight++;
      }
    }
  }
  return sum;
}

}  // namespace

Result<void> convolve_plain(const NnJob& job, std::span<const KernelTask> tasks, std::span<const uint8_t> in) {
  for (const KernelTask& task : tasks) {
    for (int64_t y = 0; y < job.out_height; ++y) {
      for (int64_t x = 0; x < job.out_width; ++x) {
        const int64_t sum = accumulate(job, *task.kernel, in, x, y);
        if (sum < INT32_MIN || sum > INT32_MAX)
          return error(ErrorCode::device, "accumulator {} of output pixel ({}, {}) leaves 32 bits", sum, x, y);
        task.out[x + job.out_row_bytes * y] = requantize(sum, job.requant);
      }
    }
  }
  return {};
}

}  // namespace skillet::sim::vivante
