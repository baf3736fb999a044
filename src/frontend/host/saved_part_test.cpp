// What a host keeps of a part comes back as it was, or is refused.
#include "frontend/host/saved_part.h"

#include <gtest/gtest.h>

#include <random>

#include "frontend/host/testing/repaired.h"
#include "runtime/session.h"

namespace skillet::host {
namespace {

ir::Graph convolution() {
  return ir::parse(R"(graph "part"
tensor 0 "in" uint8 1x8x8x4 scale=0.5 zero=128
tensor 1 "filter" uint8 8x3x3x4 scale=0.25 zero=120 const=random:1
tensor 2 "bias" int32 8 scale=0.125 zero=0 const=[1 2 3 4 5 6 7 8]
tensor 3 "out" uint8 1x4x4x8 scale=4 zero=100
inputs 0
outputs 3
op 0 CONV_2D in=[0 1 2] out=[3] stride_h=2 stride_w=2
)")
      .value();
}

struct Saved {
  runtime::Target target = runtime::open_target("null:a311d").value();
  KeepingDriver driver{*target.driver};
  Bytes bytes;

  Saved() {
    target.driver = &driver;
    auto compiled = runtime::compile_for(target, convolution(), {}).value();
    bytes = save_part(target.chip.name, convolution(), driver.kept(compiled).value()).value();
  }
};

TEST(SavedPart, ComesBackAndIsNotCompiledAgain) {
  const Saved saved;
  auto part = read_part(saved.bytes);
  ASSERT_TRUE(part.ok()) << part.error().message;
  EXPECT_EQ(part->chip, "a311d");
  EXPECT_TRUE(part->is_of_this_build);
  EXPECT_EQ(ir::print(part->graph), ir::print(convolution())) << "constants have their hashes there";
  ASSERT_EQ(part->programs.size(), 1u);
  runtime::Target target = saved.target;
  KeepingDriver driver(*npu::driver_of(target.chip).value());
  driver.give(part->programs);
  target.driver = &driver;
  ASSERT_TRUE(runtime::compile_for(target, part->graph, {}).ok());
  EXPECT_EQ(driver.taken(), 1u);
  ASSERT_TRUE(runtime::compile_for(target, part->graph, {.compile = {.keep_intermediates = true}}).ok());
  EXPECT_EQ(driver.taken(), 1u) << "other options: another program";
}

TEST(SavedPart, DamagedBytesAreRefused) {
  const Saved saved;
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    Bytes bytes = saved.bytes;
    if (round % 3 == 0)
      bytes.resize(random() % bytes.size());
    else if (round % 3 == 1)
      bytes[random() % bytes.size()] ^= static_cast<uint8_t>(1 << random() % 8);
    else
      bytes[random() % 120] ^= static_cast<uint8_t>(1 << random() % 8);
    const auto part = read_part(bytes);
    ASSERT_FALSE(part.ok()) << round;
    EXPECT_NE(part.error().message, "");
  }
}

TEST(SavedPart, ForgedBytesAreRefusedOrGraphs) {
  const Saved saved;
  ASSERT_EQ(repaired(saved.bytes), saved.bytes);
  std::mt19937 random(2);
  int refused = 0;
  for (int round = 0; round < 500; ++round) {
    Bytes bytes = saved.bytes;
    for (int i = 0; i < 2; ++i) bytes[8 + random() % 800] = static_cast<uint8_t>(random());  // lengths, text, weights
    if (round % 4 == 0) bytes.resize(kHeaderBytes + random() % (bytes.size() - kHeaderBytes));
    const auto part = read_part(repaired(bytes));
    refused += part.ok() ? 0 : 1;
    EXPECT_TRUE(!part.ok() || ir::verify(part->graph).ok());
  }
  EXPECT_GT(refused, 250);
}

// Whoever makes the checksum right may write anything; where a program is odd, it is compiled again.
TEST(SavedPart, OddContentsAreRefused) {
  const Saved saved;
  auto part = read_part(saved.bytes).value();
  for (auto& [key, file] : part.programs) file = SharedBytes(Bytes(100, 7));
  part = read_part(save_part("a311d", part.graph, part.programs).value()).value();
  runtime::Target target = saved.target;
  KeepingDriver driver(*npu::driver_of(target.chip).value());
  driver.give(part.programs);
  target.driver = &driver;
  EXPECT_TRUE(runtime::compile_for(target, part.graph, {}).ok());
  EXPECT_EQ(driver.taken(), 0u);
  ir::Graph odd = convolution();
  odd.tensor(3).shape = {1, 5, 5, 8};
  EXPECT_FALSE(read_part(save_part("a311d", odd, {}).value()).ok());
  // Text that makes memory out of nothing.
  odd = convolution();
  odd.name = std::string(60, 'n');
  Bytes bytes = save_part("a311d", odd, {}).value();
  const auto at = std::search(bytes.begin(), bytes.end(), odd.name.begin(), odd.name.end());
  ASSERT_NE(at, bytes.end());
  std::ranges::copy(std::string_view("\"\ntensor 0 \"\" uint8 2000000000 const=zeros"), at);
  const auto huge = read_part(repaired(bytes));
  ASSERT_FALSE(huge.ok());
  EXPECT_NE(huge.error().message.find("constants"), std::string::npos) << huge.error().message;
  odd = convolution();
  odd.tensor(0).name = "x const=zeros";
  EXPECT_TRUE(read_part(save_part("a311d", odd, {}).value()).ok());
}

}  // namespace
}  // namespace skillet::host
