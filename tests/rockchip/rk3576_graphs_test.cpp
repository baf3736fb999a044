// Where the RK3576 differs from the RK3588, on the simulated chip: sums as convolutions over both operands, tables
// behind a convolution, maxima with padding. At the chip's limits: a right result, or a reason that names the limit.
#include <atomic>
#include <thread>

#include "base/log.h"
#include "base/log_sink.h"
#include "kernels/rocket/fake/identity.h"
#include "rk3576_board.h"

namespace skillet {
namespace {

using namespace rockchip_graphs;  // NOLINT: the text forms

TEST(Rk3576Graphs, Sums) {
  const Row rows[] = {
      {"one scale", sum("1x16x16x32", 0.02F, 0.02F, 0.04F), 3},
      {"scales that no ratio of two weights has", sum("1x16x16x32", 0.02F, 0.020075F, 0.04F), 3},
      {"far apart", sum("1x16x16x32", 0.02F, 0.0007F, 0.02F), 3},
      {"unsigned", sum("1x7x5x24", 0.03F, 0.02F, 0.04F, "", "ADD", "uint8"), 3},
      {"RELU", sum("1x7x5x24", 0.03F, 0.02F, 0.04F, "activation=relu"), 3},
      {"RELU6", sum("1x7x5x24", 0.05F, 0.06F, 0.03F, "activation=relu6"), 3},
      {"RELU6 below the largest byte", sum("1x7x5x24", 0.05F, 0.06F, 0.08F, "activation=relu6"), 3},
      {"SUB", sum("1x7x5x24", 0.03F, 0.02F, 0.04F, "", "SUB"), 3},
      {"SUB the other way", sum("1x7x5x48", 0.02F, 0.03F, 0.04F, "", "SUB"), 3},
      {"three surfaces", sum("1x9x11x48", 0.02F, 0.03F, 0.04F), 3},
      {"one pixel", sum("1x1x1x112", 0.02F, 0.03F, 0.04F), 3},
      {"one channel", sum("1x5x5x1", 0.02F, 0.03F, 0.04F), 3},
      {"a row", sum("1x40", 0.02F, 0.03F, 0.04F), 3},
      {"a prime number of pixels", sum("1x1x4099x16", 0.02F, 0.03F, 0.04F), 3},
      {"a tensor and itself",
       tensor(0, "1x6x5x20", 0.02F, -7, "int8") + tensor(1, "1x6x5x20", 0.04F, 3, "int8") +
           "inputs 0\noutputs 1\nop 0 ADD in=[0 0] out=[1]\n",
       3},
  };
  judge(rows, 1, kDevice);
}

// Convolutions write their results side by side as operands: in a chain, only the network's input is copied. The
// operands' gain is a 15-bit multiplier times a pair of weights, so that each result equals the CPU kernels'.
TEST(Rk3576Graphs, SumsInTheMiddleBetweenTwoResults) {
  const char* const kImage = "1x16x16x32";
  const Row rows[] = {
      {"half of equal scales", sum(kImage, 0.1F, 0.1F, 0.2F), 3},
      {"a quarter", sum(kImage, 0.1F, 0.2F, 0.4F), 3},
      {"one to three", sum(kImage, 0.1F, 0.3F, 0.4F), 3},
      {"five eighths", sum(kImage, 0.1F, 0.1F, 0.16F), 3},
      {"of a difference", sum(kImage, 0.1F, 0.2F, 0.2F, "", "SUB"), 3},
      {"unsigned", sum(kImage, 0.1F, 0.05F, 0.1F, "", "ADD", "uint8"), 3},
  };
  judge(rows, 0, kDevice);
}

TEST(Rk3576Graphs, ResidualChains) {
  const auto chain = [](const char* shape, const char* filter) {
    std::string text = tensor(0, shape, 0.02F, 5) + weights(1, filter), ops;
    for (int i = 0; i < 3; ++i) {
      const int from = i == 0 ? 0 : 2 * i + 1;
      text += tensor(2 * i + 2, shape, 0.05F, 100 + i) + tensor(2 * i + 3, shape, 0.06F, 110 - i);
      ops += op(fmt::format("{} CONV_2D in=[{} 1 -] out=[{}]", 2 * i, from, 2 * i + 2).c_str()) +
             op(fmt::format("{} ADD in=[{} {}] out=[{}]", 2 * i + 1, from, 2 * i + 2, 2 * i + 3).c_str());
    }
    return text + "inputs 0\noutputs 7\n" + ops;
  };
  const Row rows[] = {
      {"whole groups", chain("1x8x8x32", "32x1x1x32"), 7},
      {"a part of one", chain("1x9x7x24", "24x3x3x24"), 7},
      {"one surface, which a group goes beyond", chain("1x9x7x16", "16x3x3x16"), 7},
      {"three surfaces", chain("1x5x5x48", "48x1x1x48"), 7},
      {"one pixel", chain("1x1x1x40", "40x1x1x40"), 7},
  };
  judge(rows, 1, kDevice);
}

// All 256 bytes give the CPU kernels' results.
TEST(Rk3576Graphs, Tables) {
  const auto of = [](const char* kind, const char* shape, float scale, int zero, float out, int out_zero) {
    return tensor(0, shape, scale, zero, "int8") + tensor(1, shape, out, out_zero, "int8") +
           fmt::format("inputs 0\noutputs 1\nop 0 {} in=[0] out=[1]\n", kind);
  };
  const Row rows[] = {
      {"LOGISTIC", of("LOGISTIC", "1x16x16x32", 0.05F, 3, 1.0F / 256, -128), 1},
      {"TANH", of("TANH", "1x16x16x24", 0.05F, 3, 1.0F / 128, 0), 1},
      {"HARD_SWISH", of("HARD_SWISH", "1x16x17x48", 0.05F, -20, 0.04F, -100), 1},
      {"ELU", of("ELU", "1x5x3x40", 0.05F, 20, 0.04F, -100), 1},
      {"a zero point at one end", of("LOGISTIC", "1x16x16x16", 0.05F, -128, 1.0F / 256, -128), 1},
      {"at the other one", of("LOGISTIC", "1x16x16x16", 0.05F, 127, 1.0F / 256, -128), 1},
      {"LEAKY_RELU",
       tensor(0, "1x9x9x20", 0.05F, -40, "int8") + tensor(1, "1x9x9x20", 0.05F, -100, "int8") +
           "inputs 0\noutputs 1\nop 0 LEAKY_RELU in=[0] out=[1] alpha=0.1\n",
       1},
      {"one after the other, of several tasks",
       tensor(0, "1x300x300x16", 0.05F, 3, "int8") + tensor(1, "1x300x300x16", 1.0F / 128, 0, "int8") +
           tensor(2, "1x300x300x16", 1.0F / 256, -128, "int8") +
           "inputs 0\noutputs 2\nop 0 TANH in=[0] out=[1]\nop 1 LOGISTIC in=[1] out=[2]\n",
       2},
  };
  judge(rows, 0, kDevice);
}

TEST(Rk3576Graphs, MaximaWithPadding) {
  const auto of = [](const char* in, const char* padded, const char* out, std::initializer_list<int32_t> pads,
                     const char* pool) {
    return tensor(0, in, 0.05F, 3, "int8") + tensor(1, padded, 0.05F, 3, "int8") + numbers(2, "4x2", pads) +
           "tensor 3 \"lowest\" int8 1 scale=0.05 zero=3 const=hex:80\n" + tensor(4, out, 0.05F, 3, "int8") +
           fmt::format("inputs 0\noutputs 4\nop 0 PADV2 in=[0 2 3] out=[1]\nop 1 MAX_POOL_2D in=[1] out=[4] {}\n",
                       pool);
  };
  const char* const kPool = "padding=valid stride_h=2 stride_w=2 filter_h=3 filter_w=3";
  const Row rows[] = {
      {"before", of("1x16x16x32", "1x17x17x32", "1x8x8x32", {0, 0, 1, 0, 1, 0, 0, 0}, kPool), 1},
      {"on both sides", of("1x15x18x40", "1x17x20x40", "1x8x9x40", {0, 0, 1, 1, 1, 1, 0, 0}, kPool), 1},
  };
  judge(rows, 0, kDevice);
}

// ---- limits

struct Limit {
  const char* what;
  std::string text;
  const char* named;  // found in the reason; empty: the chip takes it
};

std::string conv(const char* in, const char* filter, const char* out, const char* scales = "0.01",
                 const char* zeros = "0", const char* more = "", const char* kind = "CONV_2D",
                 const char* constant = "random:3") {
  const bool depthwise = std::string_view(kind) == "DEPTHWISE_CONV_2D";
  return tensor(0, in, 0.05F, 3, "int8") +
         fmt::format("tensor 1 \"f\" int8 {} scale={} zero={} axis={} const={}\n", filter, scales, zeros,
                     depthwise ? 3 : 0, constant) +
         tensor(2, out, 1.5F, -4, "int8") +
         fmt::format("inputs 0\noutputs 2\nop 0 {} in=[0 1 -] out=[2] {}\n", kind, more);
}

std::string row(const char* in, const char* weights, const char* out) {
  return tensor(0, in, 0.05F, 3, "int8") +
         fmt::format("tensor 1 \"f\" int8 {} scale=0.01 zero=0 const=random:3\n", weights) +
         tensor(2, out, 1.5F, -4, "int8") + "inputs 0\noutputs 2\nop 0 FULLY_CONNECTED in=[0 1 -] out=[2]\n";
}

std::string maximum(int size, const char* padding, int outputs) {
  const std::string out = fmt::format("1x{0}x{0}x16", outputs);
  return tensor(0, "1x32x32x16", 0.05F, 3, "int8") + tensor(1, out.c_str(), 0.05F, 3, "int8") +
         fmt::format("inputs 0\noutputs 1\nop 0 MAX_POOL_2D in=[0] out=[1] padding={0} filter_h={1} filter_w={1}\n",
                     padding, size);
}

std::string rows_of(int size) {
  return tensor(0, fmt::format("1x{}x2x3", size).c_str(), 0.05F, 3, "int8") +
         tensor(1, fmt::format("1x{}x1x3", size - 1).c_str(), 0.05F, 3, "int8") +
         "inputs 0\noutputs 1\nop 0 MAX_POOL_2D in=[0] out=[1] padding=valid filter_h=2 filter_w=2\n";
}

// The weights of one channel are zeros: its outputs depend on its bias only, whatever its multiplier is.
std::string constant_channel(const char* scales, const char* bias) {
  return tensor(0, "1x5x5x4", 0.05F, 3, "int8") +
         fmt::format("tensor 1 \"f\" int8 2x1x1x4 scale={} zero=0 axis=0 const=[1 2 3 4 0 0 0 0]\n", scales) +
         tensor(2, "1x5x5x2", 1.5F, -4, "int8") +
         fmt::format("tensor 3 \"b\" int32 2 scale=1 zero=0 const={}\n", bias) +
         "inputs 0\noutputs 2\nop 0 CONV_2D in=[0 1 3] out=[2]\n";
}

// Scales of 32 channels: every other one is `part` times its neighbours'.
std::string halves_apart(double part) {
  std::string out = "[";
  for (int i = 0; i < 32; ++i) out += fmt::format("{}{:g}", i == 0 ? "" : " ", i % 2 == 0 ? 1 : part);
  return out + "]";
}

// Scales of 32 channels: the first is `part` times the others.
std::string one_apart(double part) {
  std::string out = fmt::format("[{:g}", 4 * part);
  for (int i = 1; i < 32; ++i) out += " 4";
  return out + "]";
}

// Scales of 128 channels: those of the second half are `part` times those of the first half.
std::string groups_apart(double part) {
  std::string out = "[";
  for (int i = 0; i < 128; ++i) out += fmt::format("{}{:g}", i == 0 ? "" : " ", i < 64 ? 1 : part);
  return out + "]";
}

// Runs twice, so that an output which is not written shows.
void judge_limit(const Limit& row) {
  SCOPED_TRACE(row.what);
  const auto graph = ir::parse("graph \"\"\n" + row.text);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto target = runtime::open_target(kDevice);
  const auto session = runtime::Session::create(
      *graph, *target, {.compile = kUnseen, .allow_fallback = false, .keep_intermediates = true, .cores = 1});
  ASSERT_TRUE(session.ok()) << session.error().message;
  std::string reasons;
  for (const auto& part : (*session)->report().ops) reasons += part.reason + "\n";
  const bool is_named = *row.named != 0;  // then on the CPU, or on the chip but unproven
  if (is_named) {
    EXPECT_NE(reasons.find(row.named), std::string::npos) << reasons;
  } else {
    EXPECT_EQ(reasons.find_first_not_of('\n'), std::string::npos) << reasons;
  }
  for (const uint32_t seed : {5U, 6U}) {
    run(**session, seed);
    const auto layers = (*session)->compare_layers(&*graph);
    ASSERT_TRUE(layers.ok());
    ASSERT_TRUE(is_named || !layers->empty());
    for (const auto& layer : *layers) EXPECT_LE(layer.max_abs_diff, 1);
  }
}

// Each is a right result or stays on the CPU; the sanitizers report numbers that overflow.
TEST(Rk3576Graphs, GainsOfAllSizes) {
  for (const char* kind : {"CONV_2D", "DEPTHWISE_CONV_2D"}) {
    for (int exponent = -14; exponent <= 8; ++exponent) {
      const std::string scale = fmt::format("1e{}", exponent);
      const bool depthwise = std::string_view(kind) == "DEPTHWISE_CONV_2D";
      const auto graph = ir::parse("graph \"\"\n" + conv("1x5x5x16", depthwise ? "1x3x3x16" : "16x1x1x16", "1x5x5x16",
                                                         scale.c_str(), "0", "", kind));
      ASSERT_TRUE(graph.ok()) << graph.error().message;
      const auto session = runtime::Session::create(
          *graph, *runtime::open_target(kDevice),
          {.compile = kUnseen, .allow_fallback = false, .keep_intermediates = true, .cores = 1});
      ASSERT_TRUE(session.ok()) << scale << ": " << session.error().message;
      run(**session, 5);
      const auto layers = (*session)->compare_layers(&*graph);
      ASSERT_TRUE(layers.ok()) << scale;
      for (const auto& layer : *layers) EXPECT_LE(layer.max_abs_diff, 1) << kind << " " << scale;
    }
  }
}

constexpr const char* kDepthwise = "DEPTHWISE_CONV_2D";

TEST(Rk3576Graphs, LimitsOfSizesAreTakenOrNamed) {
  const Limit rows[] = {
      {"a slice of weights that fits", conv("1x4x4x608", "32x3x3x608", "1x4x4x32"), ""},
      {"one that does not", conv("1x4x4x640", "32x3x3x640", "1x4x4x32"), "the chip keeps 175"},
      {"two slices, for which a program has no room", conv("1x4x4x608", "64x3x3x608", "1x4x4x64"), ""},
      {"the same, of planes of nine pixels", conv("1x3x3x608", "64x3x3x608", "1x3x3x64"), ""},
      {"three, of which one is a program's", conv("1x4x4x544", "96x3x3x544", "1x4x4x96"), ""},
      {"four of 145 KiB, for which it has none either", conv("1x1x1x4640", "128x1x1x4640", "1x1x1x128"), ""},
      {"rows of six data banks, and weights beside them", conv("1x12x48x256", "64x3x3x256", "1x12x48x64"), ""},
      {"rows of six data banks, which leave no space for a slice", conv("1x32x32x352", "32x3x3x352", "1x32x32x32"), ""},
      {"rows in windows, padded above and below", conv("1x70x60x96", "40x5x5x96", "1x70x60x40"), ""},
      {"the same, depthwise, in steps of two",
       conv("1x71x60x160", "1x5x5x160", "1x36x30x160", "0.01", "0", "stride_h=2 stride_w=2", kDepthwise), ""},
      {"rows of a depthwise filter that fit with half of the channels",
       conv("1x6x400x256", "1x5x5x256", "1x6x400x256", "0.01", "0", "", kDepthwise), ""},
      {"the same, of planes that are no multiple of four pixels",
       conv("1x5x401x256", "1x5x5x256", "1x5x401x256", "0.01", "0", "", kDepthwise), ""},
      {"more depthwise weights than a field counts",
       conv("1x1x1x1504", "1x22x22x1504", "1x1x1x1504", "0.01", "0", "", kDepthwise), "larger than 7x7"},
      {"more weights than a program's 6 MiB", conv("1x1x1x4096", "1600x1x1x4096", "1x1x1x1600"), ""},
      {"more kernels than a program counts", conv("1x1x1x64", "3000x1x1x64", "1x1x1x3000"), ""},
      {"the most kernels that it counts", conv("1x1x1x64", "2944x1x1x64", "1x1x1x2944"), ""},
      {"one more", conv("1x1x1x64", "2945x1x1x64", "1x1x1x2945"), ""},
      {"a filter of 31 rows", conv("1x40x40x1", "4x31x1x1", "1x40x40x4"), "larger than 7x7"},
      {"of 31x31", conv("1x40x40x1", "4x31x31x1", "1x40x40x4"), "the chip keeps 175"},
      {"of 33", conv("1x40x40x1", "4x33x33x1", "1x40x40x4"), "at most 31x31"},
      {"of 32", conv("1x40x40x1", "4x32x32x1", "1x40x40x4"), "at most 31x31"},
      {"the most channels of a slice", conv("1x1x1x5600", "40x1x1x5600", "1x1x1x40"), ""},
      {"one more", conv("1x1x1x5601", "40x1x1x5601", "1x1x1x40"), "the chip keeps 175"},
      {"steps of 7", conv("1x33x33x16", "16x3x3x16", "1x5x5x16", "0.01", "0", "stride_h=7 stride_w=7"), ""},
      {"of 8, as convolutions of stride 2",
       conv("1x33x33x16", "16x3x3x16", "1x5x5x16", "0.01", "0", "stride_h=8 stride_w=8"), ""},
      {"of 9", conv("1x33x33x16", "16x3x3x16", "1x4x4x16", "0.01", "0", "stride_h=9 stride_w=9"),
       "strides of 9 and 9; the NPU has 1 to 7"},
      {"of 1 and 3", conv("1x10x13x16", "16x3x3x16", "1x10x5x16", "0.01", "0", "stride_h=1 stride_w=3"),
       "different strides"},
      {"of 5 and 2, depthwise",
       conv("1x21x13x48", "1x3x3x48", "1x5x7x48", "0.01", "0", "stride_h=5 stride_w=2", kDepthwise),
       "different strides"},
      {"a row of 70000 pixels", conv("1x1x70000x16", "16x1x1x16", "1x1x70000x16"), "the NPU counts to 2047"},
      {"two images", conv("2x5x5x16", "16x3x3x16", "2x5x5x16"), "axis 0 is not an image axis"},
      {"a maximum in steps of 17",
       tensor(0, "1x40x40x16", 0.05F, 3, "int8") + tensor(1, "1x3x3x16", 0.05F, 3, "int8") +
           "inputs 0\noutputs 1\nop 0 MAX_POOL_2D in=[0] out=[1] padding=same filter_h=3 filter_w=3 stride_h=17 "
           "stride_w=17\n",
       "strides of 17 and 17; the NPU has 1 to 7"},
      {"a row larger than the data banks", conv("1x3x2000x512", "8x1x1x512", "1x3x2000x8"), "of the on-chip buffer"},
      {"one channel", conv("1x9x9x1", "16x3x3x1", "1x9x9x16"), ""},
      {"three channels, stride 2, nothing in front",
       conv("1x224x224x3", "32x3x3x3", "1x112x112x32", "0.01", "0", "stride_h=2 stride_w=2"), ""},
      {"three channels, 10 outputs in a row", conv("1x10x10x3", "32x3x3x3", "1x10x10x32"), ""},
      {"48 channels", conv("1x9x9x48", "48x3x3x48", "1x9x9x48"), ""},
      {"112 channels", conv("1x9x9x112", "112x1x1x112", "1x9x9x112"), ""},
      {"112 channels, depthwise", conv("1x9x9x112", "1x3x3x112", "1x9x9x112", "0.01", "0", "", kDepthwise), ""},
      {"48 channels, depthwise, an odd plane", conv("1x9x7x48", "1x3x3x48", "1x9x7x48", "0.01", "0", "", kDepthwise),
       ""},
      {"the most inputs of a row", row("1x5600", "40x5600", "1x40"), ""},
      {"one more", row("1x5601", "40x5601", "1x40"), "the chip keeps 175"},
      {"more outputs of a row than a program counts", row("1x64", "2945x64", "1x2945"), ""},
      {"an odd plane", conv("1x7x13x40", "24x3x3x40", "1x7x13x24"), ""},
      {"one pixel", conv("1x1x1x40", "24x1x1x40", "1x1x1x24"), ""},
  };
  for (const Limit& row : rows) judge_limit(row);
}

TEST(Rk3576Graphs, LimitsOfValuesAreTakenOrNamed) {
  const Limit rows[] = {
      {"depthwise weights that two bytes hold",
       conv("1x5x5x2", "1x1x1x2", "1x5x5x2", "0.01", "-127", "", kDepthwise, "[127 -128]"), ""},
      {"depthwise weights far below their zero point",
       conv("1x5x5x2", "1x1x1x2", "1x5x5x2", "0.01", "127", "", kDepthwise, "[127 -128]"), ""},
      {"depthwise weights above the lowest zero point",
       conv("1x5x5x2", "1x1x1x2", "1x5x5x2", "0.01", "-128", "", kDepthwise, "[126 -128]"), ""},
      {"depthwise weights that they do not",
       conv("1x5x5x2", "1x1x1x2", "1x5x5x2", "0.01", "-128", "", kDepthwise, "[127 -128]"), "reach 254"},
      {"a multiplier below 1, of a channel that gives nothing else than its zero point",
       conv("1x5x5x4", "2x1x1x4", "1x5x5x2", "[0.01 0.0000001]", "0"), ""},
      {"a multiplier far below 1, of a channel whose outputs change by a part of a step",
       conv("1x5x5x4", "2x1x1x4", "1x5x5x2", "[160 0.00016]", "0"), "the NPU multiplies channels by 1/16384 to 1"},
      {"a multiplier below 1, of a channel that its bias moves", constant_channel("[1 0.00003]", "[0 60000000]"), ""},
      {"a multiplier far below 1, of one", constant_channel("[1 0.000001]", "[0 -1900000000]"), ""},
      {"neighbouring channels of which many would be off",
       conv("1x9x9x32", "1x3x3x32", "1x9x9x32", halves_apart(0.015).c_str(), "0", "", kDepthwise), "share a shift: 1."},
      {"of which fewer would be",
       conv("1x9x9x32", "1x3x3x32", "1x9x9x32", halves_apart(0.05).c_str(), "0", "", kDepthwise), ""},
      {"groups of channels 500 times apart, depthwise",
       conv("1x9x9x128", "1x3x3x128", "1x9x9x128", groups_apart(0.002).c_str(), "0", "", kDepthwise), ""},
      {"one coarse multiplier of 32, of a channel that reaches far",
       conv("1x5x5x64", "32x1x1x64", "1x5x5x32", one_apart(0.0025).c_str(), "0"),
       "the NPU multiplies channels by 1/16384 to 1"},
      {"one that is fine enough", conv("1x5x5x64", "32x1x1x64", "1x5x5x32", one_apart(0.01).c_str(), "0"), ""},
      {"scales 10^4 apart, and sums that reach far", conv("1x5x5x512", "2x1x1x512", "1x5x5x2", "[0.3 0.00003]", "0"),
       "the NPU multiplies channels by 1/16384 to 1"},
      {"a channel of zeros",
       conv("1x5x5x4", "2x1x1x4", "1x5x5x2", "[0.01 0.008]", "0", "", "CONV_2D", "[1 2 3 4 0 0 0 0]"), ""},
      {"a depthwise channel of zeros",
       conv("1x5x5x4", "1x1x1x4", "1x5x5x4", "[0.01 0.008 0.01 0.009]", "0", "", kDepthwise, "[1 0 -3 4]"), ""},
      {"one whose scale is 10^4 less than the others'",
       conv("1x5x5x4", "1x1x1x4", "1x5x5x4", "[0.01 0.000001 0.01 0.009]", "0", "", kDepthwise, "[1 0 -3 4]"), ""},
      {"a sum whose weights would be coarse", sum("1x5x5x8", 0.02F, 0.02004F, 0.004F), "8-bit weights"},
      {"a sum of scales 10^4 apart", sum("1x5x5x8", 0.02F, 0.000002F, 0.0001F), "too far from"},
  };
  for (const Limit& row : rows) judge_limit(row);
}

TEST(Rk3576Graphs, LimitsOfOtherOperationsAreTakenOrNamed) {
  const Limit rows[] = {
      {"a shape that moves channels",
       tensor(0, "1x4x4x32", 0.05F, 3, "int8") + tensor(1, "1x8x8x8", 0.05F, 3, "int8") +
           "inputs 0\noutputs 1\nop 0 RESHAPE in=[0] out=[1] shape=[1 8 8 8]\n",
       "moves channels"},
      {"rows that are joined",
       tensor(0, "1x4x4x32", 0.05F, 3, "int8") + tensor(1, "1x8x4x32", 0.05F, 3, "int8") +
           "inputs 0\noutputs 1\nop 0 CONCATENATION in=[0 0] out=[1] axis=1\n",
       "concatenates rows or columns"},
      {"a maximum of 16x16", maximum(16, "valid", 17), ""},
      {"of 13x13 over 48 channels, one pixel left",
       tensor(0, "1x13x13x48", 0.05F, 3, "int8") + tensor(1, "1x1x1x48", 0.05F, 3, "int8") +
           "inputs 0\noutputs 1\nop 0 MAX_POOL_2D in=[0] out=[1] padding=valid filter_h=13 filter_w=13\n",
       ""},
      {"of 17x17", maximum(17, "valid", 16), "has at most 16"},
      {"of 15x15 with 7 rows of padding on both sides", maximum(15, "same", 32), "larger than 7x7"},
      {"of 16x16 with 8 behind", maximum(16, "same", 32), "the pooling unit has at most 7"},
      {"a maximum of 8192 rows", rows_of(8192), ""},
      {"of 8193, which the pooling unit does not count", rows_of(8193), ""},
      {"a filter that becomes one of 31x31, dilated",
       conv("1x40x40x16", "1x3x3x16", "1x40x40x16", "0.01", "0", "dilation_h=15 dilation_w=15", kDepthwise),
       "larger than 7x7"},
      {"of 33x33", conv("1x40x40x16", "1x3x3x16", "1x40x40x16", "0.01", "0", "dilation_h=16 dilation_w=16", kDepthwise),
       "16 rows and 16 columns of padding; the NPU has at most 15"},
      {"an average of windows that leave the image",
       tensor(0, "1x9x9x16", 0.05F, 3, "int8") + tensor(1, "1x9x9x16", 0.05F, 3, "int8") +
           "inputs 0\noutputs 1\nop 0 AVERAGE_POOL_2D in=[0] out=[1] padding=same filter_h=3 filter_w=3\n",
       "are partly outside the image"},
      {"a dilated filter, which becomes one with zeros",
       conv("1x9x9x16", "16x3x3x16", "1x9x9x16", "0.01", "0", "dilation_h=2 dilation_w=2"), ""},
  };
  for (const Limit& row : rows) judge_limit(row);
}

// ---- kernels

Result<void> run_twice(const char* name, const char* value, const char* faults, const std::string& text) {
  const Environment option(name, value);
  auto graph = ir::parse("graph \"\"\n" + text);
  SK_TRY_ASSIGN(const auto target, board(faults));
  SK_TRY_ASSIGN(const auto session,
                runtime::Session::create(std::move(*graph), target, {.allow_fallback = false, .cores = 1}));
  const Bytes input(static_cast<size_t>(session->graph().tensor(session->graph().inputs[0]).bytes()), 3);
  for (int i = 0; i < 2; ++i) {
    SK_TRY(session->set_input(0, input));
    SK_TRY(session->run().with_context(fmt::format("run {}", i)));
  }
  return {};
}

// Addresses as in device trees of this chip, not those of the RK3588.
TEST(Rk3576Graphs, CoresAreWhereTheChipHasThem) {
  const auto cores = fake::rocket::cores_of("rk3576");
  ASSERT_TRUE(cores && cores->size() == 2);
  EXPECT_EQ((*cores)[0].of_full_name, "/npu@27700000");
  EXPECT_EQ((*cores)[1].of_full_name, "/npu@27708000");
  EXPECT_EQ((*cores)[1].compatible, "rockchip,rk3576-rknn-core");
}

// Faults that boards showed with the wrong kernel are reported, each by its own message.
TEST(Rk3576Graphs, KernelsThatLoseJobs) {
  const std::string pool = tensor(0, "1x8x8x16", 0.05F, 3, "int8") + tensor(1, "1x4x4x16", 0.05F, 3, "int8") +
                           "inputs 0\noutputs 1\nop 0 MAX_POOL_2D in=[0] out=[1] padding=valid stride_h=2 stride_w=2 "
                           "filter_h=2 filter_w=2\n";
  const std::string last = pool + tensor(2, "1x4x4x16", 0.05F, 3, "int8") + "op 1 RELU in=[1] out=[2]\n";
  struct Case {
    const char *name, *value, *faults, *named;  // named: in the error; empty: no error
    const std::string& text;
    const char* warned = "";  // with a right result; empty: no message about a timeout
  };
  std::string chained = last;
  chained.replace(chained.find("outputs 1"), 9, "outputs 2");
  const Case cases[] = {
      {"", "", "", "", chained},
      {"SKILLET_SIM_TASK_CON", "0x7001", "", "0x7001: 28673 tasks", chained},
      {"SKILLET_SIM_POOLING_DONE", "lost", "", "did not write its output", chained, "it ignores the pooling"},
      {"", "", "", "", pool},
      {"SKILLET_SIM_POOLING_DONE", "lost", "", "", pool, "it ignores the pooling"},
      {"SKILLET_SIM_TASK_CON", "0x7001", "", "0x7001: 28673 tasks", pool},
      {"", "", "job:2-*:reset", "run 1", chained},
      {"", "", "job:2:reset", "", chained},  // run again
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(fmt::format("{} {}", c.value, c.faults));
    std::string said;
    log::set_sink([&](log::Level, const char* line) { said += line; }, log::Level::warning);
    const auto ran = run_twice(c.name, c.value, c.faults, c.text);
    log::set_sink({}, log::Level::warning);
    const size_t timeout = said.find("the kernel ended it after 500 ms");
    if (*c.warned == 0) {
      EXPECT_EQ(timeout, std::string::npos) << said;
    } else {
      EXPECT_NE(said.find(c.warned, std::min(timeout, said.size())), std::string::npos) << said;
    }
    const std::string message = ran.ok() ? "" : ran.error().message;
    if (*c.named == 0) {
      EXPECT_EQ(message, "");
    } else {
      EXPECT_NE(message.find(c.named), std::string::npos) << message;
    }
  }
}

// The kernel would give each of two concurrent sessions a core, and each core spoils the other's data on the chip. So
// sessions of one device share its file, and files take turns.
TEST(Rk3576Graphs, OneCoreIsUsed) {
  const auto graph = ir::parse("graph \"\"\n" + conv("1x24x24x64", "64x3x3x64", "1x24x24x64"));
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto calls = calls_of_board("", "jobs_at_once_spoil");
  ASSERT_TRUE(calls.ok());
  const auto first = testing::target_at(kNode, *calls), second = testing::target_at(kNode, *calls);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->pool, nullptr);
  std::atomic<int64_t> layers = 0;
  const auto run_some = [&](const runtime::Target& target) {
    const auto session = runtime::Session::create(
        *graph, target, {.compile = kUnseen, .allow_fallback = false, .keep_intermediates = true, .cores = 1});
    ASSERT_TRUE(session.ok()) << session.error().message;
    for (uint32_t seed = 0; seed < 60; ++seed) {
      run(**session, seed);
      const auto compared = (*session)->compare_layers();
      ASSERT_TRUE(compared.ok());
      for (const auto& layer : *compared) EXPECT_LE(layer.max_abs_diff, 1);
      layers += static_cast<int64_t>(compared->size());
    }
  };
  std::thread same([&] { run_some(*first); }), other([&] { run_some(*second); });
  run_some(*first);
  same.join(), other.join();
  EXPECT_EQ(layers, 180);
}

}  // namespace
}  // namespace skillet
