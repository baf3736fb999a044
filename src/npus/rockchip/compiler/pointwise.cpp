#include "npus/rockchip/compiler/pointwise.h"

#include <algorithm>

namespace skillet::npus::rockchip {
namespace {

constexpr uint32_t kLanes = 16;

// A table has 513 entries a step apart, for a range of 512 steps that ends at 0. The offset moves all bytes into that
// range, and none near its end, where the second table begins.
constexpr int32_t kTableSteps = 512, kTableOffset = -256;
constexpr uint32_t kOtherTable = 1;
constexpr uint32_t kTableMux = 2;

class Writer {
 public:
  Writer(const Pointwise& work, const PointwisePlaces& at, int64_t atoms)
      : work_(work), at_(at), width_(u(atoms)), bytes_(u(atoms * kLanes)) {}

  Result<Commands> run(bool load) {
    cube();
    stages();
    element_wise();
    table(load);
    readers();
    list_.command(hw::Target::none, 0, 0);
    list_.put(hw::PcRegisterAmounts{});
    list_.start({.dpu = true, .dpu_rdma = true});
    return list_.take();
  }

 private:
  bool looks_up() const { return work_.table != nullptr; }

  void cube() {
    list_.put(hw::DpuSPointer{.pointer_pp_en = true, .executer_pp_en = true, .pointer_pp_mode = 1});
    list_.put(hw::DpuRdmaSPointer{.pointer_pp_en = true, .executer_pp_en = true, .pointer_pp_mode = 1});
    list_.put(hw::DpuFeatureModeCfg{.flying_mode = hw::MainSource::memory,
                                    .output_mode = hw::OutputMode::memory,
                                    .burst_len = hw::Burst::beats_16});
    list_.put(hw::DpuDataFormat{});
    list_.put(hw::DpuOffsetPend{});
    list_.put(hw::DpuDstBaseAddr{.dst_base_addr = at_.output});
    list_.put(hw::DpuDstSurfStride{.dst_surf_stride = bytes_});
    list_.put(hw::DpuDataCubeWidth{.width = width_});
    list_.put(hw::DpuDataCubeHeight{.height = 1});
    list_.put(hw::DpuDataCubeNotchAddr{});
    list_.put(hw::DpuDataCubeChannel{.channel = kLanes, .orig_channel = kLanes});
    list_.put(hw::DpuWdmaSize0{.channel_wdma = kLanes});
    list_.put(hw::DpuWdmaSize1{.width_wdma = width_, .height_wdma = 1});
    list_.put(hw::DpuSurfaceAdd{.surf_add = bytes_});
    list_.put(hw::DpuUndocumented40C4{});
  }

  void stages() {
    list_.put(hw::DpuBsCfg{.bs_bypass = true, .bs_alu_bypass = true, .bs_mul_bypass = true, .bs_relu_bypass = true});
    list_.zeros<hw::DpuBsAluCfg, hw::DpuBsMulCfg, hw::DpuBsReluxCmpValue, hw::DpuBsOwOp>();
    list_.put(hw::DpuBsOwCfg{.od_bypass = true});
    list_.put(hw::DpuBnCfg{.bn_bypass = !looks_up(),
                           .bn_alu_bypass = !looks_up(),
                           .bn_mul_bypass = true,
                           .bn_relu_bypass = true,
                           .bn_alu_algo = looks_up() ? hw::StageAlu::add : hw::StageAlu{}});
    list_.put(hw::DpuBnAluCfg{.bn_alu_operand = looks_up() ? kTableOffset : 0});
    list_.zeros<hw::DpuBnMulCfg, hw::DpuBnReluxCmpValue>();
  }

  void element_wise() {
    if (looks_up())
      list_.put(hw::DpuEwCfg{.ew_op_bypass = true, .ew_op_cvt_bypass = true, .ew_relu_bypass = true});
    else
      list_.put(hw::DpuEwCfg{.ew_op_src = hw::Operand::from_memory,
                             .ew_lut_bypass = true,
                             .ew_relu_bypass = true,
                             .ew_alu_algo = work_.smaller ? hw::EwAlu::min : hw::EwAlu::max,
                             .ew_equal_en = true,
                             .edata_size = hw::Width::bits_8,
                             .ew_data_mode = hw::Granularity::per_pixel});
    list_.put(hw::DpuEwCvtOffsetValue{});
    list_.put(hw::DpuEwCvtScaleValue{.ew_op_cvt_scale = 1});
    list_.put(hw::DpuEwReluxCmpValue{});
    list_.put(hw::DpuOutCvtOffset{});
    list_.put(hw::DpuOutCvtScale{.out_cvt_scale = 1});
    list_.put(hw::DpuOutCvtShift{});
    list_.zeros<hw::DpuEwOpValue0, hw::DpuEwOpValue1, hw::DpuEwOpValue2, hw::DpuEwOpValue3, hw::DpuEwOpValue4,
                hw::DpuEwOpValue5, hw::DpuEwOpValue6, hw::DpuEwOpValue7>();
  }

