#include "npus/rockchip/sim/conv.h"

#include "base/int_math.h"
#include "npus/rockchip/sim/fault.h"

namespace skillet::sim::rockchip {
namespace {

constexpr int64_t kLanesAtOnce = 32;             // input channels that the MAC array takes at once
constexpr int64_t kNearlyFullPercent = 97;       // of a bank
constexpr int64_t kSumLimit = int64_t{1} << 17;  // products of two int8 that surely fit 32 bits

class Reader {
 public:
  Reader(Registers& registers, const hw::ChipRow& chip, const Options& options)
      : r_(registers), chip_(chip), options_(options) {}

  Result<ConvJob> read() {
    SK_TRY(mode());
    SK_TRY(input());
    SK_TRY(converter());
    SK_TRY(window());
    SK_TRY(output());
    SK_TRY(weights());
    SK_TRY(buffer());
    SK_TRY(core());
    return job_;
  }

 private:
  Result<void> mode() {
    const auto con1 = r_.get<hw::CnaConvCon1>();
    const auto misc = r_.get<hw::CoreMiscCfg>();
    job_.depthwise = con1.conv_mode == hw::ConvMode::depthwise;
    if (misc.dw_en != job_.depthwise) return not_modelled("core.misc_cfg.dw_en and cna.conv_con1.conv_mode disagree");
    // int8 output is always corrected by the window's sum (10.1 #11).
    if (!misc.qd_en) return not_modelled("core.misc_cfg.qd_en = false: raw accumulators are not modelled");
    const bool packed = con1.argb_in != hw::PixelFormat::cube;
    if (con1.nonalign_dma != packed) return not_modelled("cna.conv_con1.nonalign_dma without argb_in, or the reverse");
    if (packed && !con1.group_line_off) return not_modelled("cna.conv_con1: packed pixels in groups of four lines");
    job_.line_by_line = con1.group_line_off;
    job_.pixel_channels = packed ? static_cast<int>(con1.argb_in) - static_cast<int>(hw::PixelFormat::pixels_1) + 1 : 0;
    return {};
  }

  Result<void> input() {
    const auto size0 = r_.get<hw::CnaDataSize0>();
    const auto size1 = r_.get<hw::CnaDataSize1>();
    const auto fetched = r_.get<hw::CnaFcDataSize0>();
    const uint32_t fetched_lanes = r_.get<hw::CnaFcDataSize1>().dma_channel;
    job_.in_width = fetched.dma_width;
    job_.in_height = fetched.dma_height;
    job_.in_lanes = fetched_lanes;
    if (job_.in_width == 0 || job_.in_height == 0 || job_.in_lanes == 0)
      return not_modelled("cna.fc_data_size: an input of {}x{}x{}", job_.in_height, job_.in_width, job_.in_lanes);
    if (size0.datain_height != fetched.dma_height || size0.datain_width < fetched.dma_width)
      return not_modelled("cna.data_size0 is {}x{}, cna.fc_data_size0 {}x{}", size0.datain_height, size0.datain_width,
                          fetched.dma_height, fetched.dma_width);
    if (size1.datain_channel != fetched_lanes || size1.datain_channel_real > fetched_lanes)
      return not_modelled("cna.data_size1 has {} of {} channels, cna.fc_data_size1 {}", size1.datain_channel_real,
                          size1.datain_channel, fetched_lanes);
    if (fetched_lanes % static_cast<uint32_t>(chip_.atom_bytes) != 0)
      return not_modelled("cna.data_size1.datain_channel = {}: not a multiple of {}", fetched_lanes, chip_.atom_bytes);
    if (job_.pixel_channels != 0 && fetched_lanes != static_cast<uint32_t>(chip_.atom_bytes))
      return not_modelled("cna.data_size1.datain_channel = {} with packed pixels", fetched_lanes);
    job_.feature_address = static_cast<int64_t>(r_.get<hw::CnaFeatureDataAddr>().feature_base_addr.offset);
    job_.line_stride = r_.get<hw::CnaDmaCon1>().line_stride;
    job_.surface_stride = r_.get<hw::CnaDmaCon2>().surf_stride;
    return {};
  }

  Result<void> converter() {
    const auto con0 = r_.get<hw::CnaCvtCon0>();
    const auto lane0 = r_.get<hw::CnaCvtCon1>();
    const auto lane1 = r_.get<hw::CnaCvtCon2>();
    const auto lane2 = r_.get<hw::CnaCvtCon3>();
    const auto lane3 = r_.get<hw::CnaCvtCon4>();
    const uint32_t enabled = r_.get<hw::CnaCvtCon5>().per_channel_cvt_en;
    job_.converter = {.bypass = con0.cvt_bypass,
                      .add_first = con0.cvt_type == hw::CvtOrder::add_first,
                      .is_signed = con0.data_sign != 0,
                      .tie = con0.round_type == hw::TieUp::half_up ? Tie::up : Tie::even,
                      .lanes = {{lane0.cvt_scale0, lane0.cvt_offset0, con0.cvt_truncate_0},
                                {lane1.cvt_scale1, lane1.cvt_offset1, con0.cvt_truncate_1},
                                {lane2.cvt_scale2, lane2.cvt_offset2, con0.cvt_truncate_2},
                                {lane3.cvt_scale3, lane3.cvt_offset3, con0.cvt_truncate_3}},
                      .enabled_lanes = enabled};
    if (job_.pixel_channels == 0 && !con0.cvt_bypass)
      return not_modelled("cna.cvt_con0.cvt_bypass = false: a converted cube is not modelled");
    if (con0.cvt_bypass && (!job_.converter.is_signed || enabled != 0))
      return not_modelled("cna.cvt_con0: unsigned data or converter lanes, but the converter is bypassed");
    if (enabled >> chip_.atom_bytes != 0)
      return not_modelled("cna.cvt_con5.per_channel_cvt_en = 0x{:x}: an atom has {} lanes", enabled, chip_.atom_bytes);
    return {};
  }

