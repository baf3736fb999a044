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

// Where the lanes of each tap of a pixel's window are: in the plane, or a row of pad values.
class Window {
 public:
  Window(const ConvJob& job, const ConvOperands& operands)
      : job_(job), features_(operands.features.data()), pad_(operands.pad.data()) {
    for (int64_t tap = 0; tap < job.taps(); ++tap)
      taps_.push_back({tap / job.kernel_width * job.dilation_y, tap % job.kernel_width * job.dilation_x});
    places_.resize(taps_.size());
  }
  std::span<const int8_t* const> of(int64_t pixel) {
    const int64_t top = pixel / job_.out_width * job_.stride_y - job_.pad_top;
    const int64_t left = pixel % job_.out_width * job_.stride_x - job_.pad_left;
    for (size_t i = 0; i < taps_.size(); ++i) {
      const int64_t y = top + taps_[i].y, x = left + taps_[i].x;
      const bool is_inside = y >= 0 && y < job_.in_height && x >= 0 && x < job_.in_width;
      places_[i] = is_inside ? features_ + (y * job_.in_width + x) * job_.lane_stride() : pad_;
    }
    return places_;
  }

 private:
  struct Tap {
    int64_t y, x;
  };
  const ConvJob& job_;
  const int8_t* features_;
  const int8_t* pad_;
  std::vector<Tap> taps_;
  std::vector<const int8_t*> places_;
};

ConvSums convolve_depthwise(const ConvJob& job, const ConvOperands& operands) {
  Window window(job, operands);
  const auto lanes = static_cast<size_t>(job.out_lanes);
  ConvSums sums{.sum = std::vector<int32_t>(static_cast<size_t>(job.pixels()) * lanes),
                .window = std::vector<int32_t>(static_cast<size_t>(job.pixels()) * lanes)};
  for (int64_t pixel = 0; pixel < job.pixels(); ++pixel) {
    const size_t at = static_cast<size_t>(pixel) * lanes;
    const auto taps = window.of(pixel);
    gemm::depthwise_pixel(taps.data(), operands.weights->plain.data(), static_cast<size_t>(job.lane_stride()),
                          taps.size(), lanes, &sums.sum[at], &sums.window[at]);
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
    const auto stride = static_cast<size_t>(job_.lane_stride());
    int8_t* to = patches_.data();
    for (size_t i = 0; i < count; ++i) {
      for (const int8_t* const from : window_.of(static_cast<int64_t>(first + i))) {
        std::memcpy(to, from, stride);
        to += stride;
      }
    }
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
