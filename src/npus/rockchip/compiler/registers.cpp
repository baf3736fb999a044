#include "npus/rockchip/compiler/registers.h"

#include <algorithm>

#include "base/int_math.h"
#include "npus/rockchip/compiler/packing.h"

namespace skillet::npus::rockchip {
namespace {

constexpr uint32_t kGrainsMax = 1023, kUsualGrains = 51;
constexpr uint32_t kSharedOperand = 5;        // comb_use: both readers share the addition's operand
constexpr uint32_t kUseAlu = 1, kUseAll = 7;  // brdma_data_use
constexpr uint32_t kAllLanes = 0xFFFF;

class Writer {
 public:
  Writer(const Conv& conv, const Geometry& g, const Task& task, const TaskPlaces& places, const Tuning& tuning)
      : c_(conv), g_(g), t_(task), at_(places), tuning_(tuning) {
    in_lanes_ = u(conv.depthwise ? read_lanes(g, task.first_lane, task.lanes) : g.in_lanes);
    kernels_ = u(conv.depthwise ? 1 : std::min(task.lanes, g.kernels - task.first_lane));
    kernel_bytes_ = u(c_.taps()) * in_lanes_;
    true_lanes_ = u(std::min(task.lanes, conv.out.channels - task.first_lane));
    packed_mode_ = c_.packed;
  }

  Result<Commands> run(const NextTask* next, bool chained) {
    fetch();
    input();
    converter();
    features();
    weights();
    core();
    output();
    stages();
    element_wise();
    converters_and_tables();
    operand_readers();
    trailer(next, chained);
    return list_.take();
  }

 private:
  template <typename T>
  void put(const T& fields) {
    list_.put(fields);
  }

  hw::CnaConvCon1 conv_con1() const {
    return {.conv_mode = mode(),
            .argb_in = packed_mode_ ? pixels_of(c_.in.channels) : hw::PixelFormat::cube,
            .group_line_off = packed_mode_ || c_.repeated,
            .nonalign_dma = packed_mode_};
  }
  static hw::PixelFormat pixels_of(int32_t channels) {
    return static_cast<hw::PixelFormat>(static_cast<int>(hw::PixelFormat::pixels_1) + channels - 1);
  }
  hw::CnaCbufCon0 cbuf_con0() const {
    return {.data_bank = u(t_.data_banks), .weight_bank = u(t_.weight_banks), .weight_reuse = t_.reuse_weights};
  }
  hw::ConvMode mode() const { return c_.depthwise ? hw::ConvMode::depthwise : hw::ConvMode::direct; }

  // Rows to buffer before the first output row can begin; any larger number works too.
  uint32_t grains() const {
    return std::min(std::max(kUsualGrains, tuning_.more_operations ? u(c_.extent_y()) : 0) + u(c_.stride_y),
                    kGrainsMax);
  }

  void fetch() {
    put(cbuf_con0());
    put(hw::CnaDcompRegnum{});
    put(hw::CnaDcompCtrl{});
    put(conv_con1());
    put(hw::DpuSPointer{.pointer_pp_en = true, .executer_pp_en = true, .pointer_pp_mode = 1});
    put(hw::DpuRdmaSPointer{.pointer_pp_en = true, .executer_pp_en = true, .pointer_pp_mode = 1});
    put(conv_con1());
    put(hw::CnaConvCon2{.feature_grains = grains()});
    put(hw::CnaConvCon3{.conv_x_stride = u(c_.stride_x),
                        .conv_y_stride = u(c_.stride_y),
                        .atrous_x_dilation = u(c_.dilation_x - 1),
                        .atrous_y_dilation = u(c_.dilation_y - 1)});
  }

  void input() {
    put(hw::CnaDataSize0{.datain_height = u(t_.rows), .datain_width = u(g_.row_width)});
    put(hw::CnaDataSize1{.datain_channel = in_lanes_, .datain_channel_real = true_in_lanes()});
    put(hw::CnaDataSize2{.dataout_width = u(c_.out.width)});
    put(hw::CnaDataSize3{.dataout_atomics = u(int64_t{c_.out.width} * t_.out_rows)});
    put(hw::CnaWeightSize0{.weight_bytes = kernel_bytes_ * kernels_});
    put(hw::CnaWeightSize1{.weight_bytes_per_kernel = kernel_bytes_});
    put(hw::CnaWeightSize2{
        .weight_kernels = kernels_, .weight_height = u(c_.kernel_height), .weight_width = u(c_.kernel_width)});
    put(cbuf_con0());
    put(hw::CnaCbufCon1{.data_entries = entries()});
  }
  uint32_t true_in_lanes() const {
    return c_.depthwise ? u(std::min(t_.lanes, c_.in.channels - t_.first_lane)) : u(c_.in.channels);
  }
  // Entries of a task: its channels if it has a part of them; all that it reads of packed rows.
  uint32_t entries() const {
    if (c_.depthwise && t_.lanes < g_.out_lanes)
      return u(entries_of(static_cast<int32_t>(in_lanes_) / kAtom, c_.in.width));
    if (g_.packed && tuning_.counted_banks) return u(int64_t{g_.row_width} * t_.rows);
    return u(g_.row_entries);
  }

