// The RK3576's registers as jobs of the same units (specification of the RK3576, sections 3, 5, 6, 8).
#include <iterator>

#include "base/int_math.h"
#include "npus/rockchip/sim/fault.h"
#include "npus/rockchip/sim/front.h"
#include "npus/rockchip/sim/rk3576_known.h"

namespace skillet::sim::rockchip {

const Front& front_of(const hw::ChipRow& chip) {
  static constexpr Front kFirst{read_conv_job, read_dpu_job, read_pool_job};
  static constexpr Front kRk3576{rk3576::read_conv_job, rk3576::read_dpu_job, rk3576::read_pool_job};
  return chip.has(hw::kRegisters3576) ? kRk3576 : kFirst;
}

namespace rk3576 {
namespace {

constexpr int64_t kLaneGroup = 32, kDepthwiseGroup = 64;
constexpr uint32_t kBanks = 16;  // of the memory that both cores share

class ConvReader {
 public:
  ConvReader(Registers& registers, const hw::ChipRow& chip, const Options& options)
      : r_(registers), chip_(chip), options_(options) {}

  Result<ConvJob> read() {
    SK_TRY(mode());
    SK_TRY(input());
    SK_TRY(window());
    SK_TRY(output());
    SK_TRY(weights());
    SK_TRY(buffer());
    SK_TRY(unused());
    return job_;
  }

 private:
  Result<void> mode() {
    const auto con1 = r_.get<r::CnaConvCon1>();
    const auto con3 = r_.get<r::CnaConvCon3>();
    const auto misc = r_.get<r::CoreMiscCfg>();
    constexpr uint32_t kDirect = 1, kDepthwise = 10;
    job_.depthwise = job_.paired_weights = con1.depthwise;
    job_.stride_x = con3.conv_x_stride, job_.stride_y = con3.conv_y_stride;
    if (con1.packed != 0 || con1.argb_in != hw::PixelFormat::cube || con1.nonalign_dma || misc.packed)
      return not_modelled("cna.conv_con1: packed pixels are not modelled");
    if (con1.in_precision != hw::MacPrecision::int8 || con1.proc_precision != hw::MacPrecision::int8 || con1.floats ||
        misc.floats)
      return not_modelled("cna.conv_con1: only int8 is modelled");
    if (misc.mode != (job_.depthwise ? kDepthwise : kDirect) || !misc.always)
      return not_modelled("core.misc_cfg.mode = {} and cna.conv_con1.depthwise = {} disagree", misc.mode,
                          con1.depthwise);
    if (job_.stride_x == 0 || job_.stride_y == 0) return not_modelled("cna.conv_con3: a stride of 0");
    const auto cvt = r_.get<r::CnaCvtCon0>();
    if (!cvt.cvt_bypass || !cvt.data_sign)
      return not_modelled("cna.cvt_con0: only signed bytes as they are are modelled");
    return {};
  }

  Result<void> input() {
    const auto size0 = r_.get<r::CnaDataSize0>();
    const auto size1 = r_.get<r::CnaDataSize1>();
    const auto fetched = r_.get<r::CnaFcDataSize0>();
    const auto row = r_.get<r::CnaRowSize>();
    channels_ = size0.datain_channel;
    job_.in_width = size1.datain_width, job_.in_height = size1.datain_height;
    job_.in_lanes = align_up(channels_, kAtom);
    kept_ = job_.in_height - int64_t{fetched.dma_height};
    if (kept_ < 0)
      return not_modelled("cna.data_size1.datain_height = {}, but {} rows are fetched", size1.datain_height,
                          fetched.dma_height);
    if (fetched.dma_width != size1.datain_width || row.row_width != size1.datain_width ||
        r_.get<r::CnaFcDataSize1>().dma_channel != size0.datain_channel)
      return not_modelled("cna.fc_data_size and cna.data_size disagree");
    job_.feature_address = static_cast<int64_t>(r_.get<r::CnaFeatureDataAddr>().feature_base_addr.offset);
    job_.feature_address -= kept_ * kAtom * job_.in_width;  // address of the first fetched row
    job_.line_stride = r_.get<r::CnaDmaCon1>().line_stride;
    if (job_.line_stride != 4 * job_.in_width)
      return not_modelled("cna.dma_con1.line_stride = {}: programs have four rows", job_.line_stride);
    const int64_t pitch = r_.get<r::CnaDmaCon2>().surf_stride;
    job_.surface_stride = pitch - 4 * job_.in_width;
    const int64_t pixels = job_.in_width * (job_.in_height - kept_);
    const int64_t fetched_pixels = r_.get<r::CnaDmaCon3>().fetched_pixels;
    if (fetched_pixels != (pixels == 1 ? 1 : align_up(pixels, int64_t{4})))
      return not_modelled("cna.dma_con3.fetched_pixels = {} of {}", fetched_pixels, pixels);
    return {};
  }

