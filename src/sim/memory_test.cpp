#include <gtest/gtest.h>

#include "base/bytes.h"
#include "sim/sim.h"

namespace skillet::sim {
namespace {

struct TwoBuffers {
  Bytes low = Bytes(0x100), high = Bytes(0x200);
  Memory memory;
  TwoBuffers() {
    EXPECT_TRUE(memory.map(0x1000, low, "low").ok());
    EXPECT_TRUE(memory.map(0x2000, high, "high").ok());
  }
};

TEST(Memory, FindsBytesAnywhereInABuffer) {
  TwoBuffers t;
  EXPECT_EQ(t.memory.at(0x1000, 0x100, "x").value().data(), t.low.data());
  EXPECT_EQ(t.memory.at(0x20F0, 0x10, "x").value().data(), t.high.data() + 0xF0);
  EXPECT_EQ(t.memory.from(0x20F0, "x").value().size(), 0x110u);
  EXPECT_EQ(t.memory.at(0x20F0, 0, "x").value().size(), 0u);
}

TEST(Memory, FaultsNameTheNeighbours) {
  TwoBuffers t;
  const auto fault = [&](uint64_t address, uint64_t size) {
    const auto bytes = t.memory.at(address, size, "weights");
    return bytes.ok() ? "mapped" : bytes.error().message;
  };
  EXPECT_EQ(fault(0x1800, 4),
            "weights: 4 bytes at 0x1800 are not mapped; 0x700 bytes after the end of low [0x1000, 0x1100); 0x800 bytes "
            "before high [0x2000, 0x2200)");
  EXPECT_EQ(
      fault(0x10FE, 4),
      "weights: 4 bytes at 0x10fe are not mapped; starts in low [0x1000, 0x1100) and runs 0x2 bytes past its end; "
      "0xf02 bytes before high [0x2000, 0x2200)");
  EXPECT_EQ(fault(0, 1), "weights: 1 bytes at 0x0 are not mapped; 0x1000 bytes before low [0x1000, 0x1100)");
  EXPECT_EQ(fault(0x2200, 0),
            "weights: 0 bytes at 0x2200 are not mapped; 0x0 bytes after the end of high [0x2000, 0x2200)");
  EXPECT_EQ(t.memory.at(0x1000, UINT64_MAX, "x").error().code, ErrorCode::device);
  EXPECT_EQ(t.memory.from(0x1100, "x").error().code, ErrorCode::device);
  EXPECT_EQ(Memory{}.at(8, 1, "x").error().message, "x: 1 bytes at 0x8 are not mapped: the submission lists no buffer");
}

TEST(Memory, SomeMayOnlyBeRead) {
  TwoBuffers t;
  const Bytes constant(0x10, 7);
  ASSERT_TRUE(t.memory.map_to_read(0x1100, constant, "constants").ok());
  EXPECT_EQ(t.memory.at(0x1108, 8, "x").value()[0], 7);
  EXPECT_EQ(t.memory.check_written(0x1108, "x").error().message, "x: 0x1108 is written, but is read-only: constants");
  EXPECT_TRUE(t.memory.check_written(0x10FF, "x").ok());
  EXPECT_TRUE(t.memory.check_written(0x2000, "x").ok());
  EXPECT_FALSE(t.memory.check_written(0x1110, "x").ok()) << "nothing is there";
}

TEST(Memory, SomeMayNotBeTouched) {
  Bytes bytes(0x100);
  Memory memory;
  ASSERT_TRUE(memory.map_to_refuse(0x1000, bytes, "somebody writes it").ok());
  const auto refused = memory.at(0x1010, 4, "reader");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "reader: 4 bytes at 0x1010: somebody writes it");
  EXPECT_FALSE(memory.from(0x1010, "reader").ok());
  EXPECT_FALSE(memory.check_written(0x1010, "writer").ok());
  EXPECT_FALSE(memory.map_to_refuse(0x1010, bytes, "overlapping").ok());
}

TEST(Memory, RefusesOverlapsAndTheEndOfTheAddressSpace) {
  TwoBuffers t;
  Bytes bytes(0x20);
  for (uint64_t address : {0xFF0, 0x1000, 0x10FF, 0x1FE1, 0x21FF}) {
    EXPECT_FALSE(t.memory.map(address, bytes, "x").ok()) << address;
  }
  EXPECT_TRUE(t.memory.map(0x1100, bytes, "x").ok());
  EXPECT_TRUE(t.memory.map(0x1FE0, bytes, "y").ok());
  EXPECT_TRUE(t.memory.map(0xFFFFFFFFE0, bytes, "last").ok());
  EXPECT_EQ(t.memory.map(0xFFFFFFFFE1, bytes, "z").error().code, ErrorCode::out_of_range);
  EXPECT_EQ(t.memory.map(UINT64_MAX, bytes, "z").error().code, ErrorCode::out_of_range);
  EXPECT_FALSE(t.memory.map(0x9000, {}, "empty").ok());
  t.memory.unmap(0x1100);
  EXPECT_TRUE(t.memory.map(0x1100, bytes, "again").ok());
}

TEST(Job, IsOneListOfWordsForChipsThatTakeNothingElse) {
  const uint32_t words[] = {7, 8, 9};
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(words), sizeof words);
  const Commands whole{.bytes = bytes}, in_memory{.address = 0x1000, .size_bytes = 8}, none{};
  EXPECT_EQ(words_of({.commands = {&whole, 1}}).value()[2], 9u);
  EXPECT_TRUE(words_of({.commands = {&none, 1}}).value().empty());
  const Commands two[] = {whole, whole}, part{.bytes = bytes.first(6)}, inside{.bytes = bytes.subspan(1, 4)};
  EXPECT_FALSE(words_of({.commands = two}).ok());
  EXPECT_FALSE(words_of({.commands = {}}).ok());
  EXPECT_FALSE(words_of({.commands = {&in_memory, 1}}).ok());
  EXPECT_FALSE(words_of({.commands = {&part, 1}}).ok());
  EXPECT_FALSE(words_of({.commands = {&inside, 1}}).ok());
}

TEST(Create, UnknownChipIsAnArgumentError) {
  const auto device = create("no-such-chip");
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(device.error().message.find("no-such-chip"), std::string::npos);
}

}  // namespace
}  // namespace skillet::sim