  // Converts packed bytes to signed ones; surfaces already have the MACs' format.
  void converter() {
    constexpr int32_t kSigned = -128, kOne = 1 << 14, kRecordedForAdditions = 32388;
    const bool doubled = c_.in_addition && !tuning_.packed_rows;
    const uint32_t shift = packed_mode_ ? (doubled ? 15 : 14) : 0;
    const int32_t offset = packed_mode_ ? kSigned : 0;
    const int32_t scale = !packed_mode_ ? 1 : doubled ? kRecordedForAdditions : kOne;
    put(hw::CnaCvtCon0{.cvt_bypass = !packed_mode_,
                       .cvt_type = packed_mode_ ? hw::CvtOrder::multiply_first : hw::CvtOrder::add_first,
                       .data_sign = packed_mode_ ? 0U : 1U,
                       .cvt_truncate_0 = shift,
                       .cvt_truncate_1 = shift,
                       .cvt_truncate_2 = shift,
                       .cvt_truncate_3 = shift});
    put(hw::CnaCvtCon1{.cvt_offset0 = offset, .cvt_scale0 = scale});
    put(hw::CnaCvtCon2{.cvt_offset1 = offset, .cvt_scale1 = scale});
    put(hw::CnaCvtCon3{.cvt_offset2 = offset, .cvt_scale2 = scale});
    put(hw::CnaCvtCon4{.cvt_offset3 = offset, .cvt_scale3 = scale});
  }

  void features() {
    put(hw::CnaFcCon0{});
    put(hw::CnaFcCon1{});
    put(hw::CnaPadCon0{.pad_top = u(t_.pad_top), .pad_left = u(c_.pad_left)});
    put(hw::CnaFeatureDataAddr{.feature_base_addr = at_.input});
    put(hw::CnaFcCon2{});
    put(hw::CnaDmaCon0{.data_burst_len = hw::Burst::beats_16, .weight_burst_len = hw::Burst::beats_16});
    put(hw::CnaDmaCon1{.line_stride = u(g_.line_stride)});
    put(hw::CnaDmaCon2{.surf_stride = g_.surface_stride});
    put(hw::CnaFcDataSize0{.dma_height = u(t_.rows), .dma_width = u(c_.in.width)});
    put(hw::CnaFcDataSize1{.dma_channel = in_lanes_});
  }

  void weights() {
    put(hw::CnaDcompCtrl{});
    put(hw::CnaDcompRegnum{});
    put(hw::CnaDcompAddr0{.decompress_addr0 = {at_.weights}});
    list_.zeros<hw::CnaDcompAmount0, hw::CnaDcompAmount1, hw::CnaDcompAmount2, hw::CnaDcompAmount3, hw::CnaDcompAmount4,
                hw::CnaDcompAmount5, hw::CnaDcompAmount6, hw::CnaDcompAmount7, hw::CnaDcompAmount8, hw::CnaDcompAmount9,
                hw::CnaDcompAmount10, hw::CnaDcompAmount11, hw::CnaDcompAmount12, hw::CnaDcompAmount13,
                hw::CnaDcompAmount14, hw::CnaDcompAmount15>();
    put(hw::CnaCvtCon5{.per_channel_cvt_en = packed_mode_ ? kAllLanes : 0});
    put(hw::CnaPadCon1{.pad_value = c_.pad_value});
  }

  void core() {
    put(hw::CoreMiscCfg{.qd_en = true, .dw_en = c_.depthwise});
    put(hw::CoreDataoutSize0{.dataout_width = u(c_.out.width), .dataout_height = u(t_.out_rows)});
    put(hw::CoreDataoutSize1{.dataout_channel = u(t_.lanes)});
    put(hw::CoreClipTruncate{.clip_truncate = c_.truncate});
    put(hw::CoreUndocumented3030{});
  }

  void output() {
    const uint32_t surface = u(g_.out_surface * kAtom), shift = u(c_.multiplier_shift);
    put(hw::DpuFeatureModeCfg{
        .output_mode = hw::OutputMode::memory, .conv_mode = mode(), .burst_len = hw::Burst::beats_16});
    put(hw::DpuDataFormat{.bs_mul_shift_value_neg = shift});
    put(hw::DpuOffsetPend{});
    put(hw::DpuDstBaseAddr{.dst_base_addr = at_.output});
    put(hw::DpuDstSurfStride{.dst_surf_stride = surface});
    put(hw::DpuDataCubeWidth{.width = u(c_.out.width)});
    put(hw::DpuDataCubeHeight{.height = u(t_.out_rows)});
    put(hw::DpuDataCubeNotchAddr{.notch_addr_0 = u(c_.gap), .notch_addr_1 = u(c_.gap)});
    put(hw::DpuDataCubeChannel{.channel = u(t_.lanes), .orig_channel = true_lanes_});
  }

