// Compares programs of the RK3576 with the tables of its specification (sections 3, 5, 6), for our own sizes.
#include "npus/rockchip/compiler/rk3576.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "base/bytes.h"
#include "npu/driver.h"
#include "npus/rockchip/compiler/numerics.h"
#include "npus/rockchip/hw/testing/rk3576_words.h"

namespace skillet::npus::rockchip {

const npu::Driver& driver();

namespace {

using testing::Shape;

constexpr size_t kWordBytes = 8;

std::string conv_text(int rows, int columns, int in, int out) {
  return fmt::format(R"(graph ""
tensor 0 "in" int8 1x{0}x{1}x{2} scale=0.5 zero=-3
tensor 1 "w" int8 {3}x3x3x{2} scale=0.25 zero=0 const=zeros:{4}
tensor 2 "b" int32 {3} scale=0.125 zero=0 const=zeros:{5}
tensor 3 "out" int8 1x{0}x{1}x{3} scale=2 zero=7
inputs 0
outputs 3
op 0 CONV_2D in=[0 1 2] out=[3] activation=relu
)",
                     rows, columns, in, out, out * 9 * in, out * 4);
}

struct Compiled {
  std::vector<std::map<uint32_t, uint32_t>> tasks;  // registers by address
  std::vector<size_t> words;                        // without the trailer
  std::vector<std::vector<uint64_t>> trailers;
  Bytes weights, operands;
};
Compiled compile(const std::string& text, npu::CompileOptions options) {
  Compiled out;
  const auto graph = ir::parse(text);
  EXPECT_TRUE(graph.ok());
  const auto program = driver().compile(npu::find_chip("rk3576").value(), *graph, options);
  EXPECT_TRUE(program.ok()) << (program.ok() ? "" : program.error().message);
  for (const npu::Job& job : program->jobs) {
    for (const npu::ByteRange& range : job.commands) {
      const uint8_t* const bytes = program->buffers[range.buffer].contents.data() + range.offset_bytes;
      auto& task = out.tasks.emplace_back();
      out.words.push_back(range.size_bytes / kWordBytes - 4);
      for (size_t i = 0; i < out.words.back(); ++i) {
        const auto word = load_le<uint64_t>(bytes + i * kWordBytes);
        task[static_cast<uint32_t>(word & 0xFFFF)] = static_cast<uint32_t>(word >> 16);
      }
      auto& trailer = out.trailers.emplace_back();
      for (size_t i = out.words.back(); i < out.words.back() + 4; ++i)
        trailer.push_back(load_le<uint64_t>(bytes + i * kWordBytes));
    }
  }
  for (const npu::Buffer& buffer : program->buffers) {
    if (buffer.name.starts_with("weights")) out.weights.assign(buffer.contents.begin(), buffer.contents.end());
    if (buffer.name.starts_with("operands")) out.operands.assign(buffer.contents.begin(), buffer.contents.end());
  }
  return out;
}

// 10x12, 48 channels to 24: three atoms count as four; no group is padded.
TEST(Rk3576, RecordedWordsAreThoseOfTheTables) {
  const Compiled one = compile(conv_text(10, 12, 48, 24), {.tuning = npu::Tuning::recorded});
  ASSERT_EQ(one.tasks.size(), 1U);
  EXPECT_EQ(one.words[0], 139U);
  const std::pair<uint32_t, uint32_t> kRows[] = {{0x1018, 0x40000404},
                                                 {0x1038, 7},
                                                 {0x1040, 0x10000000},
                                                 {0x101C, 48 * 9 * 24},
                                                 {0x1020, 48 * 9},
                                                 {0x1024, 0x02020017},
                                                 {0x1028, 120 << 16 | 47},
                                                 {0x102C, 0x000B0009},
                                                 {0x1030, 864 << 16 | 11},
                                                 {0x1034, 119},
                                                 {0x103C, 12 << 16},
                                                 {0x1044, 12 << 16 | 12},
                                                 {0x1078, 0x000B0009},
                                                 {0x107C, 47},
                                                 {0x1080, 0x01010101},
                                                 {0x1084, 0xFFFFFFFD},
                                                 {0x1090, 48},
                                                 {0x1094, 120},
                                                 {0x1098, 120},
                                                 {0x301C, 0x0009000B},
                                                 {0x3020, 23},
                                                 {0x401C, 120},
                                                 {0x4030, 0x00170710},
                                                 {0x4050, 0x80011111},
                                                 {0x4060, 0x902},
                                                 {0x406C, 0},
                                                 {0x4070, 0x7FFFFFFF},
                                                 {0x40AC, 7},
                                                 {0x40B0, 0x4000},
                                                 {0x40B4, 18},
                                                 {0x40B8, 120},
                                                 {0x501C, 0x710}};
  for (const auto& [address, value] : kRows) EXPECT_EQ(one.tasks[0].at(address), value) << std::hex << address;
}

TEST(Rk3576, ProgramsOfTheOtherCoreAndOfHalves) {
  const Compiled second =
      compile(conv_text(10, 12, 32, 32), {.tuning = npu::Tuning::recorded, .switches = {"second_core"}});
  EXPECT_EQ(second.tasks.at(0).at(0x1018), 0x4000040BU);
  EXPECT_EQ(second.tasks.at(0).at(0x1038), 0x10EU);
  EXPECT_EQ(second.tasks.at(0).at(0x1040), 0x2C001C00U);
  const Compiled halves =
      compile(conv_text(10, 12, 32, 32), {.tuning = npu::Tuning::recorded, .switches = {"two_halves"}});
  ASSERT_EQ(halves.tasks.size(), 2U);
  EXPECT_EQ(halves.words[0], 138U);
  EXPECT_EQ(halves.tasks[1].at(0x1040), 0x30001800U);
  EXPECT_EQ(halves.tasks[1].at(0x1038), 0x80000010U);
  // An odd number of rows is halved differently, with a dummy program after each half.
  const Compiled odd = compile(conv_text(9, 12, 32, 32), {.tuning = npu::Tuning::recorded, .switches = {"two_halves"}});
  ASSERT_EQ(odd.tasks.size(), 4U);
  EXPECT_EQ(odd.tasks[1].at(0x1038), 0xC0000007U);
  EXPECT_EQ(odd.tasks[2].at(0x1038), 0xEU);
}

// Section 4: no program follows; programs for two cores are marked in the amount and in the blocks that they start.
TEST(Rk3576, TrailersAreThoseOfTheSpecification) {
  using Words = std::vector<uint64_t>;
  const auto trailer = [](uint64_t amount, uint64_t blocks) {
    return Words{0, uint64_t{0x0101} << 48 | amount << 16 | 0x14, uint64_t{0x0041} << 48,
                 uint64_t{0x0081} << 48 | blocks << 16 | 0x08};
  };
  const auto of = [](int rows, std::vector<std::string> switches) {
    return compile(conv_text(rows, 12, 32, 32), {.tuning = npu::Tuning::recorded, .switches = std::move(switches)})
        .trailers;
  };
  constexpr uint64_t kAlone = 0x1D, kTogether = 0x0100001D, kMark = 0x10000;
  EXPECT_EQ(of(10, {}), std::vector<Words>{trailer(0, kAlone)});
  EXPECT_EQ(of(10, {"second_core"}), std::vector<Words>{trailer(0, kAlone)});
  EXPECT_EQ(of(10, {"two_halves"}), std::vector<Words>(2, trailer(kMark, kTogether)));
  const Words dummy = trailer(0, kTogether);
  EXPECT_EQ(of(9, {"two_halves"}), (std::vector<Words>{trailer(0, kAlone), dummy, trailer(0, kAlone), dummy}));
}

// ---- programs of any shape

using Words = std::map<uint32_t, uint32_t>;
void expect_words(const Words& expected, Words words) {
  for (const uint32_t address : {0x1088, 0x1110, 0x4018, 0x5020, 0x5024, 0x6070, 0x701C}) {
    if (words.contains(address)) words[address] = 0;
  }
  for (const auto& [address, value] : expected) {
    const auto at = words.find(address);
    EXPECT_TRUE(at != words.end() && at->second == value) << fmt::format("{:x}: {:x}", address, value);
  }
  EXPECT_EQ(words.size(), expected.size());
}

// Section 6: the place of each weight, and A, B and C of each channel.
void expect_buffers(const Shape& s, const ir::Graph& graph, const Compiled& one) {
  constexpr uint32_t kGroup = 32, kPairs = 64, kAtomLanes = 16, kInputZero = -3U;
  const auto up = [](uint32_t value, uint32_t to) { return (value + to - 1) / to * to; };
  const auto filter = graph.tensor(1).values<int8_t>();
  const auto bias = graph.tensor(2).values<int32_t>();
  const uint32_t taps = s.kernel_height * s.kernel_width, lanes = up(s.in_channels, kAtomLanes), oc = s.channels();
  std::vector<uint32_t> sums(bias.begin(), bias.end());
  uint32_t wrong = 0, counted = 0;
  const auto expect_byte = [&](size_t at, int32_t value) {
    wrong += at >= one.weights.size() || static_cast<int8_t>(one.weights[at]) != static_cast<int8_t>(value) ? 1 : 0;
    ++counted;
  };
  for (uint32_t t = 0; t < taps; ++t) {
    for (uint32_t c = 0; s.depthwise && c < oc; ++c) {
      const uint32_t g = c / kPairs, j = c % kPairs, held = std::min(kPairs, lanes - g * kPairs);
      const size_t at = size_t{g} * kPairs * taps * 2 + t * held * 2 + 4 * (j / 2) + j % 2;
      expect_byte(at, filter[t * oc + c]);
      expect_byte(at + 2, -s.zero);
      sums[c] -= kInputZero * static_cast<uint32_t>(filter[t * oc + c] - s.zero);
    }
    for (uint32_t o = 0; !s.depthwise && o < oc; ++o) {
      for (uint32_t i = 0; i < lanes; ++i) {
        const uint32_t held = std::min(kGroup, oc - o / kGroup * kGroup),
                       gl = std::min(kGroup, lanes - i / kGroup * kGroup);
        const size_t at = size_t{o / kGroup} * kGroup * taps * lanes + i / kGroup * kGroup * taps * held +
                          (t * held + o % kGroup) * gl + i % kGroup;
        const int32_t weight = i < s.in_channels ? filter[(o * taps + t) * s.in_channels + i] : s.zero;
        expect_byte(at, weight);
        sums[o] -= kInputZero * static_cast<uint32_t>(weight - s.zero);
      }
    }
  }
  EXPECT_EQ(wrong, 0U) << "weights";
  EXPECT_EQ(one.weights.size(), s.depthwise ? lanes * taps * 2 : counted);
  for (uint32_t c = 0; c < oc; ++c) {
    const uint8_t* const group = one.operands.data() + size_t{c / 8} * (s.depthwise ? 48 : 64);
    EXPECT_EQ(load_le<uint32_t>(group + size_t{c % 8} * 4), sums[c]) << "A of " << c;
    if (!s.depthwise) {
      EXPECT_EQ(load_le<int16_t>(group + 32 + size_t{c % 8} * 2), -s.zero) << "B of " << c;
    }
    EXPECT_EQ(load_le<int16_t>(group + (s.depthwise ? 32 : 48) + size_t{c % 8} * 2), 1024 * s.scale(c)) << "C of " << c;
  }
}

// Programs for the other core, and for both: with an odd number of rows a dummy program follows each half.
void expect_other_cores(const Shape& s) {
  const Compiled second = compile(s.text(), {.tuning = npu::Tuning::recorded, .switches = {"second_core"}});
  ASSERT_EQ(second.tasks.size(), 1U);
  expect_words(testing::second_core(testing::words_of(s)), second.tasks[0]);
  if (s.out_height() == 1) return;
  const Compiled halves = compile(s.text(), {.tuning = npu::Tuning::recorded, .switches = {"two_halves"}});
  const size_t each = s.out_height() % 2 == 0 ? 1 : 2;
  ASSERT_EQ(halves.tasks.size(), 2 * each);
  for (const size_t half : {size_t{0}, size_t{1}}) {
    SCOPED_TRACE(half);
    EXPECT_EQ(halves.words[half * each], 138U);
    expect_words(testing::half_words(s, half == 1), halves.tasks[half * each]);
    if (each == 2) {
      EXPECT_EQ(halves.tasks[half * each + 1].at(0x1038), 0xC0000007U);
    }
  }
}

// Padding smaller than the filter on each side.
void pad(Shape& s, uint32_t least_filter, const std::function<uint32_t(uint32_t, uint32_t)>& from) {
  if (s.kernel_height > least_filter) s.front_rows = from(0, s.kernel_height - 1);
  if (s.kernel_height > least_filter) s.back_rows = from(0, s.kernel_height - 1);
  if (s.kernel_width > least_filter) s.front_columns = from(0, s.kernel_width - 1);
  if (s.kernel_width > least_filter) s.back_columns = from(0, s.kernel_width - 1);
}

// Whether there are more features or weights than four data banks and the rest of the buffer certainly hold (section
// 3).
bool needs_parts(const Shape& s, const Words& words) {
  constexpr uint32_t kUnits = 4 * 1024, kSliceBytes = 144 * 1024, kKernels = 32;
  const uint32_t slice = s.depthwise ? 0 : words.at(0x1020) * std::min(kKernels, s.out_channels);
  return words.at(0x1028) >> 16 > kUnits || slice > kSliceBytes;
}

// Rows and columns from 1, channels of partial atoms, three atoms, seven, filters of 1 to 7, whole and half steps,
// limits, any gain, a scale for each channel, padding of other frameworks.
void programs_are_those_of_the_tables(uint32_t seed, int shapes) {
  std::mt19937 random(seed);
  const auto from = [&](uint32_t least, uint32_t most) {
    return least + static_cast<uint32_t>(random() % (most - least + 1));
  };
  int compared = 0;
  for (int i = 0; i < shapes; ++i) {
    Shape s{.depthwise = from(0, 2) == 0,
            .same = from(0, 3) != 0,
            .in_channels = from(2, 200),
            .out_channels = from(1, 130)};
    s.in_height = from(1, 40), s.in_width = from(1, 40), s.stride_y = from(1, 4), s.stride_x = from(1, 4);
    s.zero = static_cast<int32_t>(from(0, 255)) - 128;
    s.out_scale = static_cast<float>(from(1, 4000)) / 500;
    s.per_channel = from(0, 1) == 0, s.limit = static_cast<Shape::Limit>(from(0, 2));
    s.kernel_height = from(1, s.same ? 7 : std::min(s.in_height, 7U));
    s.kernel_width = from(1, s.same ? 7 : std::min(s.in_width, 7U));
    if (!s.same && from(0, 1) == 0) pad(s, 1, from);
    SCOPED_TRACE(s.text());
    const auto graph = ir::parse(s.text());
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const auto last = static_cast<ir::OpId>(graph->ops.size() - 1);
    const npu::Support support = driver().supports(npu::find_chip("rk3576").value(), *graph, last);
    // The vendor also writes depthwise weights that do not fit two bytes.
    if (!support.ok && support.reason.find("reach 254") == std::string::npos) continue;
    const Compiled one = compile(s.text(), {.tuning = npu::Tuning::recorded});
    const Words expected = testing::words_of(s);
    if (one.tasks.size() != 1) {  // windows of rows, parts of the kernels
      EXPECT_TRUE(needs_parts(s, expected));
      continue;
    }
    ++compared;
    EXPECT_EQ(one.words[0], 139U);
    expect_words(expected, one.tasks[0]);
    expect_buffers(s, *graph, one);
    expect_other_cores(s);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(compared, shapes / 2);
}

TEST(Rk3576, RecordedProgramsOfAnyShapeAreThoseOfTheTables) { programs_are_those_of_the_tables(35, 200); }
TEST(Rk3576, RecordedProgramsOfManyShapesAreThoseOfTheTables) { programs_are_those_of_the_tables(36, 700); }

// The vendor's quantization of weights: the factor of a channel's sum of pixels is its own negated zero point, and its
// multiplier the nearest one.
TEST(Rk3576, EachChannelHasAZeroPointAndAScale) {
  const std::string text =
      "graph \"\"\ntensor 0 \"in\" int8 1x2x2x2 scale=0.5 zero=-3\n"
      "tensor 1 \"w\" int8 {}x1x1x{} scale=[0.25 0.25{}] zero=[5 -7{}] axis={} const=[{}]\n"
      "tensor 2 \"out\" int8 1x2x2x{} scale=2 zero=7\ninputs 0\noutputs 2\nop 0 {} in=[0 1 -] out=[2]\n";
  const Compiled direct = compile(fmt::format(fmt::runtime(text), 3, 2, " 0.1", " 0", 0, "9 1 -7 2 0 4", 3, "CONV_2D"),
                                  {.tuning = npu::Tuning::recorded});
  constexpr size_t kFactors = 32, kMultipliers = 48;
  const int16_t factors[] = {-5, 7, 0};
  const int32_t sums[] = {3 * (4 - 4), 3 * (0 + 9), 3 * (0 + 4)};
  const int16_t multipliers[] = {16384, 16384, 6554};  // 6553.6
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_EQ(load_le<int16_t>(direct.operands.data() + kFactors + c * 2), factors[c]) << c;
    EXPECT_EQ(load_le<int32_t>(direct.operands.data() + c * 4), sums[c]) << c;
    EXPECT_EQ(load_le<int16_t>(direct.operands.data() + kMultipliers + c * 2), multipliers[c]) << c;
  }
  const Compiled depthwise = compile(fmt::format(fmt::runtime(text), 1, 2, "", "", 3, "9 1", 2, "DEPTHWISE_CONV_2D"),
                                     {.tuning = npu::Tuning::recorded});
  const int8_t slots[] = {9, 1, -5, 7};
  for (size_t i = 0; i < std::size(slots); ++i) EXPECT_EQ(static_cast<int8_t>(depthwise.weights.at(i)), slots[i]) << i;
}

std::string pool_text(const Shape& s, bool maximum) {
  return fmt::format(
      "graph \"\"\ntensor 0 \"in\" int8 1x{}x{}x{} scale=0.5 zero=-3\ntensor 1 \"out\" int8 1x{}x{}x{} scale=0.5 "
      "zero=-3\n"
      "tensor 2 \"lowest\" int8 1 scale=0.5 zero=-3 const=hex:80\ntensor 3 \"spare\" int8 1 scale=0.5 zero=-3 "
      "const=hex:80\n{}"
      "inputs 0\noutputs 1\n{}op {} {} in=[{}] out=[1] padding={} stride_h={} stride_w={} filter_h={} filter_w={}\n",
      s.in_height, s.in_width, s.in_channels, s.out_height(), s.out_width(), s.in_channels, s.padded(),
      s.pads_itself() ? "op 0 PADV2 in=[0 4 2] out=[5]\n" : "", s.pads_itself() ? 1 : 0,
      maximum ? "MAX_POOL_2D" : "AVERAGE_POOL_2D", s.pads_itself() ? 5 : 0, s.same ? "same" : "valid", s.stride_y,
      s.stride_x, s.kernel_height, s.kernel_width);
}

TEST(Rk3576, RecordedPoolsOfAnyShapeAreThoseOfTheTables) {
  constexpr int kShapes = 700;
  std::mt19937 random(36);
  const auto from = [&](uint32_t least, uint32_t most) {
    return least + static_cast<uint32_t>(random() % (most - least + 1));
  };
  int compared = 0;
  for (int i = 0; i < kShapes; ++i) {
    const bool maximum = from(0, 1) == 0;
    Shape s{.depthwise = true, .same = from(0, 1) == 0, .in_channels = from(2, 200)};
    s.in_height = from(1, 40), s.in_width = from(1, 40), s.stride_y = from(1, 8), s.stride_x = from(1, 8);
    s.kernel_height = from(2, 8), s.kernel_width = from(2, 8);
    if (!s.same && (s.kernel_height > s.in_height || s.kernel_width > s.in_width)) continue;
    if (maximum && !s.same && from(0, 1) == 0) pad(s, 1, from);
    const std::string text = pool_text(s, maximum);
    SCOPED_TRACE(text);
    const auto graph = ir::parse(text);
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const Compiled one = compile(text, {.tuning = npu::Tuning::recorded});
    ASSERT_EQ(one.tasks.size(), 1U);
    ++compared;
    EXPECT_EQ(one.words[0], 31U);
    expect_words(testing::pool_words_of(s, maximum), one.tasks[0]);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(compared, kShapes / 3);
}

// Section 10: a program that loads both tables, then one that looks up in them.
TEST(Rk3576, TablesAreThoseOfTheSpecification) {
  const Compiled all = compile(
      "graph \"\"\ntensor 0 \"in\" int8 1x5x5x32 scale=0.05 zero=3\n"
      "tensor 1 \"out\" int8 1x5x5x32 scale=0.00390625 zero=-128\n"
      "inputs 0\noutputs 1\nop 0 LOGISTIC in=[0] out=[1]\n",
      {});
  ASSERT_EQ(all.tasks.size(), 2U);
  EXPECT_EQ(all.words[0], 1117U);
  EXPECT_EQ(all.tasks[0].at(0x4108), 0x00FF0000U);
  EXPECT_EQ(all.tasks[0].at(0x4100), 0x30000U);
  const Words& user = all.tasks[1];
  for (const uint32_t pointer : {0x1004, 0x3004, 0x4004, 0x5004}) EXPECT_EQ(user.at(pointer), 0x30U);
  for (const uint32_t start : {0x4110, 0x4114, 0x4118, 0x411C}) EXPECT_EQ(static_cast<int32_t>(user.at(start)), -16384);
  for (const uint32_t end : {0x4140, 0x4144, 0x4148, 0x414C}) EXPECT_EQ(user.at(end), 16384U);
  EXPECT_EQ(user.at(0x407C), 0x01004140U);
  EXPECT_EQ(user.at(0x4108), 0x02000006U);
  EXPECT_EQ(user.at(0x410C), 0x00050500U);
  // Entries are bytes times 128: the lowest of a sigmoid is -128, the highest 127.
  const uint32_t low = user.at(0x418C) & 0xFFFF, high = user.at(0x4194) & 0xFFFF;
  EXPECT_LT(static_cast<int16_t>(low), -126 * 128);
  EXPECT_GT(static_cast<int16_t>(high), 126 * 128);
  EXPECT_EQ(user.at(0x4188), low << 16);
  EXPECT_EQ(user.at(0x418C), low << 16 | low);
  EXPECT_EQ(user.at(0x4190), high << 16);
  EXPECT_EQ(user.at(0x4194), high << 16 | high);
}

// Two channels whose scales are far apart.
TEST(Rk3576, CoarseMultipliersAreTheNearestOnes) {
  for (const float ratio : {0.00031F, 0.00052F, 0.0011F, 0.0017F, 0.0023F, 0.0031F}) {
    Conv conv{.in = {2, 2, 2}, .out = {2, 2, 2}};
    conv.weights = Bytes{137, 129, 127, 129};
    const float products[] = {0.125F, 0.125F * ratio};
    ASSERT_TRUE(rk3576::set_scales(products, 2, {}, false, conv).ok());
    ASSERT_EQ(conv.multipliers.size(), 2U);
    const double exact = conv.multipliers[0] * double{ratio};
    EXPECT_LT(exact, 128);
    EXPECT_NEAR(conv.multipliers[1], exact, 0.51) << ratio;
  }
}

// A multiplier that is not the nearest integer is the one on the other side, less than one away.
TEST(Rk3576, MultipliersAreOfTheTwoNearest) {
  std::mt19937 random(3);
  int farther = 0;
  for (int i = 0; i < 300; ++i) {
    Conv conv{.in = {2, 2, 32}, .out = {2, 2, 1}};
    Bytes weights(32);
    for (uint8_t& weight : weights) weight = static_cast<uint8_t>(random());
    conv.weights = std::move(weights);
    const float product = std::uniform_real_distribution<float>(0.001F, 0.1F)(random);
    ASSERT_TRUE(rk3576::set_scales({&product, 1}, 2, {}, false, conv).ok());
    const double exact = double{product} / 2 / value_of(conv.out_gain) * std::exp2(conv.multiplier_shift);
    EXPECT_LT(std::abs(conv.multipliers.at(0) - exact), 1) << product;
    farther += std::abs(conv.multipliers[0] - exact) > 0.5;
  }
  EXPECT_GT(farther, 10);
}

// Channels are programmed in whole groups; surfaces begin at multiples of four pixels.
TEST(Rk3576, ProvenProgramsHaveWholeGroups) {
  const Compiled one = compile(conv_text(5, 5, 20, 40), {});
  EXPECT_EQ(one.tasks.at(0).at(0x107C), 31U);
  EXPECT_EQ(one.tasks.at(0).at(0x3020), 63U);
  EXPECT_EQ(one.tasks.at(0).at(0x401C), 28U);
}

// Operations that the chip lacks are refused with its limit.
TEST(Rk3576, RefusesWithAReason) {
  const npu::Chip chip = npu::find_chip("rk3576").value();
  const auto reason = [&](std::string text) {
    const auto graph = ir::parse(text);
    EXPECT_TRUE(graph.ok());
    const npu::Support support = driver().supports(chip, *graph, 0);
    EXPECT_FALSE(support.ok);
    return support.reason;
  };
  EXPECT_NE(reason(conv_text(8, 8, 640, 32)).find("the chip keeps 175"), std::string::npos);
  std::string dilated = conv_text(8, 8, 32, 32);
  dilated.replace(dilated.find("activation=relu"), 15, "dilation_h=2 dilation_w=2");
  EXPECT_NE(reason(dilated).find("dilations of 2 and 2"), std::string::npos);
  const std::string zeros =
      "graph \"\"\ntensor 0 \"in\" int8 1x2x2x2 scale=0.5 zero=-3\n"
      "tensor 1 \"w\" int8 2x1x1x2 scale=[0.25 0.25] zero=[0 1] axis=0 const=[9 1 -7 2]\n"
      "tensor 2 \"out\" int8 1x2x2x2 scale=2 zero=7\ninputs 0\noutputs 2\nop 0 CONV_2D in=[0 1 -] out=[2]\n";
  EXPECT_NE(reason(zeros).find("different zero points"), std::string::npos);
}

// Groups of 48 bytes; three take 144.
TEST(Rk3576, TheWordOfShiftsHas64BytesOfItsOwn) {
  for (const auto& [lanes, offset] : {std::pair{24, 192}, {32, 192}, {40, 256}, {64, 384}}) {
    EXPECT_EQ(rk3576::shifts_offset(Conv{.depthwise = true}, Geometry{.out_lanes = lanes}),
              static_cast<uint64_t>(offset));
    EXPECT_EQ(rk3576::shifts_offset(Conv{}, Geometry{.out_lanes = lanes}), static_cast<uint64_t>(lanes * 8));
  }
}

}  // namespace
}  // namespace skillet::npus::rockchip
