// Hand-written streams: their results, and faults for forbidden actions.
#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <random>

#include "base/bytes.h"
#include "base/stop.h"
#include "npus/ethosu/hw/testing/streams.h"
#include "npus/ethosu/sim/ethosu.h"
#include "npus/ethosu/sim/generation.h"

namespace skillet::sim::ethosu {
namespace {

constexpr uint64_t kConstants = 0x30000, kMaps = 0x40000;
constexpr uint64_t kBudget = uint64_t{1} << 20;

using hw::add;

// A job's memory: 4096 bytes of constants, 0, 1, 2, ..., some bytes of feature maps, and on-chip memory if requested.
class Job {
 public:
  explicit Job(std::string_view chip = "ethos-u55-128", size_t map_bytes = 4096) : chip_(chip), maps_(map_bytes) {
    for (size_t i = 0; i < constants_.size(); ++i) constants_[i] = static_cast<uint8_t>(i);
  }

  // Empty if it ran to its end.
  std::string run(const std::vector<uint32_t>& stream, uint64_t sram_bytes = 0, uint64_t work = kBudget) {
    Memory memory;
    EXPECT_TRUE(memory.map_to_read(kConstants, constants_, "constants").ok());
    EXPECT_TRUE(memory.map(kMaps, maps_, "maps").ok());
    const uint64_t slots[] = {kConstants, kMaps};
    const Commands commands{.bytes = as_bytes(std::span<const uint32_t>(stream))};
    const auto done = make_simulator(*hw::find_chip(chip_), work)
                          ->run({.commands = {&commands, 1}, .slots = slots, .sram_bytes = sram_bytes}, memory);
    return done.ok() ? "" : done.error().message;
  }
  const Bytes& maps() const { return maps_; }