  Result<void> window() {
    const auto con3 = r_.get<hw::CnaConvCon3>();
    const auto kernel = r_.get<hw::CnaWeightSize2>();
    const auto pad = r_.get<hw::CnaPadCon0>();
    const uint32_t pad_value = r_.get<hw::CnaPadCon1>().pad_value;
    job_.stride_x = con3.conv_x_stride;
    job_.stride_y = con3.conv_y_stride;
    job_.dilation_x = con3.atrous_x_dilation + 1;
    job_.dilation_y = con3.atrous_y_dilation + 1;
    job_.kernel_width = kernel.weight_width;
    job_.kernel_height = kernel.weight_height;
    job_.kernels = kernel.weight_kernels;
    job_.pad_left = pad.pad_left;
    job_.pad_top = pad.pad_top;
    job_.pad[0] = static_cast<uint8_t>(pad_value);
    job_.pad[1] = static_cast<uint8_t>(pad_value >> 8);
    if (job_.stride_x == 0 || job_.stride_y == 0) return not_modelled("cna.conv_con3: a stride of 0");
    if (job_.taps() == 0 || job_.kernels == 0)
      return not_modelled("cna.weight_size2: {} kernels of {}x{}", job_.kernels, job_.kernel_height, job_.kernel_width);
    return {};
  }

  Result<void> output() {
    const auto size0 = r_.get<hw::CoreDataoutSize0>();
    job_.out_width = size0.dataout_width;
    job_.out_height = size0.dataout_height;
    job_.out_lanes = r_.get<hw::CoreDataoutSize1>().dataout_channel;
    const uint32_t columns = r_.get<hw::CnaDataSize2>().dataout_width;
    const uint32_t pixels = r_.get<hw::CnaDataSize3>().dataout_atomics;
    if (columns != job_.out_width || pixels != job_.pixels())
      return not_modelled("cna.data_size2/3: {} columns of {} pixels, core.dataout_size_0: {}x{}", columns, pixels,
                          job_.out_height, job_.out_width);
    const int64_t group = job_.depthwise ? chip_.depthwise_group : chip_.kernel_group;
    if (job_.out_lanes % group != 0)
      return stall("core.dataout_size_1.dataout_channel = {}: ends inside a group of {}, the task never ends",
                   job_.out_lanes, group);
    return {};
  }

  Result<void> weights() {
    const uint64_t total = r_.get<hw::CnaWeightSize0>().weight_bytes;
    const uint64_t each = r_.get<hw::CnaWeightSize1>().weight_bytes_per_kernel;
    job_.weight_address = static_cast<int64_t>(r_.get<hw::CnaDcompAddr0>().decompress_addr0.offset);
    job_.weight_bytes = static_cast<int64_t>(total);
    if (job_.weight_address % 16 != 0) return not_modelled("cna.dcomp_addr0 = {:#x}: not aligned", job_.weight_address);
    if (each != static_cast<uint64_t>(job_.taps() * job_.in_lanes))
      return not_modelled("cna.weight_size1: {} bytes per kernel, {}x{}x{} need {}", each, job_.kernel_height,
                          job_.kernel_width, job_.in_lanes, job_.taps() * job_.in_lanes);
    if (total != each * static_cast<uint64_t>(job_.kernels))
      return not_modelled("cna.weight_size0: {} bytes, {} kernels of {} need {}", total, job_.kernels, each,
                          each * static_cast<uint64_t>(job_.kernels));
    if (job_.depthwise ? job_.kernels != 1 : job_.kernels > job_.out_lanes)
      return not_modelled("cna.weight_size2.weight_kernels = {} with {} output channels", job_.kernels, job_.out_lanes);
    const int64_t products = job_.taps() * (job_.depthwise ? 1 : job_.in_lanes);
    if (products >= kSumLimit)
      return not_modelled("{} products in one sum: what happens beyond 32 bits is not known", products);
    return {};
  }

