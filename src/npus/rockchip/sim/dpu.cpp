#include "npus/rockchip/sim/dpu.h"

#include "npus/rockchip/sim/fault.h"

namespace skillet::sim::rockchip {
namespace {

constexpr uint32_t kUseAlu = 1, kUseCorrection = 2, kUseMultiplier = 4;  // brdma_data_use
constexpr uint32_t kShareOperand = 1, kGiveToErdma = 4;                  // comb_use
constexpr int64_t kAtom = 16;
constexpr int64_t kSurfaceMin = 12;  // pixels
constexpr unsigned kShiftMax = 63;

int64_t address_of(bits::Address address) { return static_cast<int64_t>(address.offset); }

class Reader {
 public:
  Reader(Registers& registers, const ConvJob* conv, const Options& options)
      : r_(registers), conv_(conv), options_(options) {}

  Result<DpuJob> read() {
    SK_TRY(source());
    SK_TRY(cube());
    SK_TRY(correction());
    SK_TRY(bs());
    SK_TRY(bn());
    SK_TRY(channel_operands());
    SK_TRY(element_wise());
    SK_TRY(operand_cubes());
    SK_TRY(out_converter());
    SK_TRY(output());
    return job_;
  }

 private:
  Result<void> source() {
    const auto dpu = r_.get<hw::DpuFeatureModeCfg>();
    mode_ = r_.get<hw::DpuRdmaFeatureModeCfg>();
    r_.get<hw::DpuDataFormat>();
    job_.from_memory = dpu.flying_mode == hw::MainSource::memory;
    job_.depthwise = dpu.conv_mode == hw::ConvMode::depthwise;
    if (mode_.flying_mode != dpu.flying_mode || mode_.conv_mode != dpu.conv_mode)
      return not_modelled("dpu.feature_mode_cfg and dpu_rdma.feature_mode_cfg disagree");
    if (job_.from_memory != (conv_ == nullptr))
      return stall("dpu.feature_mode_cfg.flying_mode: {}",
                   job_.from_memory ? "the CORE's data have no taker" : "nothing feeds the DPU");
    if (conv_ != nullptr && conv_->depthwise != job_.depthwise)
      return not_modelled("dpu.feature_mode_cfg.conv_mode and cna.conv_con1.conv_mode disagree");
    return {};
  }

  Result<void> cube() {
    const auto channels = r_.get<hw::DpuDataCubeChannel>();
    const auto size1 = r_.get<hw::DpuWdmaSize1>();
    job_.width = r_.get<hw::DpuDataCubeWidth>().width;
    job_.height = r_.get<hw::DpuDataCubeHeight>().height;
    job_.lanes = channels.channel;
    job_.true_lanes = channels.orig_channel;
    const bool same = size1.width_wdma == job_.width && size1.height_wdma == job_.height &&
                      r_.get<hw::DpuWdmaSize0>().channel_wdma == job_.lanes &&
                      r_.get<hw::DpuRdmaDataCubeWidth>().width == job_.width &&
                      r_.get<hw::DpuRdmaDataCubeHeight>().height == job_.height &&
                      r_.get<hw::DpuRdmaDataCubeChannel>().channel == job_.lanes;
    if (!same) return not_modelled("dpu.data_cube, dpu.wdma_size and dpu_rdma.data_cube disagree");
    if (job_.true_lanes > job_.lanes || job_.lanes % kAtom != 0)
      return not_modelled("dpu.data_cube_channel: {} of {} channels", job_.true_lanes, job_.lanes);
    if (conv_ == nullptr) return alone();
    if (conv_->out_width != job_.width || conv_->out_height != job_.height || conv_->out_lanes != job_.lanes)
      return not_modelled("dpu.data_cube {}x{}x{} and core.dataout_size {}x{}x{} disagree", job_.height, job_.width,
                          job_.lanes, conv_->out_height, conv_->out_width, conv_->out_lanes);
    return {};
  }

  // Element-wise programs are known for flat arrays of one atom per pixel.
  Result<void> alone() const {
    if (job_.lanes != kAtom) return not_modelled("dpu.data_cube_channel = {}: the DPU alone takes 16", job_.lanes);
    if (job_.true_lanes != job_.lanes)
      return not_modelled("dpu.data_cube_channel.orig_channel must equal channel when the DPU runs alone");
    if (static_cast<uint64_t>(job_.pixels()) * kAtom > options_.max_elements_per_task)
      return not_modelled("{} pixels: beyond the simulator's limit", job_.pixels());
    return {};
  }

