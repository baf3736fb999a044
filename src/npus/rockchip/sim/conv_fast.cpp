// Fast computation of a task's sums: a direct convolution as a matrix product of input patches and kernels, a depthwise
// one tap by tap over all channels.
#include <algorithm>
#include <cstring>

#include "npus/rockchip/sim/conv_job.h"
#include "simd/byte_gemm.h"
#include "simd/byte_matrix.h"
#include "simd/gemm.h"

namespace skillet::sim::rockchip {
namespace {

constexpr int32_t kOne = 1;
constexpr size_t kPatchBlockBytes = size_t{1} << 17;  // patches at a time, so that they stay in the cache

// The lanes of one tap of a window: in the plane, or a row of pad values.
class Window {
 public:
  Window(const ConvJob& job, const ConvOperands& operands)
      : job_(job), features_(operands.features.data()), pad_(operands.pad.data()) {}
  const int8_t* at(int64_t pixel, int64_t tap) const {
    const int64_t y = pixel / job_.out_width * job_.stride_y + tap / job_.kernel_width * job_.dilation_y - job_.pad_top;
    const int64_t x =
        pixel % job_.out_width * job_.stride_x + tap % job_.kernel_width * job_.dilation_x - job_.pad_left;
    if (y < 0 || y >= job_.in_height || x < 0 || x >= job_.in_width) return pad_;
    return features_ + (y * job_.in_width + x) * job_.lane_stride();
  }

 private:
  const ConvJob& job_;
  const int8_t* features_;
  const int8_t* pad_;
};

ConvSums convolve_depthwise(const ConvJob& job, const ConvOperands& operands) {
  const Window window(job, operands);
  const auto lanes = static_cast<size_t>(job.out_lanes), taps = static_cast<size_t>(job.taps());
  ConvSums sums{.sum = std::vector<int32_t>(static_cast<size_t>(job.pixels()) * lanes),
                .window = std::vector<int32_t>(static_cast<size_t>(job.pixels()) * lanes)};
  std::vector<const int8_t*> windows(taps);
  for (int64_t pixel = 0; pixel < job.pixels(); ++pixel) {
    const size_t at = static_cast<size_t>(pixel) * lanes;
    for (size_t tap = 0; tap < taps; ++tap) windows[tap] = window.at(pixel, static_cast<int64_t>(tap));
    gemm::depthwise_pixel(windows.data(), operands.weights->plain.data(), static_cast<size_t>(job.lane_stride()), taps,
                          lanes, &sums.sum[at], &sums.window[at]);
  }
  return sums;
}

// A direct convolution, some pixels at a time.
class MatrixConvolution {
 public:
  MatrixConvolution(const ConvJob& job, const ConvOperands& operands)
      : job_(job),
        operands_(operands),
        window_(job, operands),
        kernels_(static_cast<size_t>(job.kernels)),
        lanes_(static_cast<size_t>(job.out_lanes)),
        depth_(static_cast<size_t>(job.taps() * job.lane_stride())),
        // each pixel of the input is a window
        in_place_(job.taps() == 1 && job.pixels() == job.in_width * job.in_height && job.out_width == job.in_width &&
                  job.stride_x == 1 && job.stride_y == 1 && job.pad_left == 0 && job.pad_top == 0) {}

  ConvSums run() {
    const auto pixels = static_cast<size_t>(job_.pixels());
    ConvSums sums{.sum = std::vector<int32_t>(pixels * lanes_), .window = std::vector<int32_t>(pixels)};
    const size_t block = std::clamp<size_t>(kPatchBlockBytes / depth_, 8, std::max<size_t>(pixels, 8));
    if (!in_place_) patches_.resize(block * depth_);
    for (size_t first = 0; first < pixels; first += block) {
      const size_t count = std::min(block, pixels - first);
      const int8_t* const patches = in_place_ ? operands_.features.data() + first * depth_ : gather(first, count);
      int32_t* const to = sums.sum.data() + first * lanes_;
      operands_.weights->pairs.empty() ? multiply_bytes(patches, count, to, sums.window.data() + first)
                                       : multiply_pairs(patches, count, to, sums.window.data() + first);
    }
    return sums;
  }

 private:
  const int8_t* gather(size_t first, size_t count) {
    const auto stride = static_cast<size_t>(job_.lane_stride()), taps = static_cast<size_t>(job_.taps());
    for (size_t i = 0; i < count * taps; ++i)
      std::memcpy(patches_.data() + i * stride,
                  window_.at(static_cast<int64_t>(first + i / taps), static_cast<int64_t>(i % taps)), stride);
    return patches_.data();
  }

  // The instruction takes unsigned features, so 128 is added to them.
  void multiply_bytes(const int8_t* patches, size_t count, int32_t* sums, int32_t* windows) {
    const ConvWeights& weights = *operands_.weights;
    unsigned_.resize(count * depth_);
    copy_bytes(reinterpret_cast<const uint8_t*>(patches), unsigned_.data(),
               {1, count * depth_, count * depth_, count * depth_, 0x80});
    zeros_.resize(count);
    byte_gemm::matmul(unsigned_.data(), count, depth_, weights.packed, kernels_, depth_, zeros_.data(), sums, lanes_);
    for (size_t i = 0; i < count; ++i) {
      gemm::multiply_add(sums + i * lanes_, weights.column_start.data(), &kOne, 0, kernels_, sums + i * lanes_);
      windows[i] = byte_gemm::sum(unsigned_.data() + i * depth_, depth_) - 128 * static_cast<int32_t>(depth_);
    }
  }

  void multiply_pairs(const int8_t* patches, size_t count, int32_t* sums, int32_t* windows) {
    const size_t columns = kernels_ + 1;
    pairs_.resize(count * depth_);
    products_.resize(count * columns);
    gemm::widen(patches, count * depth_, 0, pairs_.data());
    gemm::matmul_i16(pairs_.data(), count, depth_, operands_.weights->pairs.data(), columns, depth_, depth_,
                     products_.data(), columns);
    for (size_t i = 0; i < count; ++i) {
      const int32_t* row = products_.data() + i * columns;
      std::copy_n(row, kernels_, sums + i * lanes_);
      windows[i] = row[kernels_];
    }
  }

  const ConvJob& job_;
  const ConvOperands& operands_;
  Window window_;
  size_t kernels_, lanes_, depth_;
  bool in_place_;
  std::vector<int8_t> patches_;
  std::vector<uint8_t> unsigned_;
  std::vector<int16_t> pairs_;
  std::vector<int32_t> zeros_, products_;
};

}  // namespace

ConvSums convolve_fast(const ConvJob& job, const ConvOperands& operands) {
  return job.depthwise ? convolve_depthwise(job, operands) : MatrixConvolution(job, operands).run();
}

}  // namespace skillet::sim::rockchip
