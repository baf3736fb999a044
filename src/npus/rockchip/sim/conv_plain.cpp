#include "npus/rockchip/sim/conv_job.h"

namespace skillet::sim::rockchip {
namespace {

struct Sum {
  int64_t products = 0, window = 0;
};

// One output: sums over the window of x * w and of x. Depthwise: only channel `out`.
Sum sum_window(const ConvJob& job, const ConvOperands& operands, int64_t out, int64_t out_y, int64_t out_x) {
  Sum sum;
  const int64_t first = job.depthwise ? out : 0, end = job.depthwise ? out + 1 : job.in_lanes;
  for (int64_t ky = 0; ky < job.kernel_height; ++ky) {
    for (int64_t kx = 0; kx < job.kernel_width; ++kx) {
      const int64_t y = out_y * job.stride_y + ky * job.dilation_y - job.pad_top;
      const int64_t x = out_x * job.stride_x + kx * job.dilation_x - job.pad_left;
      const bool inside = y >= 0 && y < job.in_height && x >= 0 && x < job.in_width;
      for (int64_t lane = first; lane < end; ++lane) {
        // Output channels past the programmed input channels and kernels have weight and feature 0.
        if (lane >= job.in_lanes) continue;
        const int64_t feature =
            inside ? operands.features[static_cast<size_t>((y * job.in_width + x) * job.lane_stride() + lane)]
                   : operands.pad[static_cast<size_t>(lane)];
        const int64_t kernel = job.depthwise ? 0 : out;
        const int64_t tap = kernel * job.taps() + ky * job.kernel_width + kx;
        const int64_t weight =
            kernel < job.kernels ? operands.weights->plain[static_cast<size_t>(tap * job.lane_stride() + lane)] : 0;
        sum.products += feature * weight;
        sum.window += feature;
      }
    }
  }
  return sum;
}

}  // namespace

ConvSums convolve_plain(const ConvJob& job, const ConvOperands& operands) {
  ConvSums sums;
  for (int64_t y = 0; y < job.out_height; ++y) {
    for (int64_t x = 0; x < job.out_width; ++x) {
      for (int64_t out = 0; out < job.out_lanes; ++out) {
        const Sum sum = sum_window(job, operands, out, y, x);
        sums.sum.push_back(static_cast<int32_t>(sum.products));
        if (job.depthwise || out == 0) sums.window.push_back(static_cast<int32_t>(sum.window));
      }
    }
  }
  return sums;
}

}  // namespace skillet::sim::rockchip