  Result<void> correction() {
    ow_ = r_.get<hw::DpuBsOwCfg>();
    job_.correct = !ow_.od_bypass;
    job_.correction_from_memory = ow_.ow_src == hw::Operand::from_memory;
    job_.correction = r_.get<hw::DpuBsOwOp>().ow_op;
    if (job_.correct == job_.from_memory)
      return not_modelled(
          "dpu.bs_ow_cfg.od_bypass = {}: int8 output of a convolution needs the correction, nothing else",
          ow_.od_bypass);
    return {};
  }

  static Result<void> relu(std::string_view name, bool bypass, bool relux, int32_t cmp, bool& on,
                           std::optional<int32_t>& clamp) {
    if (relux && bypass) return not_modelled("{}: an upper clamp without ReLU", name);
    on = !bypass;
    if (relux) clamp = cmp;
    return {};
  }

  static Result<void> alu(std::string_view name, hw::StageAlu algo, Stage& stage) {
    if (algo != hw::StageAlu::add && algo != hw::StageAlu::subtract)
      return not_modelled("{}: ALU function {}", name, static_cast<int>(algo));
    stage.alu = true;
    stage.subtract = algo == hw::StageAlu::subtract;
    return {};
  }

  Result<void> bs() {
    const auto cfg = r_.get<hw::DpuBsCfg>();
    const auto mul = r_.get<hw::DpuBsMulCfg>();
    const int32_t operand = r_.get<hw::DpuBsAluCfg>().bs_alu_operand;
    const int32_t cmp = r_.get<hw::DpuBsReluxCmpValue>().bs_relux_cmp_dat;
    if (cfg.bs_bypass) return {};
    job_.bs = {.alu_from_memory = cfg.bs_alu_src == hw::Operand::from_memory,
               .alu_operand = operand,
               .multiply = !cfg.bs_mul_bypass,
               .prelu = cfg.bs_mul_prelu,
               .multiplier_from_memory = mul.bs_mul_src == hw::Operand::from_memory,
               .multiplier = mul.bs_mul_operand,
               .shift = mul.bs_mul_shift_value,
               .shift_negative = r_.get<hw::DpuDataFormat>().bs_mul_shift_value_neg};
    if (!cfg.bs_alu_bypass) SK_TRY(alu("dpu.bs_cfg", cfg.bs_alu_algo, job_.bs));
    return relu("dpu.bs_cfg", cfg.bs_relu_bypass, cfg.bs_relux_en, cmp, job_.bs.relu, job_.bs.clamp);
  }

  Result<void> bn() {
    const auto cfg = r_.get<hw::DpuBnCfg>();
    const auto mul = r_.get<hw::DpuBnMulCfg>();
    const int32_t operand = r_.get<hw::DpuBnAluCfg>().bn_alu_operand;
    const int32_t cmp = r_.get<hw::DpuBnReluxCmpValue>().bn_relux_cmp_dat;
    const uint32_t use = r_.get<hw::DpuRdmaNrdmaCfg>().nrdma_data_use;
    if (use & kUseMultiplier) return stall("dpu_rdma.nrdma_cfg.nrdma_data_use = {}: the BN stage hangs", use);
    if (use != 0) return not_modelled("dpu_rdma.nrdma_cfg.nrdma_data_use = {}: layout not specified", use);
    if (cfg.bn_bypass) return {};
    job_.bn = {.alu_operand = operand,
               .multiply = !cfg.bn_mul_bypass,
               .prelu = cfg.bn_mul_prelu,
               .multiplier = mul.bn_mul_operand,
               .shift = mul.bn_mul_shift_value,
               .shift_negative = r_.get<hw::DpuDataFormat>().bn_mul_shift_value_neg};
    if (!cfg.bn_alu_bypass) SK_TRY(alu("dpu.bn_cfg", cfg.bn_alu_algo, job_.bn));
    const bool from_memory = (job_.bn.alu && cfg.bn_alu_src == hw::Operand::from_memory) ||
                             (job_.bn.multiply && mul.bn_mul_src == hw::Operand::from_memory);
    if (from_memory) return stall("dpu.bn_cfg: an operand from memory, but NRDMA reads none");
    return relu("dpu.bn_cfg", cfg.bn_relu_bypass, cfg.bn_relux_en, cmp, job_.bn.relu, job_.bn.clamp);
  }