  Result<void> window() {
    const auto kernel = r_.get<r::CnaWeightSize2>();
    const auto pad = r_.get<r::CnaPadCon0>();
    const int32_t value = r_.get<r::CnaPadCon1>().pad_value;
    job_.kernel_width = kernel.weight_width, job_.kernel_height = kernel.weight_height;
    job_.kernels = job_.depthwise ? 1 : kernel.weight_kernels;
    if (job_.depthwise && kernel.weight_kernels != 2)
      return not_modelled("cna.weight_size2.weight_kernels = {}: depthwise programs have 2", kernel.weight_kernels);
    job_.pad_left = pad.pad_left, job_.pad_top = pad.pad_top;
    pad_right_ = pad.pad_right, pad_bottom_ = pad.pad_bottom;
    if (value < INT8_MIN || value > INT8_MAX) return not_modelled("cna.pad_con1.pad_value = {}: no int8", value);
    job_.pad[0] = job_.pad[1] = static_cast<uint8_t>(value);
    return {};
  }

  Result<void> output() {
    const auto size = r_.get<r::CoreDataoutSize0>();
    const int64_t channels = r_.get<r::CoreDataoutSize1>().dataout_channel;
    job_.out_width = size.dataout_width, job_.out_height = size.dataout_height;
    job_.out_lanes = align_up(channels, kAtom);
    if (r_.get<r::CnaDataSize2>().dataout_width != job_.out_width ||
        r_.get<r::CnaDataSize3>().dataout_atomics != job_.pixels())
      return not_modelled("cna.data_size2/3 and core.dataout_size_0 disagree");
    if (job_.depthwise ? channels != channels_ : channels != job_.kernels)
      return not_modelled("core.dataout_size_1: {} channels of {}", channels,
                          job_.depthwise ? channels_ : job_.kernels);
    const auto behind = [](int64_t outputs, int64_t stride, int64_t window, int64_t before, int64_t size_of) {
      return std::max<int64_t>((outputs - 1) * stride + window - before - size_of, 0);
    };
    if (pad_bottom_ != behind(job_.out_height, job_.stride_y, job_.kernel_height, job_.pad_top, job_.in_height) ||
        pad_right_ != behind(job_.out_width, job_.stride_x, job_.kernel_width, job_.pad_left, job_.in_width))
      return not_modelled("cna.pad_con0: {} rows and {} columns behind are not what the last window reads", pad_bottom_,
                          pad_right_);
    return {};
  }

  Result<void> weights() {
    const int64_t total = r_.get<r::CnaWeightSize0>().weight_bytes,
                  each = r_.get<r::CnaWeightSize1>().weight_bytes_per_kernel;
    const int64_t units = r_.get<r::CnaDataSize2>().weight_units, kernel = job_.taps() * job_.in_lanes;
    job_.weight_address = static_cast<int64_t>(r_.get<r::CnaDcompAddr0>().decompress_addr0.offset);
    job_.weight_bytes = total;
    if (each != kernel || total != (job_.depthwise ? 2 * kernel : kernel * job_.kernels))
      return not_modelled("cna.weight_size: {} bytes, {} per kernel, of {} kernels of {}", total, each, job_.kernels,
                          kernel);
    if (units != ((job_.depthwise ? kernel / 8 : 2 * kernel) & 0xFFFF))
      return not_modelled("cna.data_size2.weight_units = {} with {} weights", units, kernel);
    if (job_.weight_address % kAtom != 0)
      return not_modelled("cna.dcomp_addr0 = {:#x}: not aligned", job_.weight_address);
    return {};
  }

