// plan_memory(): a table, and all small cases against the smallest plan.
#include "program/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "program/testing/smallest_plan.h"

namespace skillet::npu {
namespace {

void expect_valid(std::span<const Lifetime> lifetimes, uint64_t align, const MemoryPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), lifetimes.size());
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % align, 0U);
    EXPECT_LE(plan.offsets[i] + lifetimes[i].size_bytes, plan.size_bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool together = lifetimes[i].first <= lifetimes[j].last && lifetimes[j].first <= lifetimes[i].last;
      const bool apart = plan.offsets[i] + lifetimes[i].size_bytes <= plan.offsets[j] ||
                         plan.offsets[j] + lifetimes[j].size_bytes <= plan.offsets[i];
      EXPECT_TRUE(!together || apart) << i << " and " << j;
    }
  }
}

TEST(MemoryPlan, OfTheTable) {
  struct Row {
    const char* what;
    std::vector<Lifetime> lifetimes;
    uint64_t align, size;
  };
  const Row rows[] = {
      {"nothing", {}, 64, 0},
      {"one", {{100, 0, 3}}, 64, 128},
      {"no bytes", {{0, 0, 3}, {64, 0, 3}}, 64, 64},
      {"a chain: two at a time", {{64, 0, 1}, {128, 1, 2}, {64, 2, 3}, {128, 3, 4}}, 64, 192},
      {"all at once", {{10, 0, 9}, {20, 0, 9}, {30, 0, 9}}, 1, 60},
      {"one after the other, in any order", {{10, 8, 9}, {20, 0, 1}, {30, 4, 5}}, 1, 30},
      {"a residual connection", {{64, 0, 3}, {256, 1, 2}, {64, 2, 3}, {64, 3, 4}}, 64, 384},
      {"what is needed at one step only", {{8, 2, 2}, {8, 2, 2}, {8, 3, 3}}, 8, 16},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    const MemoryPlan plan = plan_memory(row.lifetimes, row.align);
    expect_valid(row.lifetimes, row.align, plan);
    EXPECT_EQ(plan.size_bytes, row.size);
  }
}

TEST(MemoryPlan, OfSmallCasesIsNearTheSmallest) {
  std::mt19937 random(1);
  uint64_t planned = 0, possible = 0;
  for (int i = 0; i < 400; ++i) {
    const std::vector<Lifetime> lifetimes = testing::random_lifetimes(random, 2 + random() % 5);
    const MemoryPlan plan = plan_memory(lifetimes, 1);
    expect_valid(lifetimes, 1, plan);
    const uint64_t oracle = testing::smallest_memory(lifetimes), least = least_memory(lifetimes, 1);
    EXPECT_LE(least, oracle);
    EXPECT_LE(oracle, plan.size_bytes);
    planned += plan.size_bytes, possible += oracle;
  }
  EXPECT_LE(planned, possible + possible / 100) << "together within 1 % of what is possible";
}

// Chains with branches, as in networks: close to the lower bound.
TEST(MemoryPlan, OfNetworksIsNearWhatIsNeededAtOnce) {
  std::mt19937 random(2);
  for (int i = 0; i < 50; ++i) {
    std::vector<Lifetime> lifetimes;
    for (uint32_t step = 0; step < 80; ++step)
      lifetimes.push_back({(1 + random() % 40) * 64, step, step + (random() % 4 == 0 ? 3U : 1U)});
    const MemoryPlan plan = plan_memory(lifetimes, 64);
    expect_valid(lifetimes, 64, plan);
    EXPECT_LE(plan.size_bytes, least_memory(lifetimes, 64) * 11 / 10) << i;
  }
}

// No placement order may be removed: the total size of all plans must not grow.
TEST(MemoryPlan, OfManyIsAsSmallAsItWas) {
  std::mt19937 random(3);
  uint64_t planned = 0, least = 0;
  for (int i = 0; i < 400; ++i) {
    const std::vector<Lifetime> lifetimes = testing::random_lifetimes(random, 8 + random() % 40);
    const MemoryPlan plan = plan_memory(lifetimes, 1);
    expect_valid(lifetimes, 1, plan);
    planned += plan.size_bytes, least += least_memory(lifetimes, 1);
  }
  EXPECT_EQ(least, 30485U);
  EXPECT_EQ(planned, 30497U);
}

}  // namespace
}  // namespace skillet::npu