  Result<void> channel_operands() {
    const auto cfg = r_.get<hw::DpuRdmaBrdmaCfg>();
    job_.channel_operands = cfg.brdma_disable ? 0 : cfg.brdma_data_use;
    job_.channel_address = address_of(r_.get<hw::DpuRdmaBsBaseAddr>().bs_base_addr);
    const uint32_t all = kUseAlu | kUseCorrection | kUseMultiplier;
    if (job_.channel_operands != 0 && job_.channel_operands != kUseAlu && job_.channel_operands != all)
      return not_modelled("dpu_rdma.brdma_cfg.brdma_data_use = {}: layout not specified", job_.channel_operands);
    uint32_t wanted = 0;
    if (job_.bs.alu && job_.bs.alu_from_memory) wanted |= kUseAlu;
    if (job_.correct && job_.correction_from_memory) wanted |= kUseCorrection;
    if (job_.bs.multiply && job_.bs.multiplier_from_memory) wanted |= kUseMultiplier;
    if ((wanted & ~job_.channel_operands) != 0)
      return stall("dpu.bs_cfg: waits for operands that dpu_rdma.brdma_cfg.brdma_data_use = {} does not bring",
                   job_.channel_operands);
    if (job_.channel_operands != 0 && job_.channel_address % 16 != 0)
      return not_modelled("dpu_rdma.bs_base_addr = {:#x}: not aligned", job_.channel_address);
    return {};
  }

  Result<EwOp> ew_op(const hw::DpuEwCfg& cfg) const {
    if (cfg.ew_op_type == hw::EwOperator::multiply) return EwOp::multiply;
    const bool order = cfg.ew_alu_algo == hw::EwAlu::max || cfg.ew_alu_algo == hw::EwAlu::min;
    if (cfg.ew_equal_en != order)
      return not_modelled("dpu.ew_cfg.ew_equal_en = {}: maximum and minimum set it, nothing else", cfg.ew_equal_en);
    switch (cfg.ew_alu_algo) {
      case hw::EwAlu::max: return EwOp::max;
      case hw::EwAlu::min: return EwOp::min;
      case hw::EwAlu::add: return EwOp::add;
      case hw::EwAlu::minus: return EwOp::minus;
      default: return not_modelled("dpu.ew_cfg.ew_alu_algo = {}", static_cast<int>(cfg.ew_alu_algo));
    }
  }

  Result<void> element_wise() {
    const auto cfg = r_.get<hw::DpuEwCfg>();
    const auto scale = r_.get<hw::DpuEwCvtScaleValue>();
    const int32_t offset = r_.get<hw::DpuEwCvtOffsetValue>().ew_op_cvt_offset;
    const int32_t cmp = r_.get<hw::DpuEwReluxCmpValue>().ew_relux_cmp_dat;
    const bool looks_up = !cfg.ew_bypass && !cfg.ew_lut_bypass;
    SK_TRY_ASSIGN(job_.lookup, read_lookup(r_, looks_up));
    if (cfg.ew_bypass) return {};
    if (looks_up) {
      if (!cfg.ew_op_bypass || !cfg.ew_relu_bypass)
        return not_modelled("dpu.ew_cfg.ew_lut_bypass = false: only a look-up without operator and ReLU is modelled");
      return {};
    }
    if (cfg.ew_op_bypass) return not_modelled("dpu.ew_cfg.ew_op_bypass = true, but the stage is active");
    if (cfg.ew_op_src != hw::Operand::from_memory)
      return not_modelled("dpu.ew_cfg.ew_op_src: operands from registers are not modelled");
    if (cfg.ew_data_mode != hw::Granularity::per_pixel || cfg.edata_size != hw::Width::bits_8)
      return not_modelled("dpu.ew_cfg: only 8-bit operands per pixel are modelled");
    job_.ew = {.convert = !cfg.ew_op_cvt_bypass,
               .add_first = cfg.ew_cvt_type == hw::CvtOrder::add_first,
               .offset = offset,
               .scale = scale.ew_op_cvt_scale,
               .shift = scale.ew_op_cvt_shift,
               .tie = cfg.ew_cvt_round == hw::TieAway::half_away ? Tie::away : Tie::even};
    SK_TRY_ASSIGN(job_.ew.op, ew_op(cfg));
    return relu("dpu.ew_cfg", cfg.ew_relu_bypass, cfg.ew_relux_en, cmp, job_.ew.relu, job_.ew.clamp);
  }