  // Entries that no byte uses repeat the nearest one.
  void table(bool load) {
    if (looks_up() && load) {
      list_.put(hw::DpuLutAccessCfg{.lut_access_type = 1});
      for (int32_t i = 0; i <= kTableSteps; ++i) {
        const int32_t byte = std::clamp(i - kTableSteps - kTableOffset + 128, 0, 255);
        list_.put(hw::DpuLutAccessData{.lut_access_data = (*work_.table)[static_cast<size_t>(byte)]});
      }
    }
    list_.zeros<hw::DpuLutAccessCfg, hw::DpuLutAccessData>();
    const uint32_t on = looks_up() ? 1 : 0;
    list_.put(hw::DpuLutCfg{.lut_lo_le_mux = on * kTableMux,
                            .lut_oflow_priority = on * kOtherTable,
                            .lut_hybrid_priority = on * kOtherTable});
    list_.zeros<hw::DpuLutInfo>();
    list_.put(hw::DpuLutLeStart{.lut_le_start = looks_up() ? -kTableSteps : 0});
    list_.zeros<hw::DpuLutLeEnd, hw::DpuLutLoStart>();
    list_.put(hw::DpuLutLoEnd{.lut_lo_end = looks_up() ? kTableSteps : 0});
    list_.zeros<hw::DpuLutLeSlopeScale, hw::DpuLutLeSlopeShift, hw::DpuLutLoSlopeScale, hw::DpuLutLoSlopeShift>();
  }

  void readers() {
    list_.put(hw::DpuRdmaDataCubeWidth{.width = width_});
    list_.put(hw::DpuRdmaDataCubeHeight{.height = 1});
    list_.put(hw::DpuRdmaDataCubeChannel{.channel = kLanes});
    list_.put(hw::DpuRdmaSrcBaseAddr{.src_base_addr = at_.input});
    list_.put(hw::DpuRdmaBrdmaCfg{.brdma_disable = true});
    list_.put(hw::DpuRdmaBsBaseAddr{.bs_base_addr = {bits::Address{}}});
    list_.put(hw::DpuRdmaNrdmaCfg{.nrdma_disable = true});
    list_.put(hw::DpuRdmaBnBaseAddr{.bn_base_addr = {bits::Address{}}});
    list_.put(
        hw::DpuRdmaErdmaCfg{.erdma_disable = looks_up(),
                            .erdma_data_size = looks_up() ? hw::Width::bits_4 : hw::Width::bits_8,
                            .erdma_data_mode = looks_up() ? hw::Granularity::per_channel : hw::Granularity::per_pixel});
    list_.put(hw::DpuRdmaEwBaseAddr{.ew_base_addr = looks_up() ? bits::Address{} : at_.second});
    list_.put(hw::DpuRdmaEwSurfStride{.ew_surf_stride = looks_up() ? 0 : bytes_});
    list_.put(hw::DpuRdmaFeatureModeCfg{.flying_mode = hw::MainSource::memory, .burst_len = hw::Burst::beats_16});
    list_.zeros<hw::DpuRdmaSrcDmaCfg, hw::DpuRdmaSurfNotch, hw::DpuRdmaPadCfg>();
    list_.put(hw::DpuRdmaWeight{.m_weight = 1, .b_weight = 1, .n_weight = 1, .e_weight = 1});
    list_.zeros<hw::DpuRdmaEwSurfNotch>();
  }

  const Pointwise& work_;
  const PointwisePlaces& at_;
  const uint32_t width_, bytes_;
  CommandList list_;
};

}  // namespace

Result<Commands> write_pointwise(const Pointwise& work, const PointwisePlaces& at, int64_t atoms, bool load) {
  return Writer(work, at, atoms).run(load);
}

}  // namespace skillet::npus::rockchip
