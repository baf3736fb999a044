#include "npus/vivante/sim/nn_dense.h"

#include <algorithm>
#include <cstring>

#include "base/int_math.h"
#include "simd/byte_gemm.h"
#include "simd/byte_matrix.h"
#include "simd/gemm.h"

namespace skillet::sim::vivante {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 18;  // of windows at a time, so that they stay in the cache
constexpr int kByteValues = 256;
constexpr int32_t kOne = 1;

size_t window_elems(const NnJob& job) { return static_cast<size_t>(job.in_planes * job.taps()); }

// The number to add to all weights so that each fits a signed byte, 0 if possible; none if their range is too large.
std::optional<int32_t> offset_to_bytes(std::span<const KernelTask> tasks) {
  int16_t low = 0, high = 0;  // unused planes of a kernel have weights of 0
  for (const KernelTask& task : tasks) {
    for (const int16_t weight : task.kernel->weights) {
      low = std::min(low, weight);
      high = std::max(high, weight);
    }
  }
  if (high - low >= kByteValues) return std::nullopt;
  return low >= INT8_MIN && high <= INT8_MAX ? 0 : INT8_MIN - low;
}

// [kernel][row][column][plane]
template <typename T>
std::vector<T> spread_weights(const NnJob& job, std::span<const KernelTask> tasks, size_t row_elems, int32_t offset) {
  std::vector<T> rows(tasks.size() * row_elems, static_cast<T>(offset));
  const auto taps = static_cast<size_t>(job.taps()), planes = static_cast<size_t>(job.in_planes);
  for (size_t k = 0; k < tasks.size(); ++k) {
    const Kernel& kernel = *tasks[k].kernel;
    for (size_t i = 0; i < kernel.planes.size(); ++i) {
      for (size_t tap = 0; tap < taps; ++tap)
        rows[k * row_elems + tap * planes + kernel.planes[i]] = static_cast<T>(kernel.weights[i * taps + tap] + offset);
    }
  }
  return rows;
}

PackedKernels pack(const NnJob& job, std::span<const KernelTask> tasks) {
  PackedKernels packed;
  for (const KernelTask& task : tasks) packed.kernels.push_back(task.kernel);
  const size_t depth = window_elems(job);
  const std::optional<int32_t> offset = byte_gemm::available() ? offset_to_bytes(tasks) : std::nullopt;
  if (offset) {
    packed.offset = *offset;
    packed.bytes = byte_gemm::pack(spread_weights<int8_t>(job, tasks, depth, *offset).data(), tasks.size(), depth);
  } else {
    packed.pairs = spread_weights<int16_t>(job, tasks, align_up(depth, gemm::kDepthAlign), 0);
  }
  return packed;
}

bool is_of(const PackedKernels& packed, std::span<const KernelTask> tasks) {
  return std::ranges::equal(packed.kernels, tasks, {}, {}, &KernelTask::kernel);
}

// The part of the image that the window covers, pixel by pixel with all planes, including the border.
class Image {
 public:
  Image(const NnJob& job, std::span<const uint8_t> in)
      : width_((job.out_width - 1) * job.step + job.kernel_width),
        planes_(static_cast<size_t>(job.in_planes)),
        pixels_(static_cast<size_t>(((job.out_height - 1) * job.step + job.kernel_height) * width_) * planes_ +
                byte_gemm::kDepthAlign) {
    const int64_t height = (job.out_height - 1) * job.step + job.kernel_height;
    const int64_t x0 = std::max<int64_t>(job.offset_x, 0), x1 = std::min(job.offset_x + width_, job.in_width);
    const int64_t y0 = std::max<int64_t>(job.offset_y, 0), y1 = std::min(job.offset_y + height, job.in_height);
    if (x1 - x0 < width_ || y1 - y0 < height) std::ranges::fill(pixels_, job.border);
    if (x0 >= x1 || y0 >= y1) return;
    const bool one_run = x1 - x0 == width_ && job.in_row_bytes == width_;
    const int64_t rows = one_run ? y1 - y0 : 1;
    for (int64_t y = y0; y < y1; y += rows) {
      const ByteMatrix m{planes_, static_cast<size_t>(rows * (x1 - x0)), static_cast<size_t>(job.in_plane_bytes),
                         planes_};
      transpose_bytes(in.data() + job.in_row_bytes * y + x0, at(x0 - job.offset_x, y - job.offset_y), m);
    }
  }
  uint8_t* at(int64_t x, int64_t y) { return pixels_.data() + static_cast<size_t>(y * width_ + x) * planes_; }