 private:
  std::string_view chip_;
  Bytes constants_ = Bytes(4096), maps_;
};

void add_transfer(std::vector<uint32_t>& stream, uint64_t to, bool is_table = false) {
  add(stream, hw::Dma0SrcRegion{.region = 0});
  add(stream, hw::Dma0Src{.value = 16});
  add(stream, hw::Dma0DstRegion{.region = is_table ? 3U : 1U, .internal = is_table});
  add(stream, hw::Dma0Dst{.value = to});
  add(stream, hw::Dma0Len{.value = 256});
  add(stream, hw::OpDmaStart{});
}

// |x| of 2 x 3 pixels of 4 channels, from `from` on, to byte 2048.
void add_abs(std::vector<uint32_t>& stream, uint64_t from, uint32_t function = 0) {
  hw::add_abs_registers(stream, 2, 3, 4, from, 2048);
  add(stream, hw::Activation{.function = function});
  add(stream, hw::OpElementwise{.mode = hw::ElementwiseMode::abs});
}

TEST(EthosuStream, ATransferAndAnOperationRun) {
  std::vector<uint32_t> stream;
  add_transfer(stream, 0);
  add(stream, hw::OpDmaWait{});
  add_abs(stream, 200);
  add(stream, hw::OpStop{.mask = 0xFFFF});
  Job job;
  ASSERT_EQ(job.run(stream), "");
  for (size_t i = 0; i < 256; ++i) ASSERT_EQ(job.maps()[i], static_cast<uint8_t>(16 + i)) << i;
  // 216 is -40, which becomes half of 40. Ties round away from zero.
  EXPECT_EQ(job.maps()[2048], 20);
  EXPECT_EQ(job.maps()[2049], 20);
  EXPECT_EQ(job.maps()[2050], 19);
}

// On-chip memory is region 2, with the job's size, and contains nothing from an earlier job.
TEST(EthosuStream, MemoryOnTheChipIsRegion2) {
  std::vector<uint32_t> to_chip, from_chip;
  add_transfer(to_chip, 0);
  to_chip.resize(to_chip.size() - 1);
  add(to_chip, hw::Dma0DstRegion{.region = 2}), add(to_chip, hw::OpDmaStart{}), add(to_chip, hw::OpDmaWait{});
  for (std::vector<uint32_t>* stream : {&to_chip, &from_chip}) {
    add(*stream, hw::Dma0SrcRegion{.region = 2}), add(*stream, hw::Dma0Src{}), add(*stream, hw::Dma0Len{.value = 256});
    add(*stream, hw::Dma0DstRegion{.region = 1}), add(*stream, hw::Dma0Dst{.value = 512});
    add(*stream, hw::OpDmaStart{}), add(*stream, hw::OpStop{.mask = 0xFFFF});
  }
  Job job;
  ASSERT_EQ(job.run(to_chip, 256), "");
  EXPECT_EQ(job.maps()[512], 16);
  ASSERT_EQ(job.run(from_chip, 256), "");
  EXPECT_NE(job.maps()[512], 16);
  EXPECT_NE(job.run(from_chip, 255).find("leave region 2 of 255 bytes"), std::string::npos);
  EXPECT_NE(job.run(from_chip).find("there is no buffer in region 2"), std::string::npos);
  EXPECT_NE(job.run(from_chip, uint64_t{1} << 40).find("more than any chip has"), std::string::npos);
}

// Two of rows 0 to 3 are at 0 and two at 3072: the bytes between are free, as in the stripes of Vela's cascades.
TEST(EthosuStream, TilesAreTouchedApart) {
  for (const auto& [to, is_free] : {std::pair(1024U, true), {3072U, false}}) {
    std::vector<uint32_t> stream;
    hw::add_abs_registers(stream, 4, 4, 4, 0, 2048);
    add(stream, hw::IfmHeight0M1{.value = 2}), add(stream, hw::IfmBase2{.value = 3072});
    add(stream, hw::Activation{}), add(stream, hw::IfmUpscale{});
    add(stream, hw::OpElementwise{.mode = hw::ElementwiseMode::abs});
    hw::add_copy(stream, 0, 0, 1, to, 16);
    hw::add_stop(stream);
    const std::string said = Job().run(stream);
    EXPECT_EQ(said.empty(), is_free) << said;
  }
}

TEST(EthosuStream, WhatItMayNotDoIsAFault) {
  struct Case {
    const char* what;
    std::function<void(std::vector<uint32_t>&)> make;
    const char* says;
  };
  const Case cases[] = {
      {"leaves a region", [](auto& s) { add_transfer(s, 3841); },
       "dma0_dst: 256 bytes at 0xf01 leave region 1 of 4096 bytes"},
      {"writes constants", [](auto& s) { add_transfer(s, 0), add(s, hw::Dma0DstRegion{}), add(s, hw::OpDmaStart{}); },
       "region 0 holds constants"},
      {"has no buffer",
       [](auto& s) {
         add_abs(s, 0), add(s, hw::IfmRegion{.value = 5}), add(s, hw::OpElementwise{.mode = hw::ElementwiseMode::abs});
       },
       "there is no buffer in region 5"},
      {"reads before a transfer ends", [](auto& s) { add_transfer(s, 0), add_abs(s, 200); },
       "before an op_dma_wait for command"},
      {"overwrites what an operation reads", [](auto& s) { add_abs(s, 200), add_transfer(s, 0); },
       "before an op_kernel_wait for command"},
      {"lacks a register", [](auto& s) { add(s, hw::OpConv{}); }, "was never set"},
      {"has an unknown command", [](auto& s) { s.push_back(0x3FF); }, "0x000003ff is no command that is known"},
      {"has unknown bits", [](auto& s) { s.push_back(hw::IfmUpscale::kAddress | 0x80000000); },
       "ifm_upscale: unknown bits"},
      {"uses an unknown function", [](auto& s) { add_abs(s, 0, 9); }, "activation.function 9 is unknown"},
      {"has rows on a U55",
       [](auto& s) {
         add_transfer(s, 0), add(s, hw::OpDmaWait{}),
             add(s, hw::Dma0DstRegion{.region = 1, .stride_mode = hw::StrideMode::d2});
         add(s, hw::OpDmaStart{});
       },
       "transfers of one dimension only"},
  };
  for (const Case& c : cases) {
    std::vector<uint32_t> stream;
    c.make(stream);
    add(stream, hw::OpStop{.mask = 0xFFFF});
    const std::string said = Job().run(stream);
    EXPECT_NE(said.find(c.says), std::string::npos) << c.what << ": " << said;
    EXPECT_NE(said.find("of the stream"), std::string::npos) << c.what << ": " << said;
  }
  EXPECT_NE(Job().run({hw::OpDmaWait::kAddress}).find("no op_stop"), std::string::npos);
}

// Each of size x size results is the largest of 64 x 64 values.
std::vector<uint32_t> pool_of(uint32_t size) {
  std::vector<uint32_t> stream;
  hw::add_abs_registers(stream, size, size, 1, 0, 0);
  add(stream, hw::Activation{}), add(stream, hw::IfmUpscale{}),
      add(stream, hw::KernelStride{.x = 1, .y = 1, .dilation_x = 1, .dilation_y = 1});
  add(stream, hw::KernelHeightM1{.value = 64}), add(stream, hw::KernelWidthM1{.value = 64});
  add(stream, hw::IfmPadTop{}), add(stream, hw::IfmPadBottom{}), add(stream, hw::IfmPadLeft{}),
      add(stream, hw::IfmPadRight{});
  add(stream, hw::IfmWidth0M1{.value = 1 << 16}), add(stream, hw::IfmHeight0M1{.value = 1 << 16});
  add(stream, hw::IfmStrideX{}), add(stream, hw::IfmStrideY{.value = 1});
  add(stream, hw::OpPool{.mode = hw::PoolMode::max}), add(stream, hw::OpStop{.mask = 0xFFFF});
  return stream;
}

// For any limit of the simulator, a few words and 4096 bytes of constants get only a share.
TEST(EthosuStream, ASmallFileMayTakeLittle) {
  EXPECT_EQ(Job().run(pool_of(16), 0, UINT64_MAX), "");
  const std::string said = Job("ethos-u55-128", 1 << 20).run(pool_of(1000), 0, UINT64_MAX);
  EXPECT_NE(said.find("op_pool: its 36864000000 products and elements are more than this simulator takes for a stream "
                      "and constants of 4356 bytes"),
            std::string::npos)
      << said;
  // Overlapping elements are many elements in little memory.
  EXPECT_NE(
      Job().run(pool_of(1000), 0, UINT64_MAX).find("ofm of 1000x1000x1 elements has no place in region 1 of 4096"),
      std::string::npos);
}

TEST(EthosuStream, ARequestToStopEndsAJob) {
  request_stop(SIGINT);
  const std::string said = Job("ethos-u55-128", 1 << 20).run(pool_of(16), 0, UINT64_MAX);
  request_stop(0);
  EXPECT_NE(said.find("op_pool: stopped by SIGINT"), std::string::npos) << said;
}

// Without SHRAM reserved for tables, an operation without a table overwrites them.
TEST(EthosuStream, ATableIsLostOnSmallChips) {
  for (const auto& [chip, address, is_lost] :
       {std::tuple{"ethos-u55-32", 0x3800, true}, {"ethos-u55-128", 0x5800, false}}) {
    std::vector<uint32_t> stream;
    add_transfer(stream, static_cast<uint64_t>(address), true);
    add(stream, hw::OpDmaWait{});
    add_abs(stream, 0, 16);
    std::vector<uint32_t> twice = stream;
    add(stream, hw::OpStop{.mask = 0xFFFF});
    EXPECT_EQ(Job(chip).run(stream), "");
    add_abs(twice, 0);
    add_abs(twice, 0, 16);
    add(twice, hw::OpStop{.mask = 0xFFFF});
    EXPECT_EQ(Job(chip).run(twice).find("its table is lost") != std::string::npos, is_lost) << chip;
  }
}

// Any bits of a stream may be wrong: the result is an answer, and nothing outside the buffers is accessed (sanitizers
// check).
TEST(EthosuStream, WhatNoRegisterHoldsIsLimited) {
  constexpr int64_t kLarge = int64_t{1} << 40, kMost = (int64_t{1} << 62) - 1;
  EXPECT_EQ(rescale(kLarge, {1U << 31, 0}, hw::Rounding::natural), kMost);
  EXPECT_EQ(rescale(-kLarge, {1U << 31, 0}, hw::Rounding::twice), -kMost);
  EXPECT_EQ(OperandRule{.factor = kLarge}.of(-kLarge), -kMost);
}

TEST(EthosuStream, ForgedStreamsHaveAnAnswer) {
  std::vector<uint32_t> stream;
  add_transfer(stream, 0);
  add(stream, hw::OpDmaWait{});
  add_abs(stream, 200);
  add(stream, hw::OpStop{.mask = 0xFFFF});
  std::minstd_rand random(1);
  constexpr int kStreams = 3000;
  int faults = 0;
  for (int i = 0; i < kStreams; ++i) {
    std::vector<uint32_t> forged = stream;
    for (uint32_t k = 0; k <= random() % 3; ++k) forged[random() % forged.size()] ^= 1U << random() % 32;
    faults += Job(i % 2 == 0 ? "ethos-u55-64" : "ethos-u65-512").run(forged).empty() ? 0 : 1;
  }
  EXPECT_GT(faults, kStreams / 4);
  EXPECT_LT(faults, kStreams);
}

}  // namespace
}  // namespace skillet::sim::ethosu
