#include "sim/timing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace skillet::sim {
namespace {

constexpr TimingParameter kRows[] = {{"one", "both", "clock_ghz", 2, "GHz", "S", "x"},
                                     {"one", "open", "dram_gbps", 4, "GB/s", "F", "x"},
                                     {"one", "vendor", "dram_gbps", 8, "GB/s", "F", "x"},
                                     {"two", "both", "clock_ghz", 3, "GHz", "S", "x"}};

TEST(Timing, ParametersAreOfChipAndJobs) {
  const auto open = TimingParameters::find(kRows, "one", Jobs::open, {});
  const auto vendor = TimingParameters::find(kRows, "one", Jobs::vendor, {});
  ASSERT_TRUE(open.ok() && vendor.ok());
  EXPECT_EQ(open->get("clock_ghz"), 2);
  EXPECT_EQ(open->get("dram_gbps"), 4);
  EXPECT_EQ(vendor->get("dram_gbps"), 8);
}

TEST(Timing, ClocksBesideTheRowsAreEstimates) {
  const struct {
    std::vector<ParameterValue> overrides;
    std::string text;
  } kCases[] = {{{}, "at 2000 MHz"},
                {{{"dram_gbps", 5}}, "at 2000 MHz"},
                {{{"clock_ghz", 2}}, "at 2000 MHz"},
                {{{"clock_ghz", 1.5}}, "at 1500 MHz (an estimate: published times are at 2000 MHz)"}};
  for (const auto& row : kCases) {
    auto found = TimingParameters::find(kRows, "one", Jobs::open, row.overrides);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(print(Clock{found->get("clock_ghz"), found->row("clock_ghz")}), row.text);
  }
  EXPECT_EQ(print(Clock()), "");
}

TEST(Timing, OverridesAreChecked) {
  const auto with = [](std::string name, double value) {
    const ParameterValue one{std::move(name), value};
    return TimingParameters::find(kRows, "one", Jobs::open, {&one, 1});
  };
  EXPECT_EQ(with("dram_gbps", 5)->get("dram_gbps"), 5);
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_FALSE(with("dram_gbps", bad).ok()) << bad;
  EXPECT_EQ(with("dram_gbps", 0).error().message, "timing parameter dram_gbps = 0: must be more than 0");
  EXPECT_NE(with("dram", 1).error().message.find("no timing parameter 'dram'"), std::string::npos);
}

// For any setting times are finite: a parameter that is a divisor must not be 0.
TEST(Timing, NoParameterMakesTimesEndless) {
  const Layer layer{.id = 1,
                    .op = "conv",
                    .act = "swish",
                    .in_h = 8,
                    .in_w = 8,
                    .in_c = 3,
                    .out_h = 8,
                    .out_w = 8,
                    .out_c = 32,
                    .kh = 3,
                    .kw = 3,
                    .weights = 864};
  for (const TimingParameter& row : timing_parameters()) {
    if (row.jobs == "open") continue;
    for (const double value : {0.0, 1e-9, 0.5, 1.0, 1e6}) {
      const ParameterValue one{std::string(row.name), value};
      const auto timer = create_timer(row.chip, Jobs::vendor, {&one, 1});
      if (!timer.ok()) continue;
      const auto costs = (*timer)->time_layers({&layer, 1}, Fusion::alone);
      ASSERT_TRUE(costs.ok());
      EXPECT_TRUE(std::isfinite(total(*costs).us)) << row.chip << " " << row.name << " = " << value;
    }
  }
}

// A chip without measurements is not timed, and the error says so.
TEST(Timing, ChipsWithoutRowsAreRefused) {
  for (const char* chip : {"s905d3", "toy", "nothing", ""}) {
    for (const Jobs jobs : {Jobs::open, Jobs::vendor}) {
      const auto timer = create_timer(chip, jobs);
      ASSERT_FALSE(timer.ok()) << chip;
      EXPECT_EQ(timer.error().code, ErrorCode::unsupported);
      EXPECT_NE(timer.error().message.find("no parameters"), std::string::npos) << timer.error().message;
    }
  }
  for (const std::string_view chip : timed_chips(Jobs::open)) EXPECT_TRUE(create_timer(chip, Jobs::open).ok()) << chip;
}

TEST(Timing, RowsAreWellFormed) {
  std::set<std::string> seen;
  for (const TimingParameter& row : timing_parameters()) {
    const std::string key = fmt::format("{} {} {}", row.chip, row.jobs, row.name);
    EXPECT_TRUE(seen.insert(key).second) << key;
    EXPECT_TRUE(row.jobs == "both" || row.jobs == "open" || row.jobs == "vendor") << key;
    EXPECT_TRUE(row.mark == "S" || row.mark == "D" || row.mark == "K" || row.mark == "F") << key;
    EXPECT_GE(row.value, 0) << key;
    EXPECT_FALSE(row.unit.empty() || row.source.empty()) << key;
  }
}

TEST(Timing, UnitsOverlap) {
  const UnitTime busy[] = {{"MAC", 10}, {"DRAM", 6}};
  const auto us = [&](double overlap, double least) {
    Cost cost;
    cost.set(busy, overlap, least);
    EXPECT_EQ(cost.busiest().unit, "MAC");
    return cost.us;
  };
  EXPECT_EQ(us(1, 0), 10);
  EXPECT_EQ(us(0, 0), 16);
  EXPECT_EQ(us(0.5, 0), 13);
  EXPECT_EQ(us(1, 50), 50);
}

// In a network an addition is merged into the convolution before it; alone it is not.
TEST(Timing, LayersMerge) {
  const Layer conv{.id = 1,
                   .op = "conv",
                   .in_h = 8,
                   .in_w = 8,
                   .in_c = 32,
                   .out_h = 8,
                   .out_w = 8,
                   .out_c = 32,
                   .kh = 3,
                   .kw = 3,
                   .weights = 9216};
  Layer second = conv, add = conv;
  second.id = 2;
  second.inputs = {1};
  add.id = 3;
  add.op = "add";
  add.inputs = {1, 2};
  const Layer layers[] = {conv, second, add};
  const std::map<std::string, size_t> merged = {{"rk3588", 2}, {"a311d", 3}};
  for (const auto& [chip, count] : merged) {
    const auto timer = create_timer(chip, Jobs::vendor);
    if (!timer.ok()) continue;  // its family is not in this build
    EXPECT_EQ((*timer)->time_layers(layers, Fusion::network)->size(), count) << chip;
    EXPECT_EQ((*timer)->time_layers(layers, Fusion::alone)->size(), 3U) << chip;
  }
}

}  // namespace
}  // namespace skillet::sim