 private:
  int64_t width_;
  size_t planes_;
  std::vector<uint8_t> pixels_;  // with padding: rows are read in whole products
};

class DenseConvolution {
 public:
  DenseConvolution(const NnJob& job, std::span<const KernelTask> tasks, std::span<const uint8_t> in,
                   const PackedKernels& packed)
      : job_(job), tasks_(tasks), packed_(packed), image_(job, in), depth_(window_elems(job)) {
    for (const KernelTask& task : tasks) biases_.push_back(static_cast<int32_t>(task.kernel->bias));
  }

  void run() {
    const auto pixels = static_cast<size_t>(job_.out_width * job_.out_height);
    const size_t block = std::clamp<size_t>(kBlockBytes / (depth_ + 4 * tasks_.size()), 8, std::max<size_t>(pixels, 8));
    sums_.resize(block * tasks_.size());
    bytes_.resize(sums_.size());
    planes_.resize(sums_.size());
    for (size_t first = 0; first < pixels; first += block) {
      const size_t count = std::min(block, pixels - first);
      packed_.pairs.empty() ? multiply_bytes(first, count) : multiply_pairs(first, count);
      store(first, count);
    }
  }

 private:
  int64_t x_of(size_t pixel) const { return static_cast<int64_t>(pixel) % job_.out_width * job_.step; }
  int64_t y_of(size_t pixel) const { return static_cast<int64_t>(pixel) / job_.out_width * job_.step; }

  // The windows of output pixels from `first` on, `row_elems` apart.
  const uint8_t* windows(size_t first, size_t count, size_t row_elems) {
    if (job_.taps() == 1 && job_.step == 1 && row_elems == depth_) return image_.at(x_of(first), y_of(first));
    windows_.resize(count * row_elems);
    const auto run = static_cast<size_t>(job_.kernel_width * job_.in_planes);
    for (size_t i = 0; i < count; ++i) {
      for (int row = 0; row < job_.kernel_height; ++row)
        std::memcpy(windows_.data() + i * row_elems + static_cast<size_t>(row) * run,
                    image_.at(x_of(first + i), y_of(first + i) + row), run);
    }
    return windows_.data();
  }

  void multiply_bytes(size_t first, size_t count) {
    const size_t stride = align_up(depth_, byte_gemm::kDepthAlign);
    const uint8_t* const rows = windows(first, count, stride);
    row_start_.resize(count);
    for (size_t i = 0; i < count && packed_.offset != 0; ++i)
      row_start_[i] = -packed_.offset * byte_gemm::sum(rows + i * stride, depth_);
    byte_gemm::matmul(rows, count, stride, packed_.bytes, tasks_.size(), depth_, row_start_.data(), sums_.data(),
                      tasks_.size());
  }

  void multiply_pairs(size_t first, size_t count) {
    const size_t stride = align_up(depth_, gemm::kDepthAlign);
    const uint8_t* const rows = windows(first, count, stride);
    pairs_.resize(count * stride);
    gemm::widen(rows, count * stride, 0, pairs_.data());
    gemm::matmul_i16(pairs_.data(), count, stride, packed_.pairs.data(), tasks_.size(), stride, stride, sums_.data(),
                     tasks_.size());
  }

  void store(size_t first, size_t count) {
    const size_t kernels = tasks_.size();
    for (size_t i = 0; i < count; ++i) {
      int32_t* const sums = sums_.data() + i * kernels;
      gemm::multiply_add(sums, biases_.data(), &kOne, 0, kernels, sums);
    }
    requantize(std::span(sums_).first(count * kernels), job_.requant, bytes_.data());
    transpose_bytes(bytes_.data(), planes_.data(), {count, kernels, kernels, count});
    for (size_t k = 0; k < kernels; ++k) store_plane(planes_.data() + k * count, first, count, tasks_[k].out);
  }

  // Output rows have their own stride.
  void store_plane(const uint8_t* from, size_t first, size_t count, uint8_t* out) const {
    const auto width = static_cast<size_t>(job_.out_width);
    for (size_t done = 0; done < count;) {
      const size_t x = (first + done) % width, run = std::min(width - x, count - done);
      std::memcpy(out + static_cast<int64_t>((first + done) / width) * job_.out_row_bytes + x, from + done, run);
      done += run;
    }
  }

  const NnJob& job_;
  std::span<const KernelTask> tasks_;
  const PackedKernels& packed_;
  Image image_;
  size_t depth_;
  std::vector<uint8_t> windows_;
  std::vector<int16_t> pairs_;
  std::vector<int32_t> biases_, row_start_, sums_;
  std::vector<uint8_t> bytes_, planes_;  // [pixel][kernel], [kernel][pixel]
};

}  // namespace

void convolve_dense(const NnJob& job, std::span<const KernelTask> tasks, std::span<const uint8_t> in,
                    PackedKernels& packed) {
  if (!is_of(packed, tasks)) packed = pack(job, tasks);
  DenseConvolution(job, tasks, in, packed).run();
}

}  // namespace skillet::sim::vivante