  // One memory of banks: data, then weights, one slice of kernels at a time.
  Result<void> buffer() {
    const auto data = r_.get<r::CnaCbufBanks>();
    const auto end = r_.get<r::CnaWeightBanks>();
    const auto window = r_.get<r::CnaCbufWindow>();
    const auto places = r_.get<r::CnaCbufPlaces>();
    const auto row = r_.get<r::CnaRowSize>();
    const int64_t bank_units = chip_.cbuf_bank_bytes / chip_.cbuf_unit_bytes;
    if (end.dummy) return not_modelled("cna.cbuf_weight_banks.dummy: dummy programs are not modelled");
    if (data.keeps_rows != (kept_ > 0))
      return not_modelled("cna.cbuf_banks.keeps_rows = {}: {} rows are not fetched", data.keeps_rows, kept_);
    const uint32_t first = data.data_end_bank - data.data_banks;
    if (data.data_banks == 0 || data.data_banks > data.data_end_bank || end.weight_end_bank > kBanks ||
        end.weight_end_bank <= data.data_end_bank)
      return not_modelled("cna.cbuf_banks: {} data banks up to {}, weights up to {}", data.data_banks,
                          data.data_end_bank, end.weight_end_bank);
    if (places.weight_granule < data.data_end_bank * bank_units ||
        places.weight_granule >= end.weight_end_bank * bank_units)
      return not_modelled("cna.cbuf_places.weight_granule = {}: not between the end of the data, bank {}, and bank {}",
                          places.weight_granule, data.data_end_bank, end.weight_end_bank);
    const int64_t atoms = job_.in_lanes / kAtom, lanes = kAtom * (atoms + (atoms % 4 == 3 ? 1 : 0));
    const int64_t needed = ceil_div(job_.in_width * lanes, int64_t{chip_.cbuf_unit_bytes});
    if (row.row_entries != needed || window.row_entries != needed)
      return not_modelled("cna.row_size.row_entries = {}: a row needs {}", row.row_entries, needed);
    const int64_t used = needed * job_.in_height;
    job_.in_buffer = {.address = job_.feature_address,
                      .row_bytes = kAtom * job_.in_width,
                      .rows = job_.in_height,
                      .kept = kept_,
                      .first = window.window_granule,
                      .row_units = needed,
                      .ring_first = first * bank_units,
                      .ring_units = data.data_banks * bank_units};
    SK_TRY(ring(places.fetch_granule));
    if (r_.get<r::CnaDataSize0>().fetched_entries != needed * (job_.in_height - kept_))
      return not_modelled("cna.data_size0.fetched_entries is not what {} rows of {} take", job_.in_height, needed);
    if (used > data.data_banks * bank_units)
      return not_modelled("cna.cbuf_banks.data_banks = {}: {} rows take {} units, the tail would be wrong",
                          data.data_banks, job_.in_height, used);
    const int64_t room =
        end.weight_end_bank * chip_.cbuf_bank_bytes - int64_t{places.weight_granule} * chip_.cbuf_unit_bytes;
    const int64_t slice = job_.depthwise ? 2 * job_.taps() * std::min(job_.in_lanes, kDepthwiseGroup)
                                         : job_.taps() * job_.in_lanes * std::min<int64_t>(job_.kernels, kLaneGroup);
    if (slice > room) return not_modelled("cna.weight_size1: a slice of {} bytes, weights have {}", slice, room);
    job_.data_banks = data.data_banks, job_.weight_banks = end.weight_end_bank - data.data_end_bank;
    return slices(slice);
  }

  // Fetched rows follow the kept ones, and wrap around at the end of the ring.
  Result<void> ring(int64_t fetched) const {
    const KeptRows& rows = job_.in_buffer;
    const bool inside = rows.first >= rows.ring_first && rows.first < rows.ring_first + rows.ring_units;
    if (!inside || (kept_ == 0 && rows.first != rows.ring_first))
      return not_modelled("cna.cbuf_window.window_granule = {}: the data ring begins at {}", rows.first,
                          rows.ring_first);
    if (fetched != rows.unit_of(kept_))
      return not_modelled("cna.cbuf_places.fetch_granule = {}: {} rows are kept from {} on", fetched, kept_,
                          rows.first);
    return {};
  }

