// How far addresses reach, in bytes computed by hand: rows with gaps, surfaces, the notch between them.
#include "npus/rockchip/compiler/task_check.h"

#include <gtest/gtest.h>

namespace skillet::npus::rockchip {
namespace {

class Task {
 public:
  explicit Task(uint32_t enable) : enable_(enable) {}
  template <typename T>
  Task& set(const T& value) {
    hw::Command command{};
    command.address = T::kAddress;
    command.value = bits::pack(value).value()[0];
    command.target = static_cast<hw::Target>((uint32_t{0x0100} << (T::kAddress / hw::kBlockBytes)) | 1);
    commands_.push_back(command);
    return *this;
  }
  uint64_t after(uint32_t address) const {
    TaskRegisters registers;
    auto all = commands_;
    hw::Command last{};
    last.target = hw::Target::enable;
    last.address = hw::kEnableAddress;
    last.value = enable_;
    all.push_back(last);
    registers.read(all);
    return TaskCheck(*hw::find_chip("rk3588")).reach(address, registers).value_or(npu::Reach{}).after;
  }

 private:
  const uint32_t enable_;
  std::vector<hw::Command> commands_;
};
constexpr uint32_t kConvolution = 0x1D;

// Rows in groups of four, `line` apart; rows of a group follow each other.
TEST(RockchipReach, OfFeaturesWhoseLastGroupIsShort) {
  struct Row {
    uint32_t rows, line, atoms;
  };
  constexpr uint32_t kWidth = 5;
  for (const Row& row : {Row{1, 40, 5}, Row{3, 40, 15}, Row{4, 40, 20}, Row{5, 40, 45}, Row{6, 40, 50}, Row{8, 40, 60},
                         // If the distance of groups is below their length, the last whole group reaches further.
                         Row{5, 8, 20}, Row{6, 8, 20}, Row{8, 8, 28}}) {
    Task task(kConvolution);
    task.set(hw::CnaFcDataSize0{.dma_height = row.rows, .dma_width = kWidth})
        .set(hw::CnaFcDataSize1{.dma_channel = 16})
        .set(hw::CnaDmaCon1{.line_stride = row.line})
        .set(hw::CnaConvCon1{.group_line_off = false});
    EXPECT_EQ(task.after(hw::CnaFeatureDataAddr::kAddress), row.atoms * 16) << row.rows << " rows, " << row.line;
  }
}

// Two surfaces of 3 rows of 5 pixels, rows 2 pixels apart.
TEST(RockchipReach, OfAnOutputWithANotch) {
  Task task(kConvolution);
  task.set(hw::DpuDataCubeWidth{.width = 5})
      .set(hw::DpuDataCubeHeight{.height = 3})
      .set(hw::DpuDataCubeNotchAddr{.notch_addr_0 = 2, .notch_addr_1 = 2})
      .set(hw::DpuDataCubeChannel{.channel = 32, .orig_channel = 32})
      .set(hw::DpuBsOwCfg{.size_e_0 = 1, .size_e_1 = 1, .size_e_2 = 1})
      .set(hw::DpuDstSurfStride{.dst_surf_stride = 640})
      .set(hw::DpuSurfaceAdd{.surf_add = 1280});
  EXPECT_EQ(task.after(hw::DpuDstBaseAddr::kAddress), 640U + (2 * 7 + 5) * 16);
}

// Four surfaces of 3x5 pixels with 7 or 9 pixels after each: two readers read every second one, a single reader all.
TEST(RockchipReach, OfAnOperandWithANotch) {
  struct Row {
    uint32_t comb_use, gaps;  // gaps: between the surfaces of a reader
  };
  for (const Row& row : {Row{5, 1}, Row{1, 1}, Row{4, 3}, Row{0, 3}}) {
    Task task(kConvolution);
    task.set(hw::DpuDataCubeWidth{.width = 5})
        .set(hw::DpuDataCubeHeight{.height = 3})
        .set(hw::DpuDataCubeChannel{.channel = 64, .orig_channel = 64})
        .set(hw::DpuRdmaFeatureModeCfg{.comb_use = row.comb_use})
        .set(hw::DpuRdmaSurfNotch{.surf_notch_addr = 7 * 16})
        .set(hw::DpuRdmaEwSurfNotch{.ew_surf_notch = 9 * 16});
    EXPECT_EQ(task.after(hw::DpuRdmaSrcBaseAddr::kAddress), (row.gaps * (15U + 7) + 15) * 16) << row.comb_use;
    EXPECT_EQ(task.after(hw::DpuRdmaEwBaseAddr::kAddress), (row.gaps * (15U + 9) + 15) * 16) << row.comb_use;
  }
}

}  // namespace
}  // namespace skillet::npus::rockchip