  void stages() {
    const bool multiplied = !c_.multipliers.empty();
    const uint32_t more_surfaces = c_.depthwise ? 3 : 1;
    put(hw::DpuBsCfg{.bs_mul_bypass = !multiplied,
                     .bs_relu_bypass = true,
                     .bs_alu_src = hw::Operand::from_memory,
                     .bs_alu_algo = hw::StageAlu::add});
    put(hw::DpuBsAluCfg{});
    put(hw::DpuBsMulCfg{.bs_mul_src = multiplied ? hw::Operand::from_memory : hw::Operand::from_register,
                        .bs_mul_shift_value = u(c_.multiplier_shift)});
    put(hw::DpuBsReluxCmpValue{});
    put(hw::DpuBsOwCfg{.size_e_0 = more_surfaces, .size_e_1 = more_surfaces, .size_e_2 = more_surfaces});
    put(hw::DpuBsOwOp{.ow_op = 128 - c_.weight_zero});
    put(hw::DpuWdmaSize0{.channel_wdma = u(t_.lanes)});
    put(hw::DpuWdmaSize1{.width_wdma = u(c_.out.width), .height_wdma = u(t_.out_rows)});
    limits();
  }

  void limits() {
    const bool rounded = c_.rounded.has_value(), on = rounded || c_.clamp.on;
    const Rounded r = c_.rounded.value_or(Rounded{.limit = c_.clamp.limit.value_or(0)});
    put(hw::DpuBnCfg{.bn_bypass = !on,
                     .bn_alu_bypass = !rounded,
                     .bn_mul_bypass = !rounded,
                     .bn_relu_bypass = !on,
                     .bn_relux_en = rounded || c_.clamp.limit.has_value(),
                     .bn_alu_algo = rounded ? hw::StageAlu::add : hw::StageAlu{}});
    put(hw::DpuBnAluCfg{.bn_alu_operand = r.offset});
    put(hw::DpuBnMulCfg{.bn_mul_operand = static_cast<int16_t>(r.factor)});
    put(hw::DpuBnReluxCmpValue{.bn_relux_cmp_dat = r.limit});
  }

  void element_wise() {
    if (!c_.addition) {
      put(hw::DpuEwCfg{.ew_bypass = true,
                       .ew_op_bypass = true,
                       .ew_lut_bypass = true,
                       .ew_op_cvt_bypass = true,
                       .ew_relu_bypass = true});
      put(hw::DpuEwCvtOffsetValue{});
      put(hw::DpuEwCvtScaleValue{.ew_op_cvt_scale = 1});
      put(hw::DpuEwReluxCmpValue{});
      return;
    }
    const Addition& a = *c_.addition;
    put(hw::DpuEwCfg{.ew_op_type = a.multiplies ? hw::EwOperator::multiply : hw::EwOperator::alu,
                     .ew_op_src = hw::Operand::from_memory,
                     .ew_lut_bypass = true,
                     .ew_relu_bypass = !a.clamp.on,
                     .ew_relux_en = a.clamp.limit.has_value(),
                     .ew_alu_algo = a.multiplies ? hw::EwAlu::max : hw::EwAlu::add,  // the multiplier has algorithm 0
                     .edata_size = hw::Width::bits_8,
                     .ew_data_mode = hw::Granularity::per_pixel,
                     .ew_cvt_type = hw::CvtOrder::add_first});
    put(hw::DpuEwCvtOffsetValue{.ew_op_cvt_offset = a.offset});
    put(hw::DpuEwCvtScaleValue{.ew_op_cvt_scale = a.gain.scale, .ew_op_cvt_shift = u(a.gain.shift)});
    put(hw::DpuEwReluxCmpValue{.ew_relux_cmp_dat = a.clamp.limit.value_or(0)});
  }

  void converters_and_tables() {
    put(hw::DpuOutCvtOffset{.out_cvt_offset = c_.out_offset});
    put(hw::DpuOutCvtScale{.out_cvt_scale = static_cast<int16_t>(c_.out_gain.scale)});
    put(hw::DpuOutCvtShift{.out_cvt_shift = u(c_.out_gain.shift)});
    list_.zeros<hw::DpuEwOpValue0, hw::DpuEwOpValue1, hw::DpuEwOpValue2, hw::DpuEwOpValue3, hw::DpuEwOpValue4,
                hw::DpuEwOpValue5, hw::DpuEwOpValue6, hw::DpuEwOpValue7>();
    put(hw::DpuSurfaceAdd{.surf_add = u(g_.out_surface * kAtom) * (c_.depthwise ? 4 : 2)});
    put(hw::DpuUndocumented40C4{});
    list_.zeros<hw::DpuLutAccessCfg, hw::DpuLutAccessData, hw::DpuLutCfg, hw::DpuLutInfo, hw::DpuLutLeStart,
                hw::DpuLutLeEnd, hw::DpuLutLoStart, hw::DpuLutLoEnd, hw::DpuLutLeSlopeScale, hw::DpuLutLeSlopeShift,
                hw::DpuLutLoSlopeScale, hw::DpuLutLoSlopeShift>();
  }

