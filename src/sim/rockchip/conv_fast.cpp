// The quick way to compute a task's sums: a direct convolution as a matrix product of input patches and kernels, a
// depthwise one tap by tap over all channels.
#include <algorithm>

#include "base/gemm.h"
#include "sim/rockchip/conv_job.h"

namespace skillet::sim::rockchip {
namespace {

constexpr size_t kPatchBlockElems = size_t{1} << 18;  // patches at a time, so that they stay in the cache

// The lanes of one tap of a window: in the plane, or a row of pad values.
class Window {
 public:
  Window(const ConvJob& job, const ConvOperands& operands)
      : job_(job), features_(operands.features.data()), pad_(operands.pad.data()) {}
  const int16_t* at(int64_t pixel, int64_t tap) const {
    const int64_t y = pixel / job_.out_width * job_.stride_y + tap / job_.kernel_width * job_.dilation_y - job_.pad_top;
    const int64_t x =
        pixel % job_.out_width * job_.stride_x + tap % job_.kernel_width * job_.dilation_x - job_.pad_left;
    if (y < 0 || y >= job_.in_height || x < 0 || x >= job_.in_width) return pad_;
    return features_ + (y * job_.in_width + x) * job_.lane_stride();
  }

 private:
  const ConvJob& job_;
  const int16_t* features_;
  const int16_t* pad_;
};

ConvSums convolve_depthwise(const ConvJob& job, const ConvOperands& operands) {
  const Window window(job, operands);
  const auto lanes = static_cast<size_t>(job.out_lanes);
  const std::vector<int16_t> ones(lanes, 1);
  ConvSums sums{.sum = std::vector<int32_t>(static_cast<size_t>(job.pixels()) * lanes),
                .window = std::vector<int32_t>(static_cast<size_t>(job.pixels()) * lanes)};
  for (int64_t pixel = 0; pixel < job.pixels(); ++pixel) {
    const size_t at = static_cast<size_t>(pixel) * lanes;
    for (int64_t tap = 0; tap < job.taps(); ++tap) {
      const int16_t* features = window.at(pixel, tap);
      gemm::multiply_accumulate(features, operands.weights.data() + tap * job.lane_stride(), lanes, &sums.sum[at]);
      gemm::multiply_accumulate(features, ones.data(), lanes, &sums.window[at]);
    }
  }
  return sums;
}

// One more kernel, all ones, gives the sum of the window.
std::vector<int16_t> with_ones(const ConvJob& job, const std::vector<int16_t>& weights) {
  std::vector<int16_t> rows = weights;
  rows.resize(rows.size() + static_cast<size_t>(job.taps() * job.lane_stride()), 1);
  return rows;
}

ConvSums convolve_direct(const ConvJob& job, const ConvOperands& operands) {
  const Window window(job, operands);
  const auto pixels = static_cast<size_t>(job.pixels()), lanes = static_cast<size_t>(job.out_lanes);
  const auto stride = static_cast<size_t>(job.lane_stride()), taps = static_cast<size_t>(job.taps());
  const size_t depth = taps * stride, columns = static_cast<size_t>(job.kernels) + 1;
  const std::vector<int16_t> kernels = with_ones(job, operands.weights);
  ConvSums sums{.sum = std::vector<int32_t>(pixels * lanes), .window = std::vector<int32_t>(pixels)};
  const size_t block = std::clamp<size_t>(kPatchBlockElems / depth, 8, std::max<size_t>(pixels, 8));
  std::vector<int16_t> patches(block * depth);
  std::vector<int32_t> products(block * columns);
  for (size_t first = 0; first < pixels; first += block) {
    const size_t count = std::min(block, pixels - first);
    for (size_t i = 0; i < count * taps; ++i)
      std::copy_n(window.at(static_cast<int64_t>(first + i / taps), static_cast<int64_t>(i % taps)), stride,
                  patches.data() + i * stride);
    gemm::matmul_i16(patches.data(), count, depth, kernels.data(), columns, depth, depth, products.data(), columns);
    for (size_t i = 0; i < count; ++i) {
      const int32_t* row = products.data() + i * columns;
      std::copy_n(row, columns - 1, sums.sum.data() + (first + i) * lanes);
      sums.window[first + i] = row[columns - 1];
    }
  }
  return sums;
}

}  // namespace

ConvSums convolve_fast(const ConvJob& job, const ConvOperands& operands) {
  return job.depthwise ? convolve_depthwise(job, operands) : convolve_direct(job, operands);
}

}  // namespace skillet::sim::rockchip