  // The sizes that boards were seen to compute right; above them the last groups of kernels are wrong. For more data
  // banks only the remaining room is known.
  Result<void> slices(int64_t bytes) {
    constexpr int64_t kKiB = 1024, kCubeMax = 6 * kKiB * kKiB, kKernelsMax = 2944, kDataBanks = 4, kAny = 192;
    constexpr int64_t kMost[] = {175, 156, 148, 144};  // by slices of the program
    const int64_t lanes = job_.depthwise ? job_.in_lanes : job_.kernels,
                  count = ceil_div(lanes, job_.depthwise ? kDepthwiseGroup : kLaneGroup);
    const int64_t most =
        (job_.data_banks == kDataBanks ? kMost[std::min<int64_t>(count, std::size(kMost)) - 1] : kAny) * kKiB;
    if (bytes <= most && job_.weight_bytes <= kCubeMax && lanes <= kKernelsMax) return {};
    if (options_.loses_groups) {
      job_.lost_bytes = job_.weight_bytes - (count - 1) * bytes;
      return {};
    }
    return broken(
        options_.weight_slices, "weight_slices",
        not_modelled("cna.weight_size: {} bytes for {} kernels, in slices of {}: the last ones come out wrong",
                     job_.weight_bytes, lanes, bytes));
  }

  Result<void> unused() {
    SK_TRY(expect<r::CnaConvCon2>(r_, {0xFFF}));
    return expect_zero<r::CnaCvtOffset0, r::CnaCvtOffset1, r::CnaCvtOffset2, r::CnaZero1060, r::CnaZero1064,
                       r::CnaZero1068, r::CnaZero106C, r::CnaZero1070, r::CnaZero1074, r::CnaZero109C, r::CnaDcompCtrl,
                       r::CnaDcompRegnum, r::CnaZero1140, r::CnaZero1144, r::CoreZero3024>(r_);
  }

  Registers& r_;
  const hw::ChipRow& chip_;
  const Options& options_;
  ConvJob job_;
  int64_t channels_ = 0, pad_right_ = 0, pad_bottom_ = 0, kept_ = 0;
};

class DpuReader {
 public:
  DpuReader(Registers& registers, const ConvJob& conv) : r_(registers), conv_(conv) {}

  Result<DpuJob> read() {
    SK_TRY(cube());
    SK_TRY(stages());
    SK_TRY(operands());
    SK_TRY(read_tables(r_, job_));
    SK_TRY(output());
    SK_TRY(unused());
    return job_;
  }

 private:
  Result<void> cube() {
    const auto mode = r_.get<r::DpuFeatureModeCfg>();
    const auto wdma = r_.get<r::DpuWdmaSize>();
    const auto bs = r_.get<r::DpuBsCube>();
    job_.depthwise = mode.depthwise;
    job_.width = r_.get<r::DpuDataCubeWidth>().width;
    job_.height = r_.get<r::DpuDataCubeHeight>().height;
    job_.true_lanes = r_.get<r::DpuDataCubeChannel>().channel;
    job_.lanes = align_up(job_.true_lanes, kAtom);
    job_.multiplied_lanes = job_.true_lanes;
    if (mode.flying_mode != hw::MainSource::core || mode.output_mode != hw::OutputMode::memory ||
        mode.depthwise != conv_.depthwise)
      return not_modelled("dpu.feature_mode_cfg: not what a convolution to memory has");
    const bool same = wdma.width == job_.width && wdma.height == job_.height && bs.channel == job_.true_lanes &&
                      r_.get<r::DpuRdmaDataCubeWidth>().width == job_.width &&
                      r_.get<r::DpuRdmaDataCubeHeight>().height == job_.height &&
                      r_.get<r::DpuRdmaDataCubeChannel>().channel == job_.true_lanes;
    if (!same || job_.width != conv_.out_width || job_.height != conv_.out_height || job_.lanes != conv_.out_lanes)
      return not_modelled("dpu.data_cube, dpu_rdma.data_cube and core.dataout_size disagree");
    if (bs.mode != (job_.depthwise ? 0x310U : 0x710U)) return not_modelled("dpu.bs_cube.mode = 0x{:x}", bs.mode);
    return {};
  }

