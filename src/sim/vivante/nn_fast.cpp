// The quick way to compute an NN job. Lowered depthwise filters use one or a few of their planes: those kernels run
// directly over the image. The others share their input patches in one matrix product.
#include <algorithm>
#include <vector>

#include "base/gemm.h"
#include "base/int_math.h"
#include "sim/vivante/nn_job.h"

namespace skillet::sim::vivante {
namespace {

constexpr size_t kPatchBlockElems = size_t{1} << 18;  // patches at a time, so that they stay in the cache
constexpr int64_t kSparseFactor = 4;                  // direct when a kernel uses at most 1 / this of the planes
constexpr size_t kFewTaps = 8;                        // or has so few weights that a matrix row would be mostly padding

bool is_sparse(const NnJob& job, const Kernel& kernel) {
  return static_cast<int64_t>(kernel.planes.size()) * kSparseFactor <= job.in_planes ||
         kernel.weights.size() <= kFewTaps;
}

// ---- direct ----

// The part of one input plane that the window passes over, with the border filled in: no bounds to check after that.
class PaddedPlane {
 public:
  explicit PaddedPlane(const NnJob& job)
      : job_(job),
        width_((job.out_width - 1) * job.step + job.kernel_width),
        height_((job.out_height - 1) * job.step + job.kernel_height),
        pixels_(static_cast<size_t>(width_ * height_)) {}

  void load(std::span<const uint8_t> in, uint32_t plane) {
    std::fill(pixels_.begin(), pixels_.end(), job_.border);
    const int64_t x0 = std::max<int64_t>(job_.offset_x, 0), x1 = std::min(job_.offset_x + width_, job_.in_width);
    const int64_t y0 = std::max<int64_t>(job_.offset_y, 0), y1 = std::min(job_.offset_y + height_, job_.in_height);
    if (x0 >= x1) return;
    for (int64_t y = y0; y < y1; ++y) {
      const uint8_t* row = in.data() + job_.in_plane_bytes * plane + job_.in_row_bytes * y;
      std::copy(row + x0, row + x1, pixels_.data() + (y - job_.offset_y) * width_ + (x0 - job_.offset_x));
    }
  }
  const uint8_t* row(int64_t y) const { return pixels_.data() + y * width_; }

 private:
  const NnJob& job_;
  int64_t width_, height_;
  std::vector<uint8_t> pixels_;
};

void add_tap(const uint8_t* row, int step, int32_t weight, std::span<int32_t> sums) {
  if (step == 1) {
    for (size_t x = 0; x < sums.size(); ++x) sums[x] += weight * row[x];
  } else {
    for (size_t x = 0; x < sums.size(); ++x) sums[x] += weight * row[x * static_cast<size_t>(step)];
  }
}

void add_plane(const NnJob& job, const PaddedPlane& plane, const int16_t* weights, std::vector<int32_t>& sums) {
  const auto width = static_cast<size_t>(job.out_width);
  for (int64_t y = 0; y < job.out_height; ++y) {
    const std::span<int32_t> row_sums(sums.data() + static_cast<size_t>(y) * width, width);
    for (int row = 0; row < job.kernel_height; ++row) {
      for (int column = 0; column < job.kernel_width; ++column) {
        const int16_t weight = weights[row * job.kernel_width + column];
        if (weight != 0) add_tap(plane.row(y * job.step + row) + column, job.step, weight, row_sums);
      }
    }
  }
}

void convolve_directly(const NnJob& job, const KernelTask& task, std::span<const uint8_t> in, PaddedPlane& plane,
                       std::vector<int32_t>& sums) {
  sums.assign(static_cast<size_t>(job.out_width * job.out_height), task.kernel->bias);
  for (size_t i = 0; i < task.kernel->planes.size(); ++i) {
    plane.load(in, task.kernel->planes[i]);
    add_plane(job, plane, task.kernel->weights.data() + i * static_cast<size_t>(job.taps()), sums);
  }
  for (int64_t y = 0; y < job.out_height; ++y) {
    for (int64_t x = 0; x < job.out_width; ++x)
      task.out[x + job.out_row_bytes * y] = requantize(sums[static_cast<size_t>(y * job.out_width + x)], job.requant);
  }
}

// ---- matrix product ----

class MatrixConvolution {
 public:
  MatrixConvolution(const NnJob& job, std::span<const KernelTask> tasks, std::span<const uint8_t> in)
      : job_(job),
        tasks_(tasks),
        in_(in),
        depth_(align_up(static_cast<size_t>(job.in_planes * job.taps()), gemm::kDepthAlign)),
        weights_(tasks.size() * depth_) {
    for (size_t k = 0; k < tasks.size(); ++k) spread_weights(*tasks[k].kernel, weights_.data() + k * depth_);
  }

