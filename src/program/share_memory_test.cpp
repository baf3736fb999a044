#include "program/share_memory.h"

#include <gtest/gtest.h>

namespace skillet::npu {
namespace {

using Lifetimes = std::vector<std::optional<Lifetime>>;

std::optional<Lifetime> steps(uint32_t first, uint32_t last) { return Lifetime{.first = first, .last = last}; }

// commands, input, three scratch buffers, output; each job reads the buffer before the one that it writes.
Program chain() {
  Program p{.chip = "none"};
  p.buffers = {{.name = "commands", .role = BufferRole::commands, .size_bytes = 64, .contents = Bytes(64)},
               {.name = "in", .role = BufferRole::input, .size_bytes = 100},
               {.name = "a", .size_bytes = 5000},
               {.name = "b", .size_bytes = 300},
               {.name = "c", .size_bytes = 4000},
               {.name = "out", .role = BufferRole::output, .size_bytes = 50}};
  for (uint8_t i = 0; i < 4; ++i) {
    const BufferId from = i + 1U, to = i + 2U;
    p.buffers[0].relocations.push_back({i * uint64_t{8}, from, 0});
    p.buffers[0].relocations.push_back({i * uint64_t{8} + 4, to, 16});
    Job job{.commands = {{0, i * uint64_t{8}, 8}}, .uses = {{from, true, false}, {to, false, true}}};
    p.jobs.push_back(std::move(job));
  }
  p.jobs[3].witness = {5, 40, 10};
  p.outputs = {{.tensor = 1, .buffer = 5, .offset_bytes = 4}};
  p.debug_map = {{2, 8, 4, "a's", 0}};
  return p;
}

TEST(ShareMemory, BuffersBecomePlacesAndAllNamesFollow) {
  Program p = chain();
  share_memory(p, Lifetimes{{}, {}, steps(0, 1), steps(1, 2), steps(2, 3), {}}, 256, 7);
  ASSERT_EQ(p.buffers.size(), 4U);
  EXPECT_EQ(p.buffers[0].name, "commands");
  EXPECT_EQ(p.buffers[1].name, "in");
  EXPECT_EQ(p.buffers[2].name, "out");
  EXPECT_EQ(p.buffers[3].name, "intermediates");
  // a and c share memory; b is alive with both.
  EXPECT_EQ(p.buffers[3].size_bytes, 5120U + 512U + 7U);
  const std::vector<Relocation> want = {{0, 1, 0},     {4, 3, 16},  {8, 3, 0},  {12, 3, 5120 + 16},
                                        {16, 3, 5120}, {20, 3, 16}, {24, 3, 0}, {28, 2, 16}};
  EXPECT_EQ(p.buffers[0].relocations, want);
  EXPECT_EQ(p.jobs[0].uses, (std::vector<BufferUse>{{1, true, false}, {3, false, true}}));
  EXPECT_EQ(p.jobs[1].uses, (std::vector<BufferUse>{{3, true, true}}));
  EXPECT_EQ(p.jobs[3].witness, (ByteRange{2, 40, 10}));
  EXPECT_EQ(p.outputs[0].buffer, 2U);
  EXPECT_EQ(p.outputs[0].offset_bytes, 4U);
  EXPECT_EQ(p.debug_map[0].buffer, 3U);
}

TEST(ShareMemory, AWitnessKeepsItsPlace) {
  for (const BufferId buffer : {BufferId{2}, BufferId{4}}) {
    Program p = chain();
    p.jobs[buffer - 2].witness = {buffer, 32, kWitnessBytes};
    share_memory(p, Lifetimes{{}, {}, steps(0, 1), steps(1, 2), steps(2, 3), {}}, 256);
    EXPECT_EQ(p.buffers[3].size_bytes, 5120U + 512U + 4096U);
    EXPECT_EQ(p.jobs[buffer - 2].witness.buffer, 3U);
  }
}

TEST(ShareMemory, WithoutLifetimesNothingChanges) {
  Program p = chain();
  share_memory(p, Lifetimes(p.buffers.size()), 256);
  EXPECT_EQ(p, chain());
  share_memory(p, {}, 256);
  EXPECT_EQ(p, chain());
}

}  // namespace
}  // namespace skillet::npu