  Result<void> stages() {
    SK_TRY(expect<r::DpuBsCfg>(r_, {job_.depthwise ? 0x100092U : 0x120080U}));
    SK_TRY(expect<r::DpuBsMode>(r_, {job_.depthwise ? 0U : 1U}));
    const auto atoms = static_cast<uint32_t>(job_.lanes / kAtom);
    SK_TRY(expect<r::DpuBsOwCfg>(
        r_, {job_.depthwise ? 0x13033U | ((atoms - 1) & 3) << 8 : 0x80011011U | (atoms % 2 == 0 ? 0x100U : 0)}));
    SK_TRY((expect_no_limits<r::DpuBsMin, r::DpuBsMax>(r_)));
    SK_TRY((expect_no_limits<r::DpuBs2Min, r::DpuBs2Max>(r_)));
    SK_TRY((expect_no_limits<r::DpuEwMin, r::DpuEwMax>(r_)));
    SK_TRY((expect_no_limits<r::DpuOutMin, r::DpuOutMax>(r_)));
    job_.bs = {.alu = true, .alu_from_memory = true, .multiply = true, .multiplier_from_memory = true};
    job_.correct = job_.correction_from_memory = !job_.depthwise;
    SK_TRY(expect<r::DpuBnCfg>(r_, {kBnOff, kBnLimits, kBnSlope, kBnFactor}));
    SK_TRY(read_bn_tensor(r_, job_));
    const int32_t least = r_.get<r::DpuBnMin>().value, most = r_.get<r::DpuBnMax>().value;
    if (r_.get<r::DpuBn2Min>().value != least || r_.get<r::DpuBn2Max>().value != most)
      return not_modelled("dpu.bn_min and dpu.bn_max: the two of each differ");
    if (r_.get<r::DpuBnCfg>().value != kBnLimits) return {};
    if (least != 0) return not_modelled("dpu.bn_min = {}: programs with limits have 0", least);
    job_.bn.relu = true;
    if (most != INT32_MAX) job_.bn.clamp = most;
    return {};
  }

  Result<void> operands() {
    SK_TRY(expect<r::DpuRdmaBrdmaCfg>(r_, {job_.depthwise ? 0x510U : 0x710U}));
    SK_TRY(second_tensor());
    constexpr uint32_t kGroups = 7;
    job_.channel_operands = kGroups;
    job_.channel_address = static_cast<int64_t>(r_.get<r::DpuRdmaBsBaseAddr>().bs_base_addr.offset);
    job_.shift_address = static_cast<int64_t>(r_.get<r::DpuRdmaShiftAddr>().shift_addr.offset);
    if (job_.depthwise) job_.operand_bytes = 48, job_.multiplier_at = 32;
    if (job_.channel_address % kAtom != 0 || job_.shift_address % kAtom != 0 || job_.shift_address == 0)
      return not_modelled("dpu_rdma.bs_base_addr = {:#x}, dpu_rdma.shift_addr = {:#x}: not aligned, or none",
                          job_.channel_address, job_.shift_address);
    return {};
  }

  // Only convolutions that are not depthwise are known to add a second tensor.
  Result<void> second_tensor() {
    SK_TRY(expect<r::DpuEwCfg>(r_, {kEwOff, kEwLookup, kEwAdds}));
    if (r_.get<r::DpuEwCfg>().value != kEwAdds) {
      SK_TRY(expect<r::DpuRdmaFeatureModeCfg>(r_, {job_.depthwise ? 0x40000012U : 0x40000010U}));
      SK_TRY(expect<r::DpuRdmaErdmaCfg>(r_, {0x41}));
      SK_TRY(expect<r::DpuEwCvtScale>(r_, {1}));
      return expect_zero<r::DpuEwCvtOffset, r::DpuRdmaEwSurfStride, r::DpuRdmaSurfNotch, r::DpuRdmaEwSurfNotch>(r_);
    }
    SK_TRY(expect<r::DpuRdmaFeatureModeCfg>(r_, {0x40000018}));
    SK_TRY(expect<r::DpuRdmaErdmaCfg>(r_, {0x50000044}));
    const uint32_t step = r_.word(r::DpuSurfaceAdd::kAddress);
    SK_TRY(expect<r::DpuRdmaSurfNotch>(r_, {step}));
    SK_TRY(expect<r::DpuRdmaEwSurfNotch>(r_, {step}));
    return read_second(r_, EwOp::add, job_);
  }

