#include "base/address_space.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace skillet
