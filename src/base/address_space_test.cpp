#include "base/address_space.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

namespace skillet {
namespace {

TEST(AddressSpace, TakesTheLowestRangeAndMergesWhatComesBack) {
  AddressSpace space(0x1000, 0x5000, 0x1000);
  EXPECT_EQ(space.take(1).value(), 0x1000u);
  EXPECT_EQ(space.take(0x1001).value(), 0x2000u);
  EXPECT_EQ(space.take(0x1000).value(), 0x4000u);
  const auto full = space.take(1);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().message, "no device addresses left for 1 bytes (largest free range: 0 bytes)");
  space.give_back(0x1000, 1);
  space.give_back(0x4000, 0x1000);
  EXPECT_FALSE(space.take(0x2000).ok());
  space.give_back(0x2000, 0x1001);
  EXPECT_EQ(space.take(0x4000).value(), 0x1000u);
  EXPECT_EQ(space.take(0).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(space.take(UINT64_MAX).error().code, ErrorCode::out_of_range);
}

TEST(AddressSpace, TakesARangeAtAnAddress) {
  AddressSpace space(0x1000, 0x9000, 0x1000);
  EXPECT_TRUE(space.take_at(0x4000, 0x1001));
  for (const auto& [address, size] : {std::pair<uint64_t, uint64_t>{0x0, 1},
                                      {0x4000, 1},
                                      {0x5000, 1},
                                      {0x3000, 0x1001},
                                      {0x8000, 0x1001},
                                      {0x9000, 1},
                                      {0x8000, UINT64_MAX},
                                      {UINT64_MAX, 1}})
    EXPECT_FALSE(space.take_at(address, size)) << address << " " << size;
  EXPECT_TRUE(space.take_at(0x8000, 0x1000));
  EXPECT_TRUE(space.take_at(0x1000, 0x1000));
  EXPECT_EQ(space.take(0x2000).value(), 0x2000u);
  EXPECT_EQ(space.take(0x2000).value(), 0x6000u);
  EXPECT_FALSE(space.take(1).ok());
  space.give_back(0x4000, 0x1001);
  EXPECT_TRUE(space.take_at(0x5000, 1));
}

TEST(AddressSpace, ErrorsTellTheLargestRange) {
  AddressSpace space(0x1000, 0x9000, 0x1000);
  EXPECT_TRUE(space.take_at(0x3000, 0x1000));
  EXPECT_TRUE(space.take_at(0x8000, 0x1000));
  EXPECT_EQ(space.take(0x5000).error().message,
            "no device addresses left for 20480 bytes (largest free range: 16384 bytes)");
  EXPECT_EQ(space.take(0x4000).value(), 0x4000u);
  EXPECT_EQ(space.take(0x2001).error().message,
            "no device addresses left for 8193 bytes (largest free range: 8192 bytes)");
}

// Compares it with a list of pages.
TEST(AddressSpace, IsAListOfPages) {
  constexpr uint64_t kPages = 24, kPage = 0x1000;
  AddressSpace space(0, kPages * kPage, kPage);
  std::array<bool, kPages> taken{};
  std::vector<std::pair<uint64_t, uint64_t>> held;  // page, bytes
  uint32_t random = 1;
  const auto next = [&](uint64_t below) { return (random = random * 1664525 + 1013904223) / 65536 % below; };
  const auto set = [&](uint64_t page, uint64_t bytes, bool to) {
    for (uint64_t i = page; i < page + (bytes + kPage - 1) / kPage; ++i) taken[i] = to;
  };
  const auto is_free = [&](uint64_t page, uint64_t bytes) {
    for (uint64_t i = page; i < page + (bytes + kPage - 1) / kPage; ++i) {
      if (i >= kPages || taken[i]) return false;
    }
    return true;
  };
  for (int step = 0; step < 3000; ++step) {
    const uint64_t bytes = 1 + next(5 * kPage);
    if (next(3) == 0 && !held.empty()) {
      const size_t at = next(held.size());
      space.give_back(held[at].first * kPage, held[at].second);
      set(held[at].first, held[at].second, false);
      held.erase(held.begin() + static_cast<ptrdiff_t>(at));
    } else if (next(2) == 0) {
      const uint64_t page = next(kPages);
      ASSERT_EQ(space.take_at(page * kPage, bytes), is_free(page, bytes)) << "step " << step;
      if (!is_free(page, bytes)) continue;
      set(page, bytes, true);
      held.emplace_back(page, bytes);
    } else {
      uint64_t page = 0;
      while (page < kPages && !is_free(page, bytes)) ++page;
      const auto got = space.take(bytes);
      ASSERT_EQ(got.ok(), page < kPages) << "step " << step;
      if (!got.ok()) continue;
      ASSERT_EQ(*got, page * kPage) << "step " << step;
      set(page, bytes, true);
      held.emplace_back(page, bytes);
    }
  }
}

}  // namespace
}  // namespace skillet
