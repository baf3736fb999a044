// The RK3576's registers of a program of the DPU alone as a job (specification of the RK3576, sections 9 and 10).
#include "npus/rockchip/sim/rk3576_known.h"

namespace skillet::sim::rockchip::rk3576 {
namespace {

// A program of the DPU alone that loads tables: one pixel goes from memory to memory.
class LoadReader {
 public:
  explicit LoadReader(Registers& registers) : r_(registers) {}

  Result<DpuJob> read() {
    SK_TRY(stages());
    SK_TRY(expect_zeros());
    return DpuJob{.from_memory = true,
                  .width = 1,
                  .height = 1,
                  .lanes = kAtom,
                  .true_lanes = kAtom,
                  .multiplied_lanes = kAtom,
                  .main = {static_cast<int64_t>(r_.get<r::DpuRdmaSrcBaseAddr>().src_base_addr.offset), 0},
                  .address = static_cast<int64_t>(r_.get<r::DpuDstBaseAddr>().dst_base_addr.offset),
                  .surface_bytes = kAtom,
                  .group_bytes = kAtom};
  }

 private:
  Result<void> stages() {
    constexpr uint32_t kLoads = 0x00FF0000;
    if (r_.word(r::DpuLutCfg::kAddress) != kLoads)
      return not_modelled("the DPU alone is modelled where it loads tables or adds");
    SK_TRY(expect<r::DpuFeatureModeCfg>(r_, {5}));
    SK_TRY(expect<r::DpuDstSurfStride>(r_, {1}));
    SK_TRY(expect<r::DpuDataCubeChannel>(r_, {kAtom - 1}));
    SK_TRY(expect<r::DpuBsCube>(r_, {0x000F0F00}));
    SK_TRY(expect<r::DpuBsCfg>(r_, {0x53}));
    SK_TRY(expect<r::DpuBsMode>(r_, {2}));
    SK_TRY(expect<r::DpuBsOwCfg>(r_, {0x20000}));
    SK_TRY(expect<r::DpuBnCfg>(r_, {0x903}));
    SK_TRY(expect<r::DpuEwCfg>(r_, {kEwOff}));
    SK_TRY(expect<r::DpuOutCvtScale>(r_, {0x10001}));
    SK_TRY(expect<r::DpuWriteCfg>(r_, {0x04440000}));
    SK_TRY(expect<r::DpuRdmaDataCubeChannel>(r_, {kAtom - 1}));
    SK_TRY(expect<r::DpuRdmaErdmaCfg>(r_, {1}));
    return expect<r::DpuRdmaFeatureModeCfg>(r_, {9});
  }

  Result<void> expect_zeros() {
    SK_TRY(expect_no_tables(r_));
    return expect_zero<r::DpuDataFormat, r::DpuZero4014, r::DpuDataCubeWidth, r::DpuDataCubeHeight, r::DpuZero4028,
                       r::DpuWdmaSize, r::DpuZero403C, r::DpuEwCvtOffset, r::DpuZero4090, r::DpuZero4094,
                       r::DpuZero409C, r::DpuOutCvtOffset, r::DpuOutCvtShift, r::DpuSurfaceAdd, r::DpuZero40BC,
                       r::DpuZero40C8, r::DpuLutMemory, r::DpuRdmaDataCubeWidth, r::DpuRdmaDataCubeHeight,
                       r::DpuRdmaBrdmaCfg, r::DpuRdmaNrdmaCfg, r::DpuRdmaZero5030, r::DpuRdmaEwSurfStride,
                       r::DpuRdmaZero5048, r::DpuRdmaSurfNotch, r::DpuRdmaZero5064, r::DpuRdmaEwSurfNotch,
                       r::DpuRdmaZero5078, r::DpuRdmaZero507C>(r_);
  }

  Registers& r_;
};

constexpr uint32_t kEwAdds = 0x8002C0C0;
bool adds(Registers& registers) { return registers.word(r::DpuEwCfg::kAddress) == kEwAdds; }

// A program of the DPU alone that adds two tensors, each with a zero point, a factor and a shift of its own: those of
// the main one are in memory. The vendor's compiler writes such; no board is known to have run any.
class SumReader {
 public:
  explicit SumReader(Registers& registers) : r_(registers) {}

