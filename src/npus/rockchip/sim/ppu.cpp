#include "npus/rockchip/sim/ppu.h"

#include <algorithm>
#include <cstdlib>

#include "base/int_math.h"
#include "npus/rockchip/sim/fault.h"

namespace skillet::sim::rockchip {
namespace {

constexpr int64_t kAtom = 16;
constexpr int64_t kReciprocalOne = 65536;

int32_t sign_extend_19(uint32_t bits) { return static_cast<int32_t>(bits << 13) >> 13; }

class Reader {
 public:
  Reader(Registers& registers, const PoolMode& mode) : r_(registers) {
    job_.method = mode.method, job_.pad_value = mode.pad_value, job_.skips_pads = mode.skips_pads;
  }

  Result<PoolJob> read() {
    SK_TRY(cubes());
    SK_TRY(window());
    SK_TRY(rounding());
    SK_TRY(places());
    return job_;
  }

 private:
  Result<void> cubes() {
    job_.in_width = r_.get<hw::PpuDataCubeInWidth>().cube_in_width;
    job_.in_height = r_.get<hw::PpuDataCubeInHeight>().cube_in_height;
    job_.lanes = r_.get<hw::PpuDataCubeInChannel>().cube_in_channel;
    job_.out_width = r_.get<hw::PpuDataCubeOutWidth>().cube_out_width;
    job_.out_height = r_.get<hw::PpuDataCubeOutHeight>().cube_out_height;
    const bool same = r_.get<hw::PpuRdmaCubeInWidth>().cube_in_width == job_.in_width &&
                      r_.get<hw::PpuRdmaCubeInHeight>().cube_in_height == job_.in_height &&
                      r_.get<hw::PpuRdmaCubeInChannel>().cube_in_channel == job_.lanes &&
                      r_.get<hw::PpuDataCubeOutChannel>().cube_out_channel == job_.lanes;
    return same ? Result<void>() : not_modelled("ppu.data_cube and ppu_rdma.cube disagree");
  }

  Result<void> window() {
    const auto kernel = r_.get<hw::PpuPoolingKernelCfg>();
    const auto pad = r_.get<hw::PpuPoolingPaddingCfg>();
    job_.kernel_width = kernel.kernel_width;
    job_.kernel_height = kernel.kernel_height;
    job_.stride_x = kernel.kernel_stride_width;
    job_.stride_y = kernel.kernel_stride_height;
    job_.pad_left = pad.pad_left;
    job_.pad_top = pad.pad_top;
    job_.pad_right = pad.pad_right;
    job_.pad_bottom = pad.pad_bottom;
    const int64_t last_x = (job_.out_width - 1) * job_.stride_x + job_.kernel_width;
    const int64_t last_y = (job_.out_height - 1) * job_.stride_y + job_.kernel_height;
    if (last_x > job_.in_width + job_.pad_left + job_.pad_right ||
        last_y > job_.in_height + job_.pad_top + job_.pad_bottom)
      return stall("ppu.pooling_padding_cfg: windows reach beyond input and pads: the task never ends");
    if (job_.skips_pads &&
        (job_.pad_left >= job_.kernel_width || last_x - job_.kernel_width >= job_.in_width + job_.pad_left ||
         job_.pad_top >= job_.kernel_height || last_y - job_.kernel_height >= job_.in_height + job_.pad_top))
      return not_modelled("ppu.pooling_padding_cfg: a window of pads alone, which has no average without pads");
    return {};
  }

  Result<void> rounding() {
    const uint32_t width = r_.get<hw::PpuRecipKernelWidth>().recip_kernel_width;
    const uint32_t height = r_.get<hw::PpuRecipKernelHeight>().recip_kernel_height;
    const bool averages = job_.method == hw::Pooling::average;
    if (width != (averages ? kReciprocalOne / job_.kernel_width : 0) ||
        height != (averages ? kReciprocalOne / job_.kernel_height : 0))
      return not_modelled("ppu.recip_kernel: {} and {} for a window of {}x{}", width, height, job_.kernel_height,
                          job_.kernel_width);
    return {};
  }

  Result<void> places() {
    job_.in_address = static_cast<int64_t>(r_.get<hw::PpuRdmaSrcBaseAddr>().src_base_addr.offset);
    job_.in_row_bytes = r_.get<hw::PpuRdmaSrcLineStride>().src_line_stride;
    job_.in_surface_bytes = r_.get<hw::PpuRdmaSrcSurfStride>().src_surf_stride;
    job_.out_address = static_cast<int64_t>(r_.get<hw::PpuDstBaseAddr>().dst_base_addr.offset);
    job_.out_surface_bytes = r_.get<hw::PpuDstSurfStride>().dst_surf_stride;
    r_.get<hw::PpuMiscCtrl>();
    const uint32_t index = r_.get<hw::PpuDataFormat>().index_add;
    if (index != job_.out_surface_bytes)
      return not_modelled("ppu.data_format.index_add = {}: programs repeat dst_surf_stride there", index);
    return {};
  }

  Registers& r_;
  PoolJob job_;
};

class Runner {
 public:
  Runner(const PoolJob& job, const Dma& dma)
      : job_(job), dma_(dma), in_(static_cast<size_t>(job.in_width * job.in_height * kAtom)) {}