  // An addition's operand is read by both readers: even surfaces by one, odd ones by the other (section 4.5).
  void operand_readers() {
    const bool adds = c_.addition.has_value();
    const int64_t surface = std::max(g_.out_surface, kSurfaceMin);
    int64_t notch = surface + int64_t{c_.out.width} * (c_.out.height - t_.out_rows);
    if (!tuning_.true_width && c_.in.width == 3) notch = 15;
    const uint32_t skipped = adds ? u(notch * kAtom) : 0;
    bits::Address odd = at_.second;
    odd.offset += adds ? static_cast<uint64_t>(g_.out_surface * kAtom) : 0;
    put(hw::DpuRdmaDataCubeWidth{.width = u(c_.out.width)});
    put(hw::DpuRdmaDataCubeHeight{.height = u(t_.out_rows)});
    put(hw::DpuRdmaDataCubeChannel{.channel = u(t_.lanes)});
    put(hw::DpuRdmaSrcBaseAddr{.src_base_addr = at_.second});
    put(hw::DpuRdmaBrdmaCfg{.brdma_data_use = c_.multipliers.empty() ? kUseAlu : kUseAll});
    put(hw::DpuRdmaBsBaseAddr{.bs_base_addr = {at_.operands}});
    put(hw::DpuRdmaNrdmaCfg{});
    put(hw::DpuRdmaBnBaseAddr{.bn_base_addr = {bits::Address{}}});
    put(hw::DpuRdmaErdmaCfg{.erdma_disable = !adds,
                            .erdma_data_size = adds ? hw::Width::bits_8 : hw::Width::bits_4,
                            .erdma_data_mode = adds ? hw::Granularity::per_pixel : hw::Granularity::per_channel});
    put(hw::DpuRdmaEwBaseAddr{.ew_base_addr = odd});
    put(hw::DpuRdmaEwSurfStride{.ew_surf_stride = adds ? u(surface * kAtom) : 0});
    put(hw::DpuRdmaFeatureModeCfg{.conv_mode = mode(),
                                  .mrdma_disable = !adds,
                                  .comb_use = adds ? kSharedOperand : 0,
                                  .burst_len = hw::Burst::beats_16});
    put(hw::DpuRdmaSrcDmaCfg{});
    put(hw::DpuRdmaSurfNotch{.surf_notch_addr = skipped});
    put(hw::DpuRdmaPadCfg{});
    put(hw::DpuRdmaWeight{.m_weight = 1, .b_weight = 1, .n_weight = 1, .e_weight = 1});
    put(hw::DpuRdmaEwSurfNotch{.ew_surf_notch = skipped});
  }

  // The kernel starts tasks one by one: with an address of a next task in a list, nothing may follow it. Without the
  // address the number of commands is left out too, as in all recorded lists.
  void trailer(const NextTask* next, bool chained) {
    if (chained)
      put(hw::PcBaseAddress{.pc_source_addr = {next != nullptr ? next->commands : bits::Address{}}});
    else
      list_.command(hw::Target::none, 0, 0);
    const uint32_t fetches = next == nullptr || !chained ? 0 : align_up((next->count - kTrailer) / 2, 2U);
    put(hw::PcRegisterAmounts{.pc_data_amount = fetches});
    list_.start({.cna = true, .core = true, .dpu = true, .dpu_rdma = true});
  }

  static constexpr uint32_t kTrailer = 4;

  const Conv& c_;
  const Geometry& g_;
  const Task& t_;
  const TaskPlaces& at_;
  const Tuning& tuning_;
  uint32_t in_lanes_ = 0, kernels_ = 0, kernel_bytes_ = 0, true_lanes_ = 0;
  bool packed_mode_ = false;
  CommandList list_;
};

}  // namespace

Result<Commands> write_commands(const Conv& conv, const Geometry& g, const Task& task, const TaskPlaces& places,
                                const Tuning& tuning, const NextTask* next, bool chained) {
  if (tuning.packing != nullptr) return tuning.packing->write_commands(conv, g, task, places, tuning, next, chained);
  return Writer(conv, g, task, places, tuning).run(next, chained);
}

}  // namespace skillet::npus::rockchip