  Result<DpuJob> read() {
    SK_TRY(stages());
    SK_TRY(cube());
    SK_TRY(expect_zeros());
    const auto scale = r_.get<r::DpuEwCvtScale>();
    job_.ew = {.op = EwOp::add,
               .convert = true,
               .add_first = true,
               .offset = r_.get<r::DpuEwCvtOffset>().value,
               .scale = scale.scale,
               .shift = scale.shift};
    job_.bs = {.alu = true, .multiply = true};
    job_.tensor_address = static_cast<int64_t>(r_.get<r::DpuRdmaBsBaseAddr>().bs_base_addr.offset);
    if (job_.tensor_address % kAtom != 0 || job_.tensor_address == 0)
      return not_modelled("dpu_rdma.bs_base_addr = {:#x}: not aligned, or none", job_.tensor_address);
    const auto shift = r_.get<r::DpuOutCvtShift>();
    job_.out_scale = r_.get<r::DpuOutCvtScale>().out_cvt_scale;
    job_.out_shift = shift.out_cvt_shift;
    job_.out_tie = shift.cvt_round == hw::TieAway::half_away ? Tie::away : Tie::even;
    job_.out_offset = r_.get<r::DpuOutCvtOffset>().value;
    return job_;
  }

 private:
  Result<void> stages() {
    SK_TRY(expect<r::DpuFeatureModeCfg>(r_, {5}));
    SK_TRY(expect<r::DpuBsCfg>(r_, {0x00100012}));
    SK_TRY(expect<r::DpuBnCfg>(r_, {0x903}));
    SK_TRY(expect<r::DpuRdmaBrdmaCfg>(r_, {0x1A}));
    SK_TRY(expect<r::DpuRdmaErdmaCfg>(r_, {0x40000044}));
    SK_TRY(expect<r::DpuRdmaFeatureModeCfg>(r_, {9}));
    SK_TRY((expect_no_limits<r::DpuBsMin, r::DpuBsMax>(r_)));
    SK_TRY((expect_no_limits<r::DpuBnMin, r::DpuBnMax>(r_)));
    SK_TRY((expect_no_limits<r::DpuEwMin, r::DpuEwMax>(r_)));
    return expect_no_limits<r::DpuOutMin, r::DpuOutMax>(r_);
  }

  Result<void> cube() {
    job_.from_memory = true;
    job_.width = r_.get<r::DpuDataCubeWidth>().width;
    job_.height = r_.get<r::DpuDataCubeHeight>().height;
    const uint32_t channels = r_.get<r::DpuDataCubeChannel>().channel;
    job_.lanes = job_.true_lanes = int64_t{channels + kAtom - 1} / kAtom * kAtom;
    SK_TRY(expect<r::DpuBsCube>(r_, {(channels - 1) << 16 | 0xF00}));
    if (r_.get<r::DpuWdmaSize>().width != r_.get<r::DpuDataCubeWidth>().width ||
        r_.get<r::DpuWdmaSize>().height != r_.get<r::DpuDataCubeHeight>().height ||
        r_.get<r::DpuRdmaDataCubeWidth>().width != r_.get<r::DpuDataCubeWidth>().width ||
        r_.get<r::DpuRdmaDataCubeHeight>().height != r_.get<r::DpuDataCubeHeight>().height ||
        r_.get<r::DpuRdmaDataCubeChannel>().channel != channels)
      return not_modelled("dpu_rdma.data_cube_width, _height, _channel: not those of dpu");
    const int64_t pitch = r_.get<r::DpuRdmaEwSurfStride>().ew_surf_stride;
    if (pitch < job_.pixels()) return not_modelled("dpu_rdma.ew_surf_stride = {}: less than a surface", pitch);
    job_.main = {static_cast<int64_t>(r_.get<r::DpuRdmaSrcBaseAddr>().src_base_addr.offset), pitch - job_.pixels()};
    job_.second = {static_cast<int64_t>(r_.get<r::DpuRdmaEwBaseAddr>().ew_base_addr.offset), pitch - job_.pixels()};
    job_.address = static_cast<int64_t>(r_.get<r::DpuDstBaseAddr>().dst_base_addr.offset);
    job_.surface_bytes = job_.group_bytes = int64_t{r_.get<r::DpuDstSurfStride>().dst_surf_stride} * kAtom;
    return expect<r::DpuWriteCfg>(r_, {0x04440000});
  }

  Result<void> expect_zeros() {
    SK_TRY(expect_no_tables(r_));
    return expect_zero<r::DpuDataFormat, r::DpuZero4014, r::DpuZero4028, r::DpuZero403C, r::DpuBsMode, r::DpuBsOwCfg,
                       r::DpuZero4090, r::DpuZero4094, r::DpuZero409C, r::DpuSurfaceAdd, r::DpuZero40BC, r::DpuZero40C8,
                       r::DpuLutMemory, r::DpuRdmaNrdmaCfg, r::DpuRdmaZero5030, r::DpuRdmaZero5048, r::DpuRdmaSurfNotch,
                       r::DpuRdmaZero5064, r::DpuRdmaEwSurfNotch, r::DpuRdmaZero5078, r::DpuRdmaZero507C>(r_);
  }

  Registers& r_;
  DpuJob job_;
};

}  // namespace

Result<DpuJob> read_lone_dpu_job(Registers& registers) {
  return adds(registers) ? SumReader(registers).read() : LoadReader(registers).read();
}

}  // namespace skillet::sim::rockchip::rk3576