  Result<void> run() {
    for (int64_t surface = 0; surface < ceil_div(job_.lanes, kAtom); ++surface) {
      SK_TRY(load(surface));
      SK_TRY(compute(surface));
    }
    return {};
  }

 private:
  Result<void> load(int64_t surface) {
    const auto row = static_cast<size_t>(job_.in_width * kAtom);
    for (int64_t y = 0; y < job_.in_height; ++y) {
      const int64_t address = job_.in_address + surface * job_.in_surface_bytes + y * job_.in_row_bytes;
      const std::span<uint8_t> to(in_.data() + static_cast<size_t>(y) * row, row);
      SK_TRY(dma_.read(static_cast<uint64_t>(address), to, "pooling input"));
    }
    return {};
  }

  Result<void> compute(int64_t surface) {
    std::vector<uint8_t> row(static_cast<size_t>(job_.out_width * kAtom));
    for (int64_t y = 0; y < job_.out_height; ++y) {
      for (int64_t x = 0; x < job_.out_width; ++x) {
        for (int64_t lane = 0; lane < kAtom; ++lane)
          row[static_cast<size_t>(x * kAtom + lane)] = static_cast<uint8_t>(pool(y, x, lane));
      }
      const int64_t address = job_.out_address + surface * job_.out_surface_bytes + y * job_.out_width * kAtom;
      SK_TRY(dma_.write(static_cast<uint64_t>(address), row, "pooling output"));
    }
    return {};
  }

  int32_t at(int64_t y, int64_t x, int64_t lane) const {
    if (y < 0 || y >= job_.in_height || x < 0 || x >= job_.in_width) return job_.pad_value;
    return static_cast<int8_t>(in_[static_cast<size_t>((y * job_.in_width + x) * kAtom + lane)]);
  }

  int8_t pool(int64_t out_y, int64_t out_x, int64_t lane) const {
    int64_t sum = 0, most = INT32_MIN, least = INT32_MAX;
    for (int64_t ky = 0; ky < job_.kernel_height; ++ky) {
      for (int64_t kx = 0; kx < job_.kernel_width; ++kx) {
        const int64_t v =
            at(out_y * job_.stride_y + ky - job_.pad_top, out_x * job_.stride_x + kx - job_.pad_left, lane);
        sum += v;
        most = std::max(most, v);
        least = std::min(least, v);
      }
    }
    if (job_.method == hw::Pooling::average) {
      const int64_t own = out_y * job_.out_width + out_x, by = own - (job_.divides_late && own > 0 ? 1 : 0);
      return average(sum, taps(by % job_.out_width, job_.stride_x, job_.kernel_width, job_.pad_left, job_.in_width),
                     taps(by / job_.out_width, job_.stride_y, job_.kernel_height, job_.pad_top, job_.in_height));
    }
    return static_cast<int8_t>(job_.method == hw::Pooling::max ? most : least);
  }

  // Columns or rows of a window that are averaged.
  int64_t taps(int64_t out, int64_t stride, int64_t kernel, int64_t before, int64_t size) const {
    if (!job_.skips_pads) return kernel;
    const int64_t first = out * stride - before;
    return std::min(first + kernel, size) - std::max<int64_t>(first, 0);
  }

  const PoolJob& job_;
  const Dma& dma_;
  std::vector<uint8_t> in_;
};

}  // namespace

int8_t average(int64_t sum, int64_t kernel_width, int64_t kernel_height) {
  const int64_t count = kernel_width * kernel_height, magnitude = std::abs(sum);
  int64_t quotient = (magnitude + count / 2) / count;
  const bool half = count % 2 == 0 && magnitude % count == count / 2;
  const bool inexact = kReciprocalOne % kernel_width != 0 || kReciprocalOne % kernel_height != 0;
  if (half && (inexact || is_odd(quotient))) --quotient;
  return static_cast<int8_t>(sum < 0 ? -quotient : quotient);
}

Result<PoolJob> read_pool_job(Registers& registers, const Options& options) {
  const uint32_t value = registers.get<hw::PpuPaddingValue1Cfg>().pad_value_0;
  if (value >> 19 != 0) return not_modelled("ppu.padding_value_1_cfg.pad_value_0: only 19 bits are known");
  registers.get<hw::PpuPaddingValue2Cfg>();
  registers.get<hw::PpuRdmaDataFormat>();
  const hw::Pooling method = registers.get<hw::PpuOperationModeCfg>().pooling_method;
  return read_pool(registers, {.method = method, .pad_value = sign_extend_19(value)}, options);
}

Result<PoolJob> read_pool(Registers& registers, const PoolMode& mode, const Options& options) {
  SK_TRY_ASSIGN(PoolJob job, Reader(registers, mode).read());
  job.divides_late = options.divides_late;
  const int64_t pixels = std::max(job.in_width * job.in_height, job.out_width * job.out_height);
  const int64_t work = job.out_width * job.out_height * job.lanes * job.kernel_width * job.kernel_height;
  if (static_cast<uint64_t>(pixels * kAtom) > options.max_elements_per_task ||
      static_cast<uint64_t>(work) > options.max_macs_per_task)
    return not_modelled("pooling {}x{}x{}: beyond the simulator's limit", job.in_height, job.in_width, job.lanes);
  return job;
}

Result<void> run_pool(const PoolJob& job, const Dma& dma) { return Runner(job, dma).run(); }

}  // namespace skillet::sim::rockchip
