// How many results of the simulated RK3576 are off by one: convolutions with one scale and with many, sums and
// averages.
#include <cmath>

#include "rk3576_graphs.h"

namespace skillet {
namespace {

using namespace rockchip_graphs;  // NOLINT: the text forms

// Returns `count` scales, from 0.01 down to a 40th of it, not sorted.
std::string scales_apart(int count) {
  constexpr double kLargest = 0.01, kApart = 40;
  constexpr int kStep = 37;  // coprime to the counts
  std::string out;
  for (int i = 0; i < count; ++i)
    out += fmt::format("{}{:.7g}", i == 0 ? "[" : " ", kLargest * std::pow(kApart, -double(i * kStep % count) / count));
  return out + "]";
}

// Number of results that differ from the CPU's, all by 1.
struct Off {
  size_t operations = 0;
  int64_t differing = 0, all = 0;
};
Off off_by_one(const std::string& text) {
  Off off;
  const auto graph = ir::parse("graph \"\"\n" + text);
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  const auto target = runtime::open_target(kDevice);
  const auto session = runtime::Session::create(
      *graph, *target, {.compile = kUnseen, .allow_fallback = false, .keep_intermediates = true, .cores = 1});
  EXPECT_TRUE(session.ok()) << session.error().message;
  if (!session.ok()) return off;
  const auto programs = (*session)->programs(0);
  EXPECT_FALSE(programs.empty());
  if (programs.empty()) return off;
  off.operations = programs[0]->operations.size();
  run(**session, 5);
  const auto layers = (*session)->compare_layers(&*graph);
  EXPECT_TRUE(layers.ok());
  for (const auto& layer : *layers) {
    EXPECT_LE(layer.max_abs_diff, 1);
    off.differing += layer.differing, off.all += layer.elems;
  }
  return off;
}

// Channels sorted by scale, in several programs with a shift each: few results are off. In one program 1 % or more are.
TEST(Rk3576Scales, ScalesFarApart) {
  constexpr int kChannels = 160;
  constexpr double kMost = 0.001;
  const std::string own = scales_apart(kChannels);
  const std::string text =
      tensor(0, "1x12x12x16", 0.3F, 7, "int8") +
      fmt::format("tensor 1 \"f\" int8 {}x1x1x16 scale={} zero=0 axis=0 const=random:1\n", kChannels, own) +
      tensor(2, "1x12x12x160", 0.0235F, -128, "int8") +
      fmt::format("tensor 3 \"d\" int8 1x3x3x{} scale={} zero=0 axis=3 const=random:3\n", kChannels, own) +
      tensor(4, "1x12x12x160", 0.0235F, -128, "int8") +
      fmt::format("tensor 5 \"l\" int8 24x1x1x{} scale=0.01 zero=0 const=random:4\n", kChannels) +
      tensor(6, "1x12x12x24", 1.5F, 3, "int8") +
      "inputs 0\noutputs 6\nop 0 CONV_2D in=[0 1 -] out=[2] activation=relu6\n"
      "op 1 DEPTHWISE_CONV_2D in=[2 3 -] out=[4] activation=relu6\nop 2 CONV_2D in=[4 5 -] out=[6]\n";
  const Off off = off_by_one(text);
  EXPECT_GT(off.operations, 3U);
  EXPECT_GT(off.all, 0);
  EXPECT_LE(static_cast<double>(off.differing), kMost * static_cast<double>(off.all))
      << off.differing << " of " << off.all;
}

// Typical convolutions of networks: few results are off by one, with one scale and with many, with and without limits,
// for all zero points.
TEST(Rk3576Scales, FewResultsAreOff) {
  struct Case {
    const char *what, *type;
    int zero, out_zero;
    float out_scale;
    const char* more;
    double apart;  // largest scale divided by the smallest
    double most;   // accepted share of the results
  };
  const Case cases[] = {
      {"one scale, both signs", "int8", 4, -3, 0.35F, "", 1, 0.0008},
      {"behind a RELU, both signs", "int8", -128, 5, 0.35F, "", 1, 0.0008},
      {"one scale, RELU6", "int8", -128, -128, 0.0235F, "activation=relu6", 1, 0.0008},
      {"one scale, a large gain", "int8", -128, -128, 0.0035F, "activation=relu", 1, 0.002},
      {"scales apart, both signs", "int8", 4, -3, 0.35F, "", 6, 0.002},
      {"scales apart, RELU", "int8", -128, -128, 0.15F, "activation=relu", 6, 0.002},
      {"unsigned", "uint8", 3, 120, 0.35F, "", 1, 0.0008},
      {"RELU6 below the largest byte", "int8", -128, -128, 0.05F, "activation=relu6", 1, 0.0008},
      {"scales apart, RELU6 below the largest byte", "int8", -128, -100, 0.05F, "activation=relu6", 6, 0.002},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    constexpr int kChannels = 96, kStep = 37;
    std::string scales = c.apart == 1 ? "0.01" : "[";
    for (int i = 0; c.apart != 1 && i < kChannels; ++i)
      scales += fmt::format("{:.7g} ", 0.01 * std::pow(c.apart, -double(i * kStep % kChannels) / kChannels));
    if (c.apart != 1) scales.back() = ']';
    const bool is_signed = std::string_view(c.type) == "int8";
    const std::string text = tensor(0, "1x24x24x64", 0.03F, c.zero, c.type) +
                             fmt::format("tensor 1 \"f\" {} {}x1x1x64 scale={} zero={}{} const=random:3\n", c.type,
                                         kChannels, scales, is_signed ? 0 : 131, c.apart == 1 ? "" : " axis=0") +
                             tensor(2, "1x24x24x96", c.out_scale, c.out_zero, c.type) +
                             fmt::format("inputs 0\noutputs 2\nop 0 CONV_2D in=[0 1 -] out=[2] {}\n", c.more);
    const Off off = off_by_one(text);
    EXPECT_GT(off.all, 0);
    EXPECT_LE(static_cast<double>(off.differing), c.most * static_cast<double>(off.all))
        << off.differing << " of " << off.all;
  }
}

// Scales up to 40 apart: the ratio of two bytes is precise enough for all but a few results.
TEST(Rk3576Scales, FewSumsAreOff) {
  constexpr int kRatios = 16;
  constexpr double kMost = 0.003;
  for (const char* kind : {"ADD", "SUB"}) {
    Off off;
    for (int i = 0; i < kRatios; ++i) {
      const double ratio = std::pow(40.0, -(i + 0.37) / kRatios);
      const Off one = off_by_one(
          sum("1x32x32x32", 0.02F, static_cast<float>(0.02 * ratio), static_cast<float>(0.02 * (1 + ratio)), "", kind));
      EXPECT_GT(one.all, 0);
      off.differing += one.differing, off.all += one.all;
    }
    EXPECT_LE(static_cast<double>(off.differing), kMost * static_cast<double>(off.all))
        << kind << ": " << off.differing << " of " << off.all;
  }
}

// Averages are rounded once, halves away from byte 0, for any zero point.
TEST(Rk3576Scales, AveragesRoundOnce) {
  const auto of = [](const char* in, const char* out, int size, int zero = 0, const char* type = "uint8",
                     const char* more = "") {
    return tensor(0, in, 0.05F, zero, type) + tensor(1, out, 0.05F, zero, type) +
           fmt::format(
               "inputs 0\noutputs 1\nop 0 AVERAGE_POOL_2D in=[0] out=[1] padding=valid stride_h={0} stride_w={0} "
               "filter_h={0} filter_w={0} {1}\n",
               size, more);
  };
  const Row rows[] = {
      {"2x2", of("1x14x18x16", "1x7x9x16", 2), 1},
      {"3x3, which has no halves", of("1x12x9x40", "1x4x3x40", 3), 1},
      {"4x4", of("1x16x16x24", "1x4x4x24", 4), 1},
      {"6x6", of("1x12x12x24", "1x2x2x24", 6), 1},
      {"5x5", of("1x10x20x24", "1x2x4x24", 5, 37), 1},
      {"2x2 of bytes around 120", of("1x14x18x16", "1x7x9x16", 2, 120), 1},
      {"4x4 of bytes around 255", of("1x16x16x24", "1x4x4x24", 4, 255), 1},
      {"2x2 of signed bytes", of("1x14x18x16", "1x7x9x16", 2, 0, "int8"), 1},
      {"2x2 of signed bytes around -7", of("1x14x18x16", "1x7x9x16", 2, -7, "int8"), 1},
      {"2x2 of signed bytes above -128", of("1x14x18x16", "1x7x9x16", 2, -128, "int8", "activation=relu"), 1},
      {"4x4 of signed bytes around 11", of("1x16x16x24", "1x4x4x24", 4, 11, "int8"), 1},
      {"6x6 of signed bytes around 127", of("1x12x12x24", "1x2x2x24", 6, 127, "int8"), 1},
      {"7x7 of signed bytes around -20", of("1x14x14x24", "1x2x2x24", 7, -20, "int8"), 1},
  };
  judge(rows, 0, kDevice);
}

// Planes larger than a filter are averaged in two steps that both round to a byte.
TEST(Rk3576Scales, AveragesOfPlanesAreOffByOneAtMost) {
  constexpr int kChannels = 1024;
  const std::pair<int, int> planes[] = {{2, 8}, {4, 8}, {8, 4}, {1, 8}, {8, 8}, {9, 9}, {3, 14}, {13, 13}, {2, 13}};
  for (const auto& plane : planes) {
    const auto [rows, columns] = plane;
    for (const char* op : {"MEAN", "AVERAGE_POOL_2D", "AVERAGE_POOL_2D with RELU"}) {
      const bool is_mean = std::string_view(op) == "MEAN", has_limit = std::string_view(op).ends_with("RELU");
      for (const int zero : {0, 125, 130, 255}) {
        SCOPED_TRACE(fmt::format("{}x{} {} around {}", rows, columns, op, zero));
        const float out_scale = is_mean && rows > 1 ? 0.065F : 0.05F;  // pools keep the scale
        const std::string in = fmt::format("1x{}x{}x{}", rows, columns, kChannels);
        const std::string pool =
            fmt::format("padding=valid filter_h={} filter_w={} {}", rows, columns, has_limit ? "activation=relu" : "");
        const Off off = off_by_one(tensor(0, in.c_str(), 0.05F, zero) + tensor(1, "1x1x1x1024", out_scale, zero) +
                                   numbers(2, "2", {1, 2}) + "inputs 0\noutputs 1\n" +
                                   (is_mean ? "op 0 MEAN in=[0 2] out=[1] keep_dims=true\n"
                                            : fmt::format("op 0 AVERAGE_POOL_2D in=[0] out=[1] {}\n", pool)));
        EXPECT_EQ(off.all, kChannels);
        EXPECT_LT(off.differing, kChannels / 2);
      }
    }
  }
}

}  // namespace
}  // namespace skillet
