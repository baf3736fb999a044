// Reads the RK3576's registers of a program of the DPU alone into a job (specification of the RK3576, sections 9 and
// 10).
#include "npus/rockchip/sim/rk3576_known.h"

namespace skillet::sim::rockchip::rk3576 {
namespace {

// A program of the DPU alone that loads tables; it also copies one pixel from memory to memory.
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

// A tensor's way from memory to memory: its size, its place, its stages.
class TensorReader {
 public:
  explicit TensorReader(Registers& registers) : r_(registers) {}

  Result<DpuJob> read() {
    SK_TRY(cube());
    SK_TRY(expect<r::DpuEwCfg>(r_, {kEwAdds, kEwMultiplies, kEwLookup, kEwOff}));
    SK_TRY(stages());
    SK_TRY(output());
    SK_TRY(expect_zeros());
    return job_;
  }

 private:
  Result<void> stages() {
    const uint32_t use = r_.word(r::DpuEwCfg::kAddress);
    if (use == kEwLookup) return lookup();
    if (use == kEwOff) return slope();
    return two_tensors(use == kEwAdds);
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
    job_.main.address = static_cast<int64_t>(r_.get<r::DpuRdmaSrcBaseAddr>().src_base_addr.offset);
    job_.address = static_cast<int64_t>(r_.get<r::DpuDstBaseAddr>().dst_base_addr.offset);
    job_.surface_bytes = job_.group_bytes = int64_t{r_.get<r::DpuDstSurfStride>().dst_surf_stride} * kAtom;
    return {};
  }

  // Each tensor has a zero point and, if they are added, its own factor and shift; those of the main one are in memory.
  // The vendor's compiler writes such programs; no board is known to have run one.
  Result<void> two_tensors(bool adds) {
    SK_TRY(expect<r::DpuBnCfg>(r_, {kBnOff}));
    SK_TRY(expect<r::DpuRdmaErdmaCfg>(r_, {0x40000044}));
    SK_TRY(read_second(r_, adds ? EwOp::add : EwOp::multiply, job_));
    job_.main.notch_atoms = job_.second.notch_atoms;
    return main_operands(adds);
  }

  // Values below 0 have another factor.
  Result<void> slope() {
    SK_TRY(expect<r::DpuBnCfg>(r_, {kBnSlope}));
    SK_TRY(expect_no_second());
    return main_operands(true);
  }

  Result<void> main_operands(bool scaled) {
    SK_TRY(expect<r::DpuBsCfg>(r_, {0x00100012}));
    SK_TRY(expect<r::DpuRdmaBrdmaCfg>(r_, {scaled ? 0x1AU : 2U}));
    SK_TRY(expect<r::DpuBsMode>(r_, {scaled ? 0U : 2U}));
    SK_TRY(expect<r::DpuBsOwCfg>(r_, {scaled ? 0U : 0x20000U}));
    SK_TRY(expect_zero<r::DpuLutMemory>(r_));
    job_.bs = {.alu = true, .multiply = scaled};
    job_.bs_tensor = static_cast<int64_t>(r_.get<r::DpuRdmaBsBaseAddr>().bs_base_addr.offset);
    if (job_.bs_tensor % kAtom != 0 || job_.bs_tensor == 0)
      return not_modelled("dpu_rdma.bs_base_addr = {:#x}: not aligned, or none", job_.bs_tensor);
    return expect_no_tables(r_);
  }

  // No register has the distance of the surfaces: taken to be that of the result's surfaces.
  Result<void> expect_no_second() {
    SK_TRY(expect<r::DpuEwCvtScale>(r_, {1}));
    SK_TRY(expect<r::DpuRdmaErdmaCfg>(r_, {0x41}));
    SK_TRY((expect_zero<r::DpuEwCvtOffset, r::DpuRdmaEwSurfStride>(r_)));
    job_.main.notch_atoms = job_.surface_bytes / kAtom - job_.pixels();
    if (job_.main.notch_atoms >= 0) return {};
    return not_modelled("dpu.dst_surf_stride = {}: less than a surface", job_.surface_bytes / kAtom);
  }

  Result<void> lookup() {
    SK_TRY(expect<r::DpuBsCfg>(r_, {0x53}));
    SK_TRY(expect<r::DpuBsMode>(r_, {2}));
    SK_TRY(expect<r::DpuBsOwCfg>(r_, {0x20000}));
    SK_TRY(expect<r::DpuBnCfg>(r_, {kBnFactor}));
    SK_TRY(expect<r::DpuLutMemory>(r_, {0x10}));
    SK_TRY(expect_zero<r::DpuRdmaBrdmaCfg>(r_));
    SK_TRY(expect_no_second());
    return read_tables(r_, job_);
  }

  Result<void> output() {
    SK_TRY(read_bn_tensor(r_, job_));
    read_output_scale(r_, job_);
    SK_TRY(expect<r::DpuFeatureModeCfg>(r_, {5}));
    SK_TRY(expect<r::DpuWriteCfg>(r_, {0x04440000}));
    SK_TRY(expect<r::DpuRdmaFeatureModeCfg>(r_, {9}));
    SK_TRY((expect_no_limits<r::DpuBsMin, r::DpuBsMax>(r_)));
    SK_TRY((expect_no_limits<r::DpuBnMin, r::DpuBnMax>(r_)));
    if (job_.lookup.on && job_.out_scale > 0 && r_.word(r::DpuEwMin::kAddress) == 0) return not_below_0();
    SK_TRY((expect_no_limits<r::DpuEwMin, r::DpuEwMax>(r_)));
    return expect_no_limits<r::DpuOutMin, r::DpuOutMax>(r_);
  }

  // The limit applies before the zero point is added: with a limit on the written byte a sigmoid would lack half of its
  // bytes.
  Result<void> not_below_0() {
    constexpr auto kMost = static_cast<uint32_t>(INT32_MAX);
    SK_TRY(expect<r::DpuEwMin>(r_, {0}));
    SK_TRY(expect<r::DpuEwMax>(r_, {kMost}));
    SK_TRY(expect<r::DpuOutMin>(r_, {0}));
    SK_TRY(expect<r::DpuOutMax>(r_, {kMost}));
    job_.ew.relu = true;
    return {};
  }

  Result<void> expect_zeros() {
    SK_TRY(expect_unused(r_));
    return expect_zero<r::DpuSurfaceAdd, r::DpuRdmaSurfNotch, r::DpuRdmaEwSurfNotch>(r_);
  }

  Registers& r_;
  DpuJob job_;
};

}  // namespace

Result<DpuJob> read_lone_dpu_job(Registers& registers) {
  constexpr uint32_t kLoads = 0x00FF0000;
  return registers.word(r::DpuLutCfg::kAddress) == kLoads ? LoadReader(registers).read()
                                                          : TensorReader(registers).read();
}

}  // namespace skillet::sim::rockchip::rk3576
