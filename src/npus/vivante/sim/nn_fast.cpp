// Fast computation of an NN job. Kernels of lowered depthwise filters use one or a few planes and run directly over the
// image. The others share their input patches in one matrix product.
#include <algorithm>
#include <vector>

#include "npus/vivante/sim/nn_dense.h"
#include "simd/gemm.h"

namespace skillet::sim::vivante {
namespace {

constexpr int64_t kSparseFactor = 4;  // direct if a kernel uses at most 1 / this of the planes
constexpr size_t kFewTaps = 8;        // or if a matrix row of so few weights would be mostly padding

bool is_sparse(const NnJob& job, const Kernel& kernel) {
  return static_cast<int64_t>(kernel.planes.size()) * kSparseFactor <= job.in_planes ||
         kernel.weights.size() <= kFewTaps;
}

// The part of one input plane that the window covers, including the border, so that no bounds need checks.
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
  int64_t width() const { return width_; }
  const uint8_t* pixels() const { return pixels_.data(); }

 private:
  const NnJob& job_;
  int64_t width_, height_;
  std::vector<uint8_t> pixels_;
};

// A filter over the whole padded plane: one sum for each place of the window, including those between rows and steps.
class PlaneFilter {
 public:
  explicit PlaneFilter(const NnJob& job)
      : job_(job),
        plane_(job),
        count_(static_cast<size_t>((job.out_height - 1) * job.step * plane_.width() + (job.out_width - 1) * job.step +
                                   1)) {}

  void run(const KernelTask& task, std::span<const uint8_t> in) {
    sums_.assign(count_, static_cast<int32_t>(task.kernel->bias));
    for (size_t i = 0; i < task.kernel->planes.size(); ++i) {
      plane_.load(in, task.kernel->planes[i]);
      add_plane(task.kernel->weights.data() + i * static_cast<size_t>(job_.taps()));
    }
    bytes_.resize(count_);
    requantize(sums_, job_.requant, bytes_.data());
    for (int64_t y = 0; y < job_.out_height; ++y) {
      const uint8_t* from = bytes_.data() + y * job_.step * plane_.width();
      uint8_t* to = task.out + y * job_.out_row_bytes;
      for (int64_t x = 0; x < job_.out_width; ++x) to[x] = from[x * job_.step];
    }
  }

 private:
  void add_plane(const int16_t* weights) {
    offsets_.clear();
    weights_.clear();
    for (int64_t row = 0; row < job_.kernel_height; ++row) {
      for (int64_t column = 0; column < job_.kernel_width; ++column) {
        const int16_t weight = weights[row * job_.kernel_width + column];
        if (weight == 0) continue;
        offsets_.push_back(static_cast<size_t>(row * plane_.width() + column));
        weights_.push_back(weight);
      }
    }
    gemm::add_taps(plane_.pixels(), offsets_.data(), weights_.data(), weights_.size(), count_, sums_.data());
  }

  const NnJob& job_;
  PaddedPlane plane_;
  size_t count_;
  std::vector<size_t> offsets_;
  std::vector<int32_t> weights_;
  std::vector<int32_t> sums_;
  std::vector<uint8_t> bytes_;
};

}  // namespace

void convolve_fast(const NnJob& job, std::span<const KernelTask> tasks, std::span<const uint8_t> in,
                   PackedKernels& packed) {
  std::vector<KernelTask> dense;
  PlaneFilter filter(job);
  for (const KernelTask& task : tasks) {
    if (is_sparse(job, *task.kernel))
      filter.run(task, in);
    else
      dense.push_back(task);
  }
  if (!dense.empty()) convolve_dense(job, dense, in, packed);
}

}  // namespace skillet::sim::vivante
