// What the driver takes and refuses, and that it decodes what devices are sent.
#include "drivers/rockchip/hw/rockchip.h"

#include <gtest/gtest.h>

#include "driver/driver.h"

namespace skillet::drivers::rockchip {

const driver::Driver& driver();

namespace {

namespace hw = ::skillet::rockchip::hw;

TEST(RockchipDriver, IsFoundByItsCoresInTheDeviceTree) {
  const auto chip = driver().identify({.kernel_driver = "rocket", .compatible = "rockchip,rk3588-rknn-core"});
  ASSERT_TRUE(chip.ok());
  EXPECT_EQ(chip->name, "rk3588");
  EXPECT_FALSE(driver().identify({.kernel_driver = "rocket", .compatible = ""}).ok());
}

// Commands of one task: a constant's address, a tensor's, a value, bits of no row, a register of no row, the end.
TEST(RockchipDriver, DecodesEveryBit) {
  const auto command = [](hw::Target target, uint32_t address, uint32_t value) {
    return uint64_t{static_cast<uint32_t>(target)} << 48 | uint64_t{value} << 16 | address;
  };
  const std::vector<uint64_t> words = {command(hw::Target::cna, 0x1110, 0x2000),
                                       command(hw::Target::dpu, 0x4020, 0x3000),
                                       command(hw::Target::cna, 0x1040, 0x80B1),
                                       command(hw::Target::cna, 0x1FFC, 7),
                                       0,
                                       command(hw::Target::barrier, 0, 0),
                                       command(hw::Target::enable, 8, 0x1D)};
  capture::Submission submission;
  submission.jobs = {{.commands = {{.words = {}, .address = 0x1000, .size_bytes = 8 * words.size()}}}};
  Bytes bytes(8 * words.size());
  std::memcpy(bytes.data(), words.data(), bytes.size());
  submission.buffers = {{.handle = 1, .address = 0x1000, .size_bytes = 0x1000, .bytes = bytes}};
  const driver::Annotated decoded = driver().decode(driver().chips()[0], submission).value();
  ASSERT_EQ(decoded.operations, std::vector<std::string>{"CONV+ADD"}) << "ew_cfg, never written, does not bypass";
  std::map<std::string, driver::AnnotatedField> fields;
  for (const driver::AnnotatedField& field : decoded.fields) fields[field.name] = field;
  EXPECT_EQ(fields["commands"].extent_bytes, 8 * words.size());
  EXPECT_EQ(fields["cna.dcomp_addr0.decompress_addr0"].kind, driver::FieldKind::constant);
  EXPECT_EQ(fields["dpu.dst_base_addr.dst_base_addr"].kind, driver::FieldKind::memory);
  EXPECT_EQ(fields["cna.cbuf_con0.weight_bank"].value, "11");
  EXPECT_TRUE(fields["cna.cbuf_con0.unknown bits"].unknown);
  EXPECT_TRUE(fields["cna 0x1ffc"].unknown);
  EXPECT_EQ(fields["block_enable.dpu"].value, "true");
  submission.jobs[0].commands[0].size_bytes = 4104;
  EXPECT_FALSE(driver().decode(driver().chips()[0], submission).ok()) << "more commands than the buffer has";
}

}  // namespace
}  // namespace skillet::drivers::rockchip
