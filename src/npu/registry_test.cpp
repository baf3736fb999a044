#include <gtest/gtest.h>

#include "base/vendors.h"
#include "npu/driver.h"

namespace skillet::npu {
namespace {

TEST(Registry, FindsEveryChipAndItsDriver) {
  for (const Driver* driver : drivers()) {
    ASSERT_FALSE(driver->chips().empty()) << driver->name();
    for (const Chip& chip : driver->chips()) {
      const auto found = find_chip(chip.name);
      ASSERT_TRUE(found.ok());
      EXPECT_EQ(found->title, chip.title);
      EXPECT_EQ(driver_of(*found).value(), driver);
    }
  }
}

TEST(Registry, UnknownNamesAreErrorsThatListTheKnownOnes) {
  const auto chip = find_chip("toaster");
  ASSERT_FALSE(chip.ok());
  EXPECT_EQ(chip.error().code, ErrorCode::invalid_argument);
  EXPECT_TRUE(chip.error().message.starts_with("no chip 'toaster' (known: ")) << chip.error().message;
  const std::string name = drivers()[0]->chips()[0].name;
  EXPECT_EQ(find_chip("sim:" + name).error().message, "no chip 'sim:" + name + "' (did you mean '" + name + "'?)");
  EXPECT_EQ(find_chip(name + "x").error().message, "no chip '" + name + "x' (did you mean '" + name + "'?)");
  for (const Error& error : {no_chip("rk3576", "driver", "known: a, b"), no_chip("rk3576", "simulator", "")}) {
    EXPECT_EQ(error.code, ErrorCode::unsupported);
    EXPECT_TRUE(error.message.starts_with("chip 'rk3576' is known, but ")) << error.message;
  }
  const auto driver = driver_of({.name = "x", .family = "toaster"});
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace skillet::npu
