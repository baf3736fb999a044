// Statistics of times, clocks in a fake sysfs, agreement of outputs, ends of lines.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numeric>

#include "base/testing/own_folder.h"
#include "tools/run/agreement.h"
#include "tools/show/canvas.h"
#include "tools/show/statistics.h"
#include "tools/time/clocks.h"

namespace skillet::tools {
namespace {

TEST(Statistics, PercentilesAreValuesThatOccurred) {
  std::vector<double> hundred(100);
  std::iota(hundred.rbegin(), hundred.rend(), 1);
  struct Case {
    std::vector<double> values;
    double min, mean, median, p90, p99, max;
  };
  const Case kCases[] = {{hundred, 1, 50.5, 50, 90, 99, 100},
                         {{3}, 3, 3, 3, 3, 3, 3},
                         {{4, 1}, 1, 2.5, 1, 4, 4, 4},
                         {{5, 1, 3}, 1, 3, 3, 5, 5, 5},
                         {{}, 0, 0, 0, 0, 0, 0}};
  for (const Case& c : kCases) {
    const Statistics s = statistics_of(c.values);
    EXPECT_EQ(s.count, c.values.size());
    EXPECT_EQ((std::vector{s.min, s.mean, s.median, s.p90, s.p99, s.max}),
              (std::vector{c.min, c.mean, c.median, c.p90, c.p99, c.max}));
  }
}

TEST(Clocks, AreWhatSysfsTells) {
  const std::string root = own_path("clocks");
  std::filesystem::remove_all(root);
  EXPECT_TRUE(read_clocks(root).empty());
  const auto put = [&](const std::string& path, std::string_view text) {
    std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
    ASSERT_TRUE(write_file(root + path, {reinterpret_cast<const uint8_t*>(text.data()), text.size()}).ok());
  };
  put("/sys/devices/system/cpu/cpufreq/policy4/scaling_governor", "ondemand\n");
  put("/sys/devices/system/cpu/cpufreq/policy4/scaling_cur_freq", "1800000\n");
  put("/sys/devices/system/cpu/cpufreq/boost", "1\n");
  put("/sys/class/devfreq/fdab0000.npu/cur_freq", "nonsense\n");
  put("/sys/class/devfreq/ff9a0000.gpu/cur_freq", "200000000\n");
  const std::vector<Clock> clocks = read_clocks(root);
  ASSERT_EQ(clocks.size(), 3U);
  EXPECT_EQ(clocks[0].name, "cpu4");
  EXPECT_EQ(clocks[0].governor, "ondemand");
  EXPECT_EQ(clocks[0].mhz, 1800);
  EXPECT_EQ(clocks[1].name, "fdab0000.npu");
  EXPECT_EQ(clocks[1].mhz, 0);
  EXPECT_EQ(clocks[2].mhz, 200);
  std::filesystem::remove_all(root);
}

TEST(Agreement, OfOutputs) {
  ir::Graph graph;
  graph.outputs = {graph.add_tensor({.name = "x", .dtype = ir::DType::uint8, .shape = {1, 4}})};
  struct Case {
    Bytes got, reference;
    bool same_class;
    double equal, cosine, psnr_db, largest;
  };
  const double kEndless = std::numeric_limits<double>::infinity();
  const Case kCases[] = {{{0, 1, 2, 3}, {0, 1, 2, 3}, true, 1, 1, kEndless, 0},
                         {{0, 2, 4, 6}, {0, 1, 2, 3}, true, 0.25, 1, 10 * std::log10(9.0 * 4 / 14), 3},
                         {{9, 0, 0, 0}, {0, 0, 0, 9}, false, 0.5, 0, 10 * std::log10(81.0 * 4 / 162), 9},
                         {{1, 0, 0, 0}, {1, 1, 0, 0}, true, 0.75, std::sqrt(0.5), 10 * std::log10(4.0), 1},
                         {{1, 1, 0, 0}, {1, 0, 0, 0}, true, 0.75, std::sqrt(0.5), 10 * std::log10(4.0), 1},
                         {{0, 0, 0, 0}, {0, 0, 0, 0}, true, 1, 1, kEndless, 0},
                         {{0, 0, 0, 0}, {0, 0, 0, 5}, false, 0.75, 0, 10 * std::log10(25.0 * 4 / 25), 5},
                         {{1, 1, 1, 0}, {1, 1, 1, 0}, true, 1, 1, kEndless, 0}};  // 3 / sqrt(3) / sqrt(3) > 1
  for (const Case& c : kCases) {
    const Agreement a = agreement_of(graph, std::vector<Bytes>{c.got}, std::vector<Bytes>{c.reference});
    EXPECT_EQ(a.same_class.is_same, c.same_class);
    EXPECT_EQ(a.equal, c.equal);
    EXPECT_NEAR(a.cosine, c.cosine, 1e-12);
    EXPECT_LE(a.cosine, 1);  // `eval` takes the least of all pictures
    EXPECT_EQ(a.largest_difference(), c.largest);
    if (std::isinf(c.psnr_db)) {
      EXPECT_EQ(a.psnr_db, c.psnr_db);
    } else {
      EXPECT_NEAR(a.psnr_db, c.psnr_db, 1e-9);
    }
  }
}

TEST(Agreement, WhatIsNoFiniteNumber) {
  ir::Graph graph;
  graph.outputs = {graph.add_tensor({.name = "x", .dtype = ir::DType::float32, .shape = {1, 3}})};
  constexpr float endless = std::numeric_limits<float>::infinity(), no_number = std::numeric_limits<float>::quiet_NaN();
  struct Case {
    std::vector<float> got, reference;
    double equal, cosine;
  };
  const Case kCases[] = {{{1, 2, no_number}, {1, 2, no_number}, 1, 1},
                         {{1, 2, endless}, {1, 2, endless}, 1, 1},
                         {{1, 2, no_number}, {1, 2, 3}, 2 / 3.0, 0},
                         {{1, 2, 3}, {1, 2, endless}, 2 / 3.0, 0},
                         {{1, 2, -endless}, {1, 2, endless}, 2 / 3.0, 0}};
  const auto bytes = [](const std::vector<float>& values) {
    Bytes out(values.size() * 4);
    for (size_t i = 0; i < values.size(); ++i) store_le(out.data() + i * 4, values[i]);
    return std::vector<Bytes>{out};
  };
  for (const Case& c : kCases) {
    const Agreement a = agreement_of(graph, bytes(c.got), bytes(c.reference));
    EXPECT_NEAR(a.equal, c.equal, 1e-12);
    EXPECT_NEAR(a.cosine, c.cosine, 1e-12);
    EXPECT_EQ(a.psnr_db, c.equal == 1 ? endless : -endless);
  }
}

TEST(Truth, IsReadLineByLine) {
  const auto lines = parse_truth("a b.png 3\r\n\n  \nc.png\t12\n");
  ASSERT_TRUE(lines.ok()) << lines.error().message;
  ASSERT_EQ(lines->size(), 2U);
  EXPECT_EQ((*lines)[0].name, "a b.png");
  EXPECT_EQ((*lines)[0].index, 3);
  EXPECT_EQ((*lines)[1].name, "c.png");
  EXPECT_EQ((*lines)[1].index, 12);
  for (const char* wrong :
       {"a.png", "a.png x", "a.png -1", "a.png 3x", "a.png 99999999999999999999", "3", "a.png 3\na.png 3"})
    EXPECT_FALSE(parse_truth(wrong).ok()) << wrong;
}

// A line contains both its end points, and no pixels beyond them.
TEST(Canvas, ALineHasBothItsEnds) {
  for (const auto& [from, to] : {std::pair(Point{2, 3}, Point{12, 3}), {Point{12, 3}, Point{2, 3}}}) {
    Picture picture{.width_px = 16, .height_px = 7, .channels = 3, .pixels = Bytes(16 * 7 * 3)};
    line(picture, from, to, {255, 255, 255}, 1);
    const auto at = [&](int x) { return picture.pixels[static_cast<size_t>(3 * 16 + x) * 3]; };
    for (int x = 2; x <= 12; ++x) EXPECT_GT(at(x), 0) << x;
    EXPECT_EQ(at(14), 0);
    EXPECT_EQ(at(0), 0);
  }
}

}  // namespace
}  // namespace skillet::tools