  // Checks that the fetched data fits the banks (hardware specification 5.5, 6.1).
  Result<void> buffer() {
    const auto con0 = r_.get<hw::CnaCbufCon0>();
    const int64_t entries = r_.get<hw::CnaCbufCon1>().data_entries;
    job_.data_banks = con0.data_bank;
    job_.weight_banks = con0.weight_bank;
    job_.weight_reuse = con0.weight_reuse;
    if (con0.data_bank == 0 || con0.weight_bank == 0 ||
        con0.data_bank + con0.weight_bank > static_cast<uint32_t>(chip_.cbuf_banks))
      return not_modelled("cna.cbuf_con0: {} data and {} weight banks of {}", con0.data_bank, con0.weight_bank,
                          chip_.cbuf_banks);
    const int64_t atoms_per_unit = chip_.cbuf_unit_bytes / chip_.atom_bytes;
    const int64_t row_atoms = job_.in_lanes / chip_.atom_bytes * job_.in_width;
    // Packed pixels: atoms of the whole plane, in units of a row.
    const int64_t needed = job_.pixel_channels != 0 ? row_atoms : ceil_div(row_atoms, atoms_per_unit);
    const int64_t used = job_.pixel_channels != 0 ? ceil_div(entries, atoms_per_unit) : entries * job_.in_height;
    if (entries < needed) return not_modelled("cna.cbuf_con1.data_entries = {}: a row needs {}", entries, needed);
    const int64_t room = int64_t{con0.data_bank} * chip_.cbuf_bank_bytes / chip_.cbuf_unit_bytes;
    if (used > room)
      return not_modelled("cna.cbuf_con1.data_entries = {}: {} rows take {} units, {} banks have {}", entries,
                          job_.in_height, used, con0.data_bank, room);
    return rules(used, chip_.cbuf_unit_bytes);
  }

  // Rules that known programs follow; no register shows a breach.
  Result<void> rules(int64_t used, int64_t unit_bytes) const {
    const uint32_t grains = r_.get<hw::CnaConvCon2>().feature_grains;
    const int64_t rows = std::min(job_.in_height, (job_.kernel_height - 1) * job_.dilation_y + 1 - job_.pad_top);
    if (grains < rows)
      SK_TRY(
          broken(options_.feature_grains, "feature_grains",
                 not_modelled("cna.conv_con2.feature_grains = {}: the first output row needs {} rows", grains, rows)));
    const int64_t bank = chip_.cbuf_bank_bytes, last = used * unit_bytes % bank;
    const bool full = last == 0 || last * 100 >= bank * kNearlyFullPercent;
    if (job_.in_width == 1 && job_.pixel_channels == 0 && full && job_.data_banks * bank - used * unit_bytes < bank)
      SK_TRY(broken(options_.spare_bank, "spare_bank",
                    not_modelled("cna.cbuf_con0.data_bank = {}: {} units of one column fill the last one",
                                 job_.data_banks, used)));
    const int64_t kernel = job_.weight_bytes / job_.kernels;
    if (job_.weight_bytes > int64_t{job_.weight_banks} * bank && kernel > bank)
      return broken(options_.streamed_kernel, "streamed_kernel",
                    not_modelled("cna.weight_size1: {} bytes of one kernel, a bank has {}", kernel, bank));
    return {};
  }

  Result<void> core() {
    const auto clip = r_.get<hw::CoreClipTruncate>();
    job_.truncate = clip.clip_truncate;
    job_.truncate_tie = clip.round_type == hw::TieUp::half_up ? Tie::up : Tie::even;
    if (options_.truncate_tie == TruncateTie::half_up) job_.truncate_tie = Tie::up;
    if (options_.truncate_tie == TruncateTie::floor) job_.truncate_tie = Tie::floor;
    return {};
  }

  Registers& r_;
  const hw::ChipRow& chip_;
  const Options& options_;
  ConvJob job_;
};

}  // namespace

Result<void> check_work(const ConvJob& job, const Options& options) {
  const auto macs = static_cast<uint64_t>(job.macs());
  if (macs > options.max_macs_per_task)
    return not_modelled("{} multiplications in one task: the simulator's limit is {}", macs, options.max_macs_per_task);
  const int64_t sizes[] = {job.in_width * job.in_height * job.lane_stride(), job.pixels() * job.out_lanes,
                           job.kernels * job.taps() * job.lane_stride(), job.weight_bytes};
  for (const int64_t size : sizes) {
    if (static_cast<uint64_t>(size) > options.max_elements_per_task)
      return not_modelled("an operand of {} elements: the simulator's limit is {}", size,
                          options.max_elements_per_task);
  }
  return {};
}

double ConvJob::cycles(const hw::ChipRow& chip) const {
  const int64_t groups = depthwise ? ceil_div(out_lanes, int64_t{chip.depthwise_group})
                                   : ceil_div(kernels, int64_t{chip.kernel_group}) * ceil_div(in_lanes, kLanesAtOnce);
  return static_cast<double>(groups) * static_cast<double>(taps()) * static_cast<double>(pixels());
}

Result<ConvJob> read_conv_job(Registers& registers, const hw::ChipRow& chip, const Options& options) {
  SK_TRY_ASSIGN(const ConvJob job, Reader(registers, chip, options).read());
  SK_TRY(check_work(job, options));
  return job;
}

}  // namespace skillet::sim::rockchip