  void run() {
    const auto pixels = static_cast<size_t>(job_.out_width * job_.out_height);
    const size_t block = std::clamp<size_t>(kPatchBlockElems / depth_, 8, std::max<size_t>(pixels, 8));
    patches_.resize(block * depth_);
    sums_.resize(block * tasks_.size());
    for (size_t first = 0; first < pixels; first += block) {
      const size_t count = std::min(block, pixels - first);
      gather_patches(first, count);
      gemm::matmul_i16(weights_.data(), tasks_.size(), depth_, patches_.data(), count, depth_, depth_, sums_.data(),
                       count);
      store(first, count);
    }
  }

 private:
  void spread_weights(const Kernel& kernel, int16_t* row) const {
    const auto taps = static_cast<size_t>(job_.taps());
    for (size_t i = 0; i < kernel.planes.size(); ++i)
      std::copy_n(kernel.weights.data() + i * taps, taps, row + kernel.planes[i] * taps);
  }

  // Row i: all taps of all planes under the window of output pixel first + i.
  void gather_patches(size_t first, size_t count) {
    const auto width = static_cast<size_t>(job_.out_width);
    for (size_t i = 0; i < count; ++i) {
      int16_t* at = patches_.data() + i * depth_;
      const int64_t x = static_cast<int64_t>((first + i) % width) * job_.step + job_.offset_x;
      const int64_t y = static_cast<int64_t>((first + i) / width) * job_.step + job_.offset_y;
      const bool inside =
          x >= 0 && y >= 0 && x + job_.kernel_width <= job_.in_width && y + job_.kernel_height <= job_.in_height;
      for (int row = 0; row < job_.kernel_height; ++row) {
        for (int column = 0; column < job_.kernel_width; ++column)
          gather_tap(x + column, y + row, inside, at + row * job_.kernel_width + column);
      }
    }
  }

  // One tap in all planes, taps() elements apart.
  void gather_tap(int64_t x, int64_t y, bool inside, int16_t* at) const {
    const int64_t taps = job_.taps();
    if (inside || (x >= 0 && y >= 0 && x < job_.in_width && y < job_.in_height)) {
      const uint8_t* pixel = in_.data() + x + job_.in_row_bytes * y;
      for (int64_t plane = 0; plane < job_.in_planes; ++plane) at[plane * taps] = pixel[plane * job_.in_plane_bytes];
    } else {
      for (int64_t plane = 0; plane < job_.in_planes; ++plane) at[plane * taps] = job_.border;
    }
  }

  void store(size_t first, size_t count) const {
    const auto pixel = static_cast<int64_t>(first);
    for (size_t k = 0; k < tasks_.size(); ++k) {
      const int32_t bias = tasks_[k].kernel->bias;
      int64_t x = pixel % job_.out_width;
      uint8_t* row = tasks_[k].out + pixel / job_.out_width * job_.out_row_bytes;
      for (size_t i = 0; i < count; ++i) {
        row[x] = requantize(sums_[k * count + i] + bias, job_.requant);
        if (++x < job_.out_width) continue;
        x = 0;
        row += job_.out_row_bytes;
      }
    }
  }

  const NnJob& job_;
  std::span<const KernelTask> tasks_;
  std::span<const uint8_t> in_;
  size_t depth_;
  std::vector<int16_t> weights_;
  std::vector<int16_t> patches_;
  std::vector<int32_t> sums_;
};

}  // namespace

void convolve_fast(const NnJob& job, std::span<const KernelTask> tasks, std::span<const uint8_t> in) {
  std::vector<KernelTask> dense;
  PaddedPlane plane(job);
  std::vector<int32_t> sums;
  for (const KernelTask& task : tasks) {
    if (is_sparse(job, *task.kernel))
      convolve_directly(job, task, in, plane, sums);
    else
      dense.push_back(task);
  }
  if (!dense.empty()) MatrixConvolution(job, dense, in).run();
}

}  // namespace skillet::sim::vivante
