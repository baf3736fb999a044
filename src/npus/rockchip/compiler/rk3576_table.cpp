// The program that loads a table for later programs of the job, in the order of the vendor's compiler: the DPU alone,
// with one pixel of 16 channels. Specification of the RK3576, sections 5 and 10.
#include <algorithm>

#include "npus/rockchip/compiler/commands.h"
#include "npus/rockchip/compiler/elementwise.h"
#include "npus/rockchip/compiler/rk3576.h"

namespace skillet::npus::rockchip::rk3576 {
namespace {

namespace r = hw::rk3576;

constexpr int32_t kEntries = 513, kByteLog2 = 7;
constexpr int32_t kByteEntries = 2;  // from one byte to the next

// By sums of kTableStep / kByteEntries each: the byte's entry; between two bytes the mean of their entries.
int32_t entry(const Conv& conv, int32_t index) {
  const auto value = [&](int32_t halves) {
    const int32_t byte = std::clamp((halves >> 1) + conv.table_zero, INT8_MIN, INT8_MAX);
    return (*conv.table)[static_cast<size_t>(byte - INT8_MIN)] * (1 << kByteLog2);
  };
  return (value(index) + value(index + 1)) / kByteEntries;
}

class Loader {
 public:
  Loader(const Conv& conv, const TaskPlaces& places) : c_(conv), at_(places) {}

  Result<Commands> run() {
    put(r::DpuSPointer{.pointer_pp_en = true, .executer_pp_en = true, .pointer_pp_mode = 1});
    put(r::DpuRdmaSPointer{.pointer_pp_en = true, .executer_pp_en = true, .pointer_pp_mode = 1});
    cube();
    stages();
    registers_of_tables();
    readers();
    entries(0);
    entries(1);
    list_.command(hw::Target::none, 0, 0);
    list_.put(hw::PcRegisterAmounts{});
    list_.start({.dpu = true, .dpu_rdma = true});
    return list_.take();
  }

 private:
  template <typename T>
  void put(const T& fields) {
    list_.put(fields);
  }
  template <typename Min, typename Max>
  void no_limits() {
    put(Min{INT32_MIN});
    put(Max{INT32_MAX});
  }

  void cube() {
    put(r::DpuFeatureModeCfg{.flying_mode = hw::MainSource::memory, .output_mode = hw::OutputMode::memory});
    list_.zeros<r::DpuDataFormat, r::DpuZero4014>();
    put(r::DpuDstBaseAddr{.dst_base_addr = at_.output});
    put(r::DpuDstSurfStride{.dst_surf_stride = 1});
    put(r::DpuDataCubeWidth{.width = 1});
    put(r::DpuDataCubeHeight{.height = 1});
    put(r::DpuZero4028{});
    put(r::DpuDataCubeChannel{.channel = kAtom});
    put(r::DpuBsCube{.mode = 0xF00, .channel = kAtom});
    put(r::DpuWdmaSize{.width = 1, .height = 1});
  }

  void stages() {
    put(r::DpuBsCfg{0x53});
    put(r::DpuZero403C{});
    put(r::DpuBsMode{2});
    no_limits<r::DpuBsMin, r::DpuBsMax>();
    put(r::DpuBsOwCfg{0x20000});
    no_limits<r::DpuBs2Min, r::DpuBs2Max>();
    put(r::DpuBnCfg{0x903});
    no_limits<r::DpuBnMin, r::DpuBnMax>();
    no_limits<r::DpuBn2Min, r::DpuBn2Max>();
    put(r::DpuEwCfg{0x010041C1});
    put(r::DpuEwCvtOffset{});
    put(r::DpuEwCvtScale{.scale = 1});
    no_limits<r::DpuEwMin, r::DpuEwMax>();
    list_.zeros<r::DpuZero4090, r::DpuZero4094, r::DpuZero409C>();
    no_limits<r::DpuOutMin, r::DpuOutMax>();
    put(r::DpuOutCvtOffset{});
    put(r::DpuOutCvtScale{.out_cvt_scale = 1, .narrow = true});
    list_.zeros<r::DpuOutCvtShift, r::DpuSurfaceAdd, r::DpuZero40BC>();
    put(r::DpuWriteCfg{0x04440000});
    list_.zeros<r::DpuZero40C8, r::DpuLutMemory>();
    put(r::DpuByteEnables{.enables = 0xFFFF, .high = 0x40});
  }

  void registers_of_tables() {
    list_.zeros<r::DpuLutAccessCfg, r::DpuLutAccessData>();
    put(r::DpuLutCfg{0x00FF0000});
    list_.zeros<r::DpuLutInfo, r::DpuLutLeStart0, r::DpuLutLeStart1, r::DpuLutLeStart2, r::DpuLutLeStart3,
                r::DpuLut4120, r::DpuLut4130, r::DpuLutLoEnd0, r::DpuLutLoEnd1, r::DpuLutLoEnd2, r::DpuLutLoEnd3,
                r::DpuLut4150, r::DpuLut4154, r::DpuLut4160, r::DpuLut4170, r::DpuLut4174, r::DpuLut4184, r::DpuLut4188,
                r::DpuLut418C, r::DpuLut4190, r::DpuLut4194>();
  }

  void readers() {
    put(r::DpuRdmaDataCubeWidth{.width = 1});
    put(r::DpuRdmaDataCubeHeight{.height = 1});
    put(r::DpuRdmaDataCubeChannel{.channel = kAtom});
    put(r::DpuRdmaSrcBaseAddr{.src_base_addr = at_.input});
    put(r::DpuRdmaBrdmaCfg{});
    put(r::DpuRdmaBsBaseAddr{.bs_base_addr = {bits::Address{}}});
    put(r::DpuRdmaShiftAddr{.shift_addr = {bits::Address{}}});
    put(r::DpuRdmaNrdmaCfg{});
    put(r::DpuRdmaBnBaseAddr{.bn_base_addr = {bits::Address{}}});
    put(r::DpuRdmaZero5030{});
    put(r::DpuRdmaErdmaCfg{1});
    list_.zeros<r::DpuRdmaEwBaseAddr, r::DpuRdmaEwSurfStride>();
    put(r::DpuRdmaFeatureModeCfg{9});
    list_.zeros<r::DpuRdmaZero5048, r::DpuRdmaSurfNotch, r::DpuRdmaZero5064, r::DpuRdmaEwSurfNotch, r::DpuRdmaZero5078,
                r::DpuRdmaZero507C>();
  }

  // Below zero, then above: the last entry of the first table is the first of the second.
  void entries(int32_t table) {
    put(r::DpuLutAccessCfg{.lut_table_id = u(table), .lut_access_type = 1});
    for (int32_t i = 0; i < kEntries; ++i)
      put(r::DpuLutAccessData{.lut_access_data = entry(c_, i + (table - 1) * (kEntries - 1))});
  }

  const Conv& c_;
  const TaskPlaces& at_;
  CommandList list_;
};

}  // namespace

TableEnds table_ends(const Conv& conv) { return {entry(conv, 1 - kEntries), entry(conv, kEntries - 1)}; }

Result<Commands> write_table(const Conv& conv, const TaskPlaces& places) { return Loader(conv, places).run(); }

}  // namespace skillet::npus::rockchip::rk3576
