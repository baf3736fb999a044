// Times of hand-written streams, compared with the formulas of the hardware specification, section 10.5.
#include "sim/timing.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "npus/ethosu/hw/testing/streams.h"
#include "npus/ethosu/hw/timing.h"

namespace skillet::sim::ethosu {
namespace {

namespace hw = ::skillet::ethosu::hw;
namespace timing = ::skillet::ethosu::timing;
using hw::add;

constexpr double kSramBytes = 16, kDramBytes = 3.75;  // per cycle of the i.MX 93, whose cycles are nanoseconds
constexpr timing::Rates kRates = {{{kSramBytes, 32, 32, 32}, {kDramBytes, 128, 500, 250}}};

std::vector<Cost> costs_of(const hw::Words& stream, std::string_view chip = "imx93") {
  const Commands commands{.bytes = as_bytes(std::span<const uint32_t>(stream))};
  auto costs = create_timer(chip, Jobs::open).value()->time_job({.commands = {&commands, 1}}, sim::Memory());
  EXPECT_TRUE(costs.ok()) << costs.error().message;
  return costs.ok() ? *costs : std::vector<Cost>();
}

// The example of the specification, appendix A: 1x1, 8x8x16 to 8x8x16, in one block.
TEST(EthosuTiming, AConvolutionByHand) {
  const timing::Operation op{.kind = timing::Kind::depth_first,
                             .input = {.size = {8, 8, 16}, .stride_x = 16, .stride_c = 1},
                             .output = {.size = {8, 8, 16}, .stride_x = 16, .stride_c = 128, .is_bricks = true},
                             .block = {8, 8, 16},
                             .weight_bytes = 288,
                             .scale_bytes = 160};
  const hw::ChipRow& chip = *hw::find_chip("imx93");
  const timing::Size block = timing::input_block(chip, op);
  EXPECT_EQ(block.elems(), 8 * 8 * 16);
  const timing::Cost cost = timing::cost_of(chip, kRates, op);
  EXPECT_EQ(cost.mac_cycles, 4 * 16 * 2);        // 16 x 2 ublocks of 32 products
  EXPECT_EQ(cost.ao_cycles, 160 * 500.0 / 256);  // records of biases and scales arrive later than results
  const double reads = 500 + 1024 / kDramBytes, writes = 250 + 1024 / kDramBytes;
  EXPECT_NEAR(cost.cycles, 2 * (reads + writes + cost.ao_cycles + cost.mac_cycles) / 4, 1e-6);
  EXPECT_EQ(cost.read_bytes[timing::kDram], 1024 + 288 + 160);
  EXPECT_EQ(cost.written_bytes[timing::kDram], 1024);
}

struct Row {
  timing::Kind kind;
  int64_t kernel, depth;
  int64_t mac_cycles;  // of a block of 8x8x16
};

// 16 x 2 ublocks of a plane and channels, at least 4 cycles each, by steps of taps and of input channels.
TEST(EthosuTiming, StepsOfKernels) {
  constexpr Row kTable[] = {{timing::Kind::depth_first, 1, 64, 64 * 2 * 2},
                            {timing::Kind::depth_first, 3, 32, 64 * 2 * 9},
                            {timing::Kind::depth_first, 8, 32, 64 * 2 * 64},
                            {timing::Kind::part_kernel, 3, 16, 64 * 2 * 3 * 2},
                            {timing::Kind::part_kernel, 3, 3, 64 * 2 * 3},
                            {timing::Kind::depthwise, 3, 16, 64 * 2 * 3},
                            {timing::Kind::max_pool, 2, 16, 64 * 2},
                            {timing::Kind::average_pool, 8, 16, 64 * 16 * 2},
                            {timing::Kind::average_pool, 9, 16, 64 * 16 * 2 + 8 * 16 * 2 * 2 + 4 * 16 * 2}};
  for (const Row& row : kTable) {
    const timing::Operation op{.kind = row.kind,
                               .input = {.size = {16, 16, row.depth}, .stride_x = row.depth},
                               .output = {.size = {8, 8, 16}, .stride_x = 16},
                               .block = {8, 8, 16},
                               .kernel_h = row.kernel,
                               .kernel_w = row.kernel};
    const timing::Cost cost = timing::cost_of(*hw::find_chip("imx93"), kRates, op);
    EXPECT_EQ(cost.mac_cycles, static_cast<double>(row.mac_cycles)) << static_cast<int>(row.kind) << " " << row.kernel;
  }
}

void add_abs(hw::Words& stream) {
  hw::add_abs_registers(stream, 32, 32, 16, 0, 16384);
  add(stream, hw::Activation{}), add(stream, hw::AccFormat{});
  add(stream, hw::OfmBlkHeightM1{.value = 32}), add(stream, hw::OfmBlkWidthM1{.value = 32});
  add(stream, hw::OfmBlkDepthM1{.value = 16});
  add(stream, hw::OpElementwise{.mode = hw::ElementwiseMode::abs});
}

// A transfer that an operation waits for takes time; one that runs during an operation on other memory takes none.
TEST(EthosuTiming, TransfersRunBesideOperations) {
  hw::Words alone, waits, beside;
  add_abs(alone), hw::add_stop(alone);
  hw::add_copy(waits, 0, 0, 2, 0, 3750), add(waits, hw::OpDmaWait{});
  add_abs(waits), hw::add_stop(waits);
  // On-chip maps.
  hw::Words on_chip;
  hw::add_abs_registers(on_chip, 32, 32, 16, 0, 16384);
  add(on_chip, hw::IfmRegion{.value = 2}), add(on_chip, hw::OfmRegion{.value = 2});
  add(on_chip, hw::Activation{}), add(on_chip, hw::AccFormat{});
  add(on_chip, hw::OfmBlkHeightM1{.value = 32}), add(on_chip, hw::OfmBlkWidthM1{.value = 32});
  add(on_chip, hw::OfmBlkDepthM1{.value = 16});
  beside = on_chip;
  add(on_chip, hw::OpElementwise{.mode = hw::ElementwiseMode::abs}), hw::add_stop(on_chip);
  hw::add_copy(beside, 0, 0, 3, 0, 375);
  add(beside, hw::OpElementwise{.mode = hw::ElementwiseMode::abs}), hw::add_stop(beside);
  const double alone_us = costs_of(alone).at(0).us, on_chip_us = costs_of(on_chip).at(0).us;
  EXPECT_NEAR(alone_us, 2 * 16384 / kDramBytes / 1000, 1e-9);  // waits for its bytes
  EXPECT_NEAR(costs_of(waits).at(0).us, alone_us + (500 + 3750 / kDramBytes) / 1000, 1e-9);
  EXPECT_LT(on_chip_us, alone_us / 2);
  EXPECT_NEAR(costs_of(beside).at(0).us, on_chip_us, 1e-9);
  // The arena of a U55 is on the chip.
  EXPECT_EQ(costs_of(alone, "ethos-u55-256").at(0).written_bytes, 0);
}

// Commands go on while two operations run: commands after the third one begin when the first one ends.
TEST(EthosuTiming, TwoOperationsRunAtATime) {
  hw::Words registers;
  hw::add_abs_registers(registers, 32, 32, 16, 0, 16384);
  add(registers, hw::IfmRegion{.value = 2}), add(registers, hw::OfmRegion{.value = 2});
  add(registers, hw::Activation{}), add(registers, hw::AccFormat{});
  add(registers, hw::OfmBlkHeightM1{.value = 32}), add(registers, hw::OfmBlkWidthM1{.value = 32});
  add(registers, hw::OfmBlkDepthM1{.value = 16});
  constexpr uint32_t kBytes = 375000;
  // An operation waits for a transfer after the others.
  const auto took_us = [&](int operations, bool copies) {
    hw::Words stream = registers;
    for (int i = 0; i < operations; ++i) add(stream, hw::OpElementwise{.mode = hw::ElementwiseMode::abs});
    if (copies) hw::add_copy(stream, 0, 0, 3, 0, kBytes), add(stream, hw::OpDmaWait{});
    add(stream, hw::OpElementwise{.mode = hw::ElementwiseMode::abs});
    hw::add_stop(stream);
    double all = 0;
    for (const auto& one : costs_of(stream)) all += one.us;
    return all;
  };
  const double one_us = took_us(0, false), copy_us = (500 + kBytes / kDramBytes) / 1000;
  EXPECT_NEAR(took_us(0, true), copy_us + one_us, 1e-9);
  EXPECT_NEAR(took_us(2, true), copy_us + one_us, 1e-9);
  EXPECT_NEAR(took_us(3, true), one_us + copy_us + one_us, 1e-9);
  EXPECT_NEAR(took_us(5, true), 3 * one_us + copy_us + one_us, 1e-9);
}

TEST(EthosuTiming, AStreamThatCannotBeReadIsAnError) {
  for (const hw::Words& stream : {hw::Words{0x3C00}, hw::Words{0x4000}}) {
    const Commands commands{.bytes = as_bytes(std::span<const uint32_t>(stream))};
    const auto timer = create_timer("imx93", Jobs::open);
    EXPECT_FALSE((*timer)->time_job({.commands = {&commands, 1}}, sim::Memory()).ok());
  }
}

}  // namespace
}  // namespace skillet::sim::ethosu