  // Which unit reads which operand (hardware specification 4.5, A.2).
  Result<void> operand_cubes() {
    const auto erdma = r_.get<hw::DpuRdmaErdmaCfg>();
    job_.main = {address_of(r_.get<hw::DpuRdmaSrcBaseAddr>().src_base_addr),
                 r_.get<hw::DpuRdmaSurfNotch>().surf_notch_addr / kAtom};
    job_.second = {address_of(r_.get<hw::DpuRdmaEwBaseAddr>().ew_base_addr),
                   r_.get<hw::DpuRdmaEwSurfNotch>().ew_surf_notch / kAtom};
    job_.shared = (mode_.comb_use & kShareOperand) != 0;
    const bool element_wise = job_.ew.op != EwOp::none;
    if (element_wise == erdma.erdma_disable)
      return element_wise ? stall("dpu.ew_cfg waits for an operand, but dpu_rdma.erdma_cfg.erdma_disable is set")
                          : not_modelled("dpu_rdma.erdma_cfg.erdma_disable = false, but dpu.ew_cfg takes no operand");
    if (element_wise &&
        (erdma.erdma_data_mode != hw::Granularity::per_pixel || erdma.erdma_data_size != hw::Width::bits_8))
      return not_modelled("dpu_rdma.erdma_cfg: only 8-bit operands per pixel are modelled");
    if (job_.from_memory) return main_operand();
    if (element_wise) SK_TRY(shared_surfaces());
    if (!element_wise && !mode_.mrdma_disable)
      return stall("dpu_rdma.feature_mode_cfg.mrdma_disable = false, but nothing takes its data: the task never ends");
    if (element_wise && (mode_.mrdma_disable || mode_.comb_use != (kShareOperand | kGiveToErdma)))
      return not_modelled("dpu_rdma.feature_mode_cfg.comb_use = {} with a convolution: only 5 is modelled",
                          mode_.comb_use);
    return {};
  }

  // All known programs have at least 12 pixels. Whether fewer work is not known.
  Result<void> shared_surfaces() {
    const uint32_t stride = r_.get<hw::DpuRdmaEwSurfStride>().ew_surf_stride;
    const int64_t least = std::min({int64_t{stride} / kAtom, job_.main.notch_atoms, job_.second.notch_atoms});
    if (least >= kSurfaceMin) return {};
    return broken(options_.operand_surfaces, "operand_surfaces",
                  not_modelled("dpu_rdma.ew_surf_stride and notches: surfaces of {} pixels", least));
  }

  Result<void> main_operand() const {
    if (mode_.mrdma_disable) return stall("dpu_rdma.feature_mode_cfg.mrdma_disable = true: nothing feeds the DPU");
    if (job_.shared)
      return stall("dpu_rdma.feature_mode_cfg.comb_use = {}: never ends without a convolution", mode_.comb_use);
    if (mode_.comb_use != 0 && mode_.comb_use != kGiveToErdma)
      return not_modelled("dpu_rdma.feature_mode_cfg.comb_use = {}", mode_.comb_use);
    return {};
  }

  Result<void> out_converter() {
    const auto shift = r_.get<hw::DpuOutCvtShift>();
    job_.out_offset = r_.get<hw::DpuOutCvtOffset>().out_cvt_offset;
    job_.out_scale = r_.get<hw::DpuOutCvtScale>().out_cvt_scale;
    job_.out_shift = shift.out_cvt_shift;
    job_.out_tie = shift.cvt_round == hw::TieAway::half_away ? Tie::away : Tie::even;
    if (job_.out_shift > kShiftMax)
      return not_modelled("dpu.out_cvt_shift = {}: only six bits are known to work", job_.out_shift);
    return {};
  }

  Result<void> output() {
    const auto notch = r_.get<hw::DpuDataCubeNotchAddr>();
    job_.address = address_of(r_.get<hw::DpuDstBaseAddr>().dst_base_addr);
    job_.surface_bytes = r_.get<hw::DpuDstSurfStride>().dst_surf_stride;
    job_.group_bytes = r_.get<hw::DpuSurfaceAdd>().surf_add;
    job_.surfaces_per_group = ow_.size_e_0 + 1;
    job_.notch_pixels = notch.notch_addr_0;
    if (notch.notch_addr_0 != notch.notch_addr_1)
      return not_modelled("dpu.data_cube_notch_addr: halves {} and {}", notch.notch_addr_0, notch.notch_addr_1);
    if (ow_.size_e_0 != ow_.size_e_1 || ow_.size_e_0 != ow_.size_e_2)
      return not_modelled("dpu.bs_ow_cfg: size_e {}, {} and {} differ", ow_.size_e_0, ow_.size_e_1, ow_.size_e_2);
    // Channels of a kernel group * bytes of an element / 16.
    const int64_t surfaces = job_.from_memory ? 1 : job_.depthwise ? 4 : 2;
    if (job_.surfaces_per_group != surfaces)
      return not_modelled("dpu.bs_ow_cfg.size_e_0 = {}: a kernel group has {} surfaces", ow_.size_e_0, surfaces);
    if (job_.address % kAtom != 0) return not_modelled("dpu.dst_base_addr = {:#x}: not aligned", job_.address);
    return {};
  }

  Registers& r_;
  const ConvJob* conv_;
  const Options& options_;
  DpuJob job_;
  hw::DpuRdmaFeatureModeCfg mode_;
  hw::DpuBsOwCfg ow_;
};

}  // namespace

Result<DpuJob> read_dpu_job(Registers& registers, const ConvJob* conv, const Options& options) {
  return Reader(registers, conv, options).read();
}

}  // namespace skillet::sim::rockchip
