#include "sim/vivante/visibility.h"

#include <gtest/gtest.h>

namespace skillet::sim::vivante {
namespace {

TEST(Visibility, AJobThatDoesNotFlushIsNotSeen) {
  Visibility v;
  v.wrote(Visibility::kTp, 100, 50, false);
  for (const auto& [address, size, seen] :
       {std::tuple<uint64_t, uint64_t, bool>{0, 100, true}, {150, 10, true}, {149, 1, false}, {90, 11, false}})
    EXPECT_EQ(v.read(address, size, "x").ok(), seen) << address;
}

TEST(Visibility, ALaterJobOfTheSameUnitFlushes) {
  Visibility v;
  v.wrote(Visibility::kTp, 100, 50, false);
  v.wrote(Visibility::kNn, 200, 50, true);
  EXPECT_FALSE(v.read(100, 1, "x").ok());
  EXPECT_TRUE(v.read(200, 1, "x").ok());
  v.wrote(Visibility::kTp, 300, 50, true);
  EXPECT_TRUE(v.read(100, 1, "x").ok());
}

TEST(Visibility, TheStateHoldsBackWhatAJobWouldFlush) {
  for (const auto unit : {Visibility::kNn, Visibility::kTp}) {
    Visibility v;
    v.set_control(unit == Visibility::kNn, unit == Visibility::kTp);
    v.wrote(unit, 100, 50, true);
    EXPECT_FALSE(v.read(100, 1, "x").ok());
    v.set_control(false, false);
    v.wrote(unit, 200, 50, true);
    EXPECT_TRUE(v.read(100, 1, "x").ok());
  }
}

TEST(Visibility, AStreamEndsWithAFlush) {
  Visibility v;
  EXPECT_TRUE(v.end_of_stream().ok());
  v.wrote(Visibility::kNn, 100, 50, true);
  EXPECT_FALSE(v.end_of_stream().ok());
  v.flush_all();
  EXPECT_TRUE(v.end_of_stream().ok());
}

}  // namespace
}  // namespace skillet::sim::vivante