  Result<void> output() {
    read_output_scale(r_, job_);
    const bool narrow = r_.get<r::DpuOutCvtScale>().narrow;
    if (narrow != (job_.ew.op == EwOp::add))
      return not_modelled("dpu.out_cvt_scale.narrow = {}: of bytes only programs that add a tensor set it", narrow);
    job_.address = static_cast<int64_t>(r_.get<r::DpuDstBaseAddr>().dst_base_addr.offset);
    const int64_t pitch = r_.get<r::DpuDstSurfStride>().dst_surf_stride;
    job_.surfaces_per_group = job_.depthwise ? 4 : 2;
    job_.surface_bytes = pitch * kAtom;
    job_.group_bytes = (int64_t{r_.get<r::DpuSurfaceAdd>().surf_add} + job_.pixels()) * kAtom;
    if (job_.group_bytes != job_.surfaces_per_group * job_.surface_bytes)
      return not_modelled("dpu.surface_add: groups {} bytes apart, surfaces {}", job_.group_bytes, job_.surface_bytes);
    const auto enables = r_.get<r::DpuByteEnables>();
    if (enables.enables != 0xFFFF || enables.high != 0x40)
      return not_modelled("dpu.byte_enables = 0x{:x}", enables.enables);
    return expect<r::DpuWriteCfg>(r_, {0x04440100});
  }

  Result<void> unused() {
    SK_TRY(expect_unused(r_));
    return expect_zero<r::DpuLutMemory>(r_);
  }

  Registers& r_;
  const ConvJob& conv_;
  DpuJob job_;
};

}  // namespace

Result<ConvJob> read_conv_job(Registers& registers, const hw::ChipRow& chip, const Options& options) {
  SK_TRY_ASSIGN(const ConvJob job, ConvReader(registers, chip, options).read());
  SK_TRY(check_work(job, options));
  return job;
}

Result<DpuJob> read_dpu_job(Registers& registers, const ConvJob* conv, const Options& options) {
  if (conv == nullptr) return read_lone_dpu_job(registers);
  SK_TRY_ASSIGN(DpuJob job, DpuReader(registers, *conv).read());
  job.bs.tie = options.product_tie;
  return job;
}

Result<PoolJob> read_pool_job(Registers& registers, const Options& options) {
  const auto mode = registers.get<r::PpuOperationModeCfg>();
  if (mode.flying_mode != hw::PoolingSource::memory)
    return not_modelled("ppu.operation_mode_cfg.flying_mode: only pooling of what is in memory is modelled");
  PoolMode own{.method = mode.pooling_method, .skips_pads = mode.skips_pads};
  own.pad_value = registers.get<r::PpuPadValue1>().pad_value;
  const int32_t others[] = {registers.get<r::PpuPadValue2>().pad_value, registers.get<r::PpuPadValue3>().pad_value,
                            registers.get<r::PpuPadValue4>().pad_value};
  for (int32_t i = 0; i < 3; ++i) {
    if (others[i] != (own.method == hw::Pooling::average ? own.pad_value * (i + 2) : own.pad_value))
      return not_modelled("ppu.pad_value_{} = {} after {}", i + 2, others[i], own.pad_value);
  }
  SK_TRY((expect_zero<r::PpuZero6054, r::PpuZero6058, r::PpuZero605C>(registers)));
  SK_TRY(expect<r::PpuRdmaDataFormat>(registers, {0x40}));
  return read_pool(registers, own, options);
}

}  // namespace rk3576
}  // namespace skillet::sim::rockchip
