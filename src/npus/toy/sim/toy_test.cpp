// The toy's simulator executes descriptors, and stops at what it does not model.
#include "npus/toy/hw/toy.h"

#include <gtest/gtest.h>

#include "sim/sim.h"

namespace skillet::sim {
namespace {

namespace hw = ::skillet::toy::hw;

constexpr uint64_t kDescriptor = 0x1000, kFirst = 0x2000, kSecond = 0x3000, kResult = 0x4000;

class ToySim : public ::testing::Test {
 protected:
  ToySim() {
    hw::Descriptor fields{.bytes = 3, .least = 9};
    fields.first.offset = kFirst;
    fields.second.offset = kSecond;
    fields.result.offset = kResult;
    words_ = bits::pack(fields).value();
    const std::span<uint8_t> words(reinterpret_cast<uint8_t*>(words_.data()), sizeof words_);
    EXPECT_TRUE(memory_.map(kDescriptor, words, "descriptor").ok());
    EXPECT_TRUE(memory_.map(kFirst, first_, "first").ok());
    EXPECT_TRUE(memory_.map(kSecond, second_, "second").ok());
    EXPECT_TRUE(memory_.map(kResult, result_, "result").ok());
  }
  std::string run(hw::Opcode opcode) {
    hw::Command command{.opcode = opcode};
    if (opcode == hw::Opcode::run) command.job_address.offset = kDescriptor;
    const auto done = chip_->execute(bits::pack(command).value(), memory_);
    return done.ok() ? "" : done.error().message;
  }

  bits::Words<hw::Descriptor> words_{};
  std::array<uint8_t, 3> first_{1 ^ 0x80, 200 ^ 0x80, 3 ^ 0x80}, second_{2 ^ 0x80, 100 ^ 0x80, 40 ^ 0x80}, result_{};
  Memory memory_;
  std::unique_ptr<Device> chip_ = create("toy").value();
};

TEST_F(ToySim, TakesTheLargestOfThree) {
  EXPECT_EQ(run(hw::Opcode::init), "");
  EXPECT_EQ(run(hw::Opcode::run), "");
  EXPECT_EQ(result_, (std::array<uint8_t, 3>{9 ^ 0x80, 200 ^ 0x80, 40 ^ 0x80}));
}

TEST_F(ToySim, HasToBeSetUpAgainAfterAReset) {
  EXPECT_EQ(run(hw::Opcode::run), "the chip is not set up");
  EXPECT_EQ(run(hw::Opcode::init), "");
  chip_->reset(0);
  EXPECT_EQ(run(hw::Opcode::run), "the chip is not set up");
}

TEST_F(ToySim, StopsAtWhatItDoesNotKnow) {
  EXPECT_EQ(run(hw::Opcode::init), "");
  EXPECT_NE(run(static_cast<hw::Opcode>(0x70FF)).find("opcode 0x70ff"), std::string::npos);
  struct Case {
    size_t word;
    uint32_t flip;
    const char* what;
  };
  const Case cases[] = {{0, 1, "descriptor.first_tag is 4, not 5"},
                        {1, 0x80000000, "unknown bits 0x80000000 in word 1"},
                        {2, 0x00100000, "result"},
                        {3, 0x00000004, "first"},
                        {4, 0x100, "unknown bits 0x00000100 in word 4"}};
  for (const Case& c : cases) {
    words_[c.word] ^= c.flip;
    EXPECT_NE(run(hw::Opcode::run).find(c.what), std::string::npos) << c.what << ": " << run(hw::Opcode::run);
    words_[c.word] ^= c.flip;
  }
  EXPECT_EQ(run(hw::Opcode::run), "");
}

}  // namespace
}  // namespace skillet::sim
