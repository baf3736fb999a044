// Arithmetic: the specification's worked results, both ways to compute a convolution, and element-wise and pooling
// programs compared with separate loops.
#include <gtest/gtest.h>

#include "npus/rockchip/sim/arithmetic.h"
#include "npus/rockchip/sim/npu.h"
#include "npus/rockchip/sim/ppu.h"
#include "npus/rockchip/sim/test_support.h"

namespace skillet::sim::rockchip {
namespace {

using testing::Conv;
using testing::Program;
using testing::Scene;

void run(Scene& scene, const Program& program, const Options& options = {}) {
  const auto npu = Npu::create("rk3588", options);
  const auto result = (*npu)->run_task(0, scene.load(program.stream()), scene.memory);
  ASSERT_TRUE(result.ok()) << result.error().message;
  ASSERT_EQ(result->stall, "");
}

TEST(RockchipArithmetic, RoundsHalfToEven) {
  const std::array<int64_t, 3> cases[] = {{1, 1, 0}, {3, 1, 2}, {-1, 1, 0},  {-3, 1, -2},
                                          {5, 2, 1}, {6, 2, 2}, {-6, 2, -2}, {10, 2, 2}};
  for (const auto& [value, shift, expected] : cases)
    EXPECT_EQ(round_shift(value, static_cast<unsigned>(shift), Tie::even), expected) << value << " >> " << shift;
  EXPECT_EQ(round_shift(-5, 1, Tie::away), -3);
  EXPECT_EQ(round_shift(-5, 1, Tie::up), -2);
  EXPECT_EQ(round_shift(-5, 1, Tie::floor), -3);
  EXPECT_EQ(round_shift(INT64_C(-1) << 47, 63, Tie::even), 0);
}

// ---- worked results of the specification, section 12.3 ----

struct Draws {
  uint32_t state = 1;
  uint8_t next() { return static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24); }
  std::vector<int> next(int count) {
    std::vector<int> out(static_cast<size_t>(count));
    for (int& v : out) v = next();
    return out;
  }
};

uint32_t crc32(const std::vector<uint8_t>& bytes) {
  uint32_t crc = ~0U;
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320U : 0);
  }
  return ~crc;
}

size_t cube_offset(int pixels, int pixel, int channel) {
  return static_cast<size_t>(16 * (channel / 16 * pixels + pixel) + channel % 16);
}

void place_image(const std::vector<int>& image, int channels, int lanes, int filler, Bytes& to) {
  const int pixels = static_cast<int>(image.size()) / channels;
  for (int p = 0; p < pixels; ++p) {
    for (int c = 0; c < lanes; ++c)
      to.at(cube_offset(pixels, p, c)) = static_cast<uint8_t>((c < channels ? image[p * channels + c] : filler) - 128);
  }
}

// [kernel][tap][channel], depthwise [tap][channel], into the cube of section 5.3.
void place_weights(const Conv& c, const std::vector<int>& weights, Bytes& to) {
  size_t at = 0;
  const int group = c.depthwise ? 64 : 32, kernels = c.kernels(), kernel_group = c.depthwise ? 1 : 32;
  for (int first = 0; first < kernels; first += kernel_group) {
    for (int lane = 0; lane < c.lanes(); lane += group) {
      for (int tap = 0; tap < c.taps(); ++tap) {
        for (int k = first; k < std::min(kernels, first + kernel_group); ++k) {
          for (int i = lane; i < std::min(c.lanes(), lane + group); ++i) {
            const bool kernel_there = c.depthwise || k < c.out_c;
            const int byte = i < c.in_c && kernel_there ? weights[(k * c.taps() + tap) * c.in_c + i] : c.zero_weight;
            to.at(at++) = kernel_there ? static_cast<uint8_t>(byte - 128) : 0;
          }
        }
      }
    }
  }
}

void place_bias(const Conv& c, const std::vector<int>& weights, const std::vector<int>& bias, Bytes& to) {
  for (int o = 0; o < c.out_lanes(); ++o) {
    int sum = 0;
    for (int tap = 0; tap < c.taps() && o < c.out_c; ++tap) {
      for (int i = 0; i < (c.depthwise ? 1 : c.in_c); ++i)
        sum += weights[c.depthwise ? tap * c.in_c + o : (o * c.taps() + tap) * c.in_c + i] - c.zero_weight;
    }
    const int value = o < c.out_c ? (bias[o] - 128) * 16 - (c.zero_in - 128) * sum : 0;
    store_le(&to.at(static_cast<size_t>(o) * 4), static_cast<int32_t>(value));
  }
}

struct Worked {
  Conv conv;
  std::vector<uint8_t> first;
  uint32_t crc;
};

TEST(RockchipResults, EqualTheSpecifiedOnes) {
  const Worked cases[] = {
      {{.out_scale = 16385, .out_shift = 23},
       {154, 131, 152, 144, 158, 151, 141, 138, 160, 147, 144, 117, 99, 154, 151, 124},
       0x7DA4007C},
      {{.in_h = 7,
        .in_w = 6,
        .in_c = 40,
        .out_h = 4,
        .out_w = 3,
        .out_c = 40,
        .stride_y = 2,
        .stride_x = 2,
        .pad_top = 1,
        .pad_left = 0,
        .depthwise = true,
        .out_scale = 21846,
        .out_shift = 23},
       {129, 92, 122, 162, 55, 144, 50, 128, 85, 85, 58, 125, 156, 189, 196, 102},
       0x82271EE1},
      {{.in_h = 4,
        .in_w = 5,
        .in_c = 16,
        .out_h = 4,
        .out_w = 5,
        .out_c = 32,
        .kernel_h = 1,
        .kernel_w = 1,
        .pad_top = 0,
        .pad_left = 0,
        .out_scale = 21846,
        .out_shift = 24,
        .add = true,
        .second_scale = 0x4000,
        .second_shift = 6},
       {108, 149, 202, 111, 133, 224, 175, 204, 168, 159, 180, 99, 126, 107, 199, 144},
       0x6702FE44},
  };
  for (const Worked& w : cases) {
    const Conv& c = w.conv;
    Scene scene;
    Draws draws;
    const auto image = draws.next(c.in_h * c.in_w * c.in_c);
    const auto weights = draws.next((c.depthwise ? 1 : c.out_c) * c.taps() * c.in_c);
    const auto bias = draws.next(c.out_c);
    place_image(image, c.in_c, c.lanes(), c.zero_in, scene.buffers[testing::kInput]);
    place_weights(c, weights, scene.buffers[testing::kWeights]);
    place_bias(c, weights, bias, scene.buffers[testing::kBias]);
    if (c.add)
      place_image(draws.next(c.out_h * c.out_w * c.out_c), c.out_c, c.out_lanes(), 0, scene.buffers[testing::kSecond]);
    run(scene, testing::conv_program(c));
    std::vector<uint8_t> out;
    for (int p = 0; p < c.out_h * c.out_w; ++p) {
      for (int o = 0; o < c.out_c; ++o)
        out.push_back(static_cast<uint8_t>(scene.output().at(cube_offset(c.out_h * c.out_w, p, o)) + 128));
    }
    EXPECT_EQ(std::vector<uint8_t>(out.begin(), out.begin() + 16), w.first);
    EXPECT_EQ(crc32(out), w.crc);
  }
}

// Unpacked weights are reused for tasks with the same bytes; the host or a task may write other bytes at any time.
TEST(RockchipResults, SeesWeightsThatWereWrittenAnew) {
  for (const bool depthwise : {false, true}) {
    const Conv conv{.in_c = 64, .out_c = 64, .depthwise = depthwise, .out_shift = 25};
    const Program program = testing::conv_program(conv);
    Scene scene;
    const Task task = scene.load(program.stream());
    const auto npu = Npu::create("rk3588");
    const Bytes first = scene.buffers[testing::kWeights];
    Bytes second = first;
    for (size_t i = 0; i < second.size(); i += 7) second[i] ^= 0x55;
    std::vector<Bytes> outputs;
    for (const Bytes* const weights : {&first, &std::as_const(second), &first, &std::as_const(second)}) {
      std::ranges::copy(*weights, scene.buffers[testing::kWeights].begin());
      const auto result = (*npu)->run_task(0, task, scene.memory);
      ASSERT_TRUE(result.ok() && result->stall.empty());
      outputs.push_back(scene.output());
      Scene alone;
      std::ranges::copy(*weights, alone.buffers[testing::kWeights].begin());
      run(alone, program, {.reference_only = true});
      EXPECT_EQ(alone.output(), scene.output());
    }
    EXPECT_NE(outputs[0], outputs[1]);
  }
}

// The tasks of an operation divided into row slices write the same bytes as one task.
TEST(RockchipResults, SlicesEqualTheWhole) {
  const Conv whole{.in_h = 9, .in_w = 7, .in_c = 20, .out_h = 9, .out_w = 7, .out_c = 40, .depthwise = false};
  Scene expected, sliced;
  run(expected, testing::conv_program(whole));
  struct Slice {
    int top, rows, out_top, out_rows, pad;
  };
  for (const Slice s : {Slice{0, 5, 0, 4, 1}, Slice{3, 6, 4, 5, 0}}) {
    Conv part = whole;
    part.in_h = s.rows;
    part.out_h = s.out_rows;
    part.pad_top = s.pad;
    Program p = testing::conv_program(part);
    p.set(hw::CnaDmaCon2{.surf_stride = whole.in_w * (whole.in_h - 4)});
    p.set(hw::CnaFeatureDataAddr{.feature_base_addr = {bits::Address::kAbsolute, testing::kInput + 16U * 7 * s.top}});
    p.set(hw::DpuDstBaseAddr{.dst_base_addr = {bits::Address::kAbsolute, testing::kOutput + 16U * 7 * s.out_top}});
    p.set(hw::DpuDstSurfStride{.dst_surf_stride = 63 * 16});
    p.set(hw::DpuSurfaceAdd{.surf_add = 2 * 63 * 16});
    run(sliced, p);
  }
  EXPECT_EQ(sliced.output(), expected.output());
}

// A ReLU in BN, and per-channel scales in BS.
TEST(RockchipResults, StagesClampAndScale) {
  const Conv conv{.in_c = 32, .out_c = 32, .zero_out = 128, .out_scale = 1, .out_shift = 8};
  Program relu = testing::conv_program(conv);
  relu.registers[hw::DpuBnCfg::kAddress] = 0x92;
  relu.set(hw::DpuBnReluxCmpValue{.bn_relux_cmp_dat = 40 << 8});
  Scene plain, clamped;
  run(plain, testing::conv_program(conv));
  run(clamped, relu);
  for (size_t i = 0; i < 25 * 32; ++i) {
    const int before = static_cast<int8_t>(plain.output()[i]);
    EXPECT_EQ(static_cast<int8_t>(clamped.output()[i]), std::clamp(before, 0, 40)) << i;
  }
}

TEST(RockchipResults, ScalesPerChannel) {
  Conv conv{.in_c = 16,
            .out_c = 32,
            .kernel_h = 1,
            .kernel_w = 1,
            .pad_top = 0,
            .pad_left = 0,
            .zero_weight = 128,
            .zero_out = 128,
            .out_scale = 1,
            .out_shift = 0};
  Program p = testing::per_channel_program(conv);
  Scene scene;
  Bytes& operands = scene.buffers[testing::kBias];
  for (int o = 0; o < 32; ++o) {
    uint8_t* group = &operands[static_cast<size_t>(o / 8 * 64)];
    store_le(group + o % 8 * 4, int32_t{100 * o});
    store_le(group + 32 + o % 8 * 2, int16_t{0});
    store_le(group + 48 + o % 8 * 2, static_cast<int16_t>(o - 3));
  }
  run(scene, p);
  const Bytes& in = scene.buffers[testing::kInput];
  const Bytes& weights = scene.buffers[testing::kWeights];
  for (int o = 0; o < 32; ++o) {
    int64_t sum = 100 * o;
    for (int i = 0; i < 16; ++i)
      sum += int64_t{static_cast<int8_t>(in[static_cast<size_t>(i)])} *
             static_cast<int8_t>(weights[static_cast<size_t>(o * 16 + i)]);
    const int8_t expected = saturate8(round_shift(sum * (o - 3), 9, Tie::even));
    EXPECT_EQ(static_cast<int8_t>(scene.output()[cube_offset(25, 0, o)]), expected) << o;
  }
}

// Each switch changes the results of a program that depends on it.
TEST(RockchipResults, SwitchesChangeWhatTheySay) {
  const Conv ties{.in_c = 16, .out_c = 32, .zero_out = 129, .out_scale = 1, .out_shift = 7};
  Program sum = testing::element_wise_program(24, 0x104202C0);
  sum.set(hw::DpuOutCvtShift{.out_cvt_shift = 1});
  struct Case {
    const char* what;
    Program program;
    Options options;
  };
  const Case cases[] = {
      {"offset before rounding", testing::conv_program(ties), {.offset_before_rounding = true}},
      {"half up", testing::truncated_program(), {.truncate_tie = TruncateTie::half_up}},
      {"floor", testing::truncated_program(), {.truncate_tie = TruncateTie::floor}},
      {"stored pad", testing::packed_program(), {.packed_pad = PackedPad::stored}},
      {"depthwise surfaces",
       testing::conv_program({.in_c = 16, .out_c = 16, .depthwise = true}),
       {.depthwise_stops_at_true_channels = true}},
      {"factor plus one",
       testing::per_channel_program({.in_c = 16, .out_c = 32}),
       {.cpend_plus_one_with_multiplier = true}},
      {"narrow sums", sum, {.element_wise_narrows_to_8_bits = true}},
  };
  for (const Case& c : cases) {
    Scene by_default, changed;
    run(by_default, c.program);
    run(changed, c.program, c.options);
    EXPECT_NE(by_default.output(), changed.output()) << c.what;
  }
}

TEST(RockchipResults, ElementWise) {
  constexpr int kWidth = 40;
  struct Case {
    uint32_t ew_cfg;
    int (*compute)(int, int);
  };
  const Case cases[] = {{0x104202C0, [](int a, int b) { return a + b; }},
                        {0x104402C0, [](int a, int b) { return a - b; }},
                        {0x106002C0, [](int a, int b) { return std::max(a, b); }},
                        {0x106102C0, [](int a, int b) { return std::min(a, b); }},
                        {0x104002C4, [](int a, int b) { return a * b; }}};
  for (const Case& c : cases) {
    Scene scene;
    run(scene, testing::element_wise_program(kWidth, c.ew_cfg));
    for (size_t i = 0; i < kWidth * 16; ++i) {
      const auto a = static_cast<int8_t>(scene.buffers[testing::kInput][i]);
      const auto b = static_cast<int8_t>(scene.buffers[testing::kSecond][i]);
      ASSERT_EQ(static_cast<int8_t>(scene.output()[i]), std::clamp(c.compute(a, b), -128, 127)) << c.ew_cfg;
    }
    EXPECT_EQ(scene.output()[kWidth * 16], 0xEE) << "nothing beyond the array is written";
  }
}

// ---- look-up tables ----

TEST(RockchipLookup, GivesTheEntryOfEachByte) {
  constexpr int kWidth = 40;
  const auto entry = [](int value) { return value * value / 100 - 30; };
  const Program program = testing::lookup_program(kWidth, entry);
  Scene scene;
  const auto npu = Npu::create("rk3588");
  const auto result = (*npu)->run_task(0, scene.load(program.stream()), scene.memory);
  ASSERT_TRUE(result.ok()) << result.error().message;
  ASSERT_EQ(result->stall, "");
  for (size_t i = 0; i < size_t{kWidth} * 16; ++i)
    ASSERT_EQ(static_cast<int8_t>(scene.output()[i]),
              std::clamp(entry(static_cast<int8_t>(scene.buffers[testing::kInput][i])), -128, 127));
}

TEST(RockchipLookup, StopsAtWhatIsNotKnown) {
  const auto program = [] { return testing::lookup_program(24, [](int value) { return value; }); };
  const auto changed = [&](auto change) {
    Program p = program();
    change(p);
    return p;
  };
  Program short_table = program();
  short_table.before_start.erase(short_table.before_start.begin() + 450, short_table.before_start.begin() + 500);
  Program long_table = program();
  long_table.before_start.insert(long_table.before_start.begin() + 500, 14,
                                 testing::command_word(hw::Target::dpu, 0, hw::DpuLutAccessData::kAddress));
  const struct {
    const char* what;
    Program program;
    const char* message;
  } cases[] = {
      {"between entries", changed([](Program& p) {
         p.set(hw::DpuLutInfo{.lut_le_index_select = 1, .lut_lo_index_select = 1});
         p.set(hw::DpuLutLeStart{.lut_le_start = -1024});
         p.set(hw::DpuLutLoEnd{.lut_lo_end = 1024});
       }),
       "between two entries"},
      {"beyond", changed([](Program& p) {
         p.set(hw::DpuLutLeStart{.lut_le_start = -612});
         p.set(hw::DpuLutLeEnd{.lut_le_end = -100});
       }),
       "beyond both tables"},
      {"reach", changed([](Program& p) { p.set(hw::DpuLutLoEnd{.lut_lo_end = 513}); }), "do not reach"},
      {"with ReLU", changed([](Program& p) { p.registers[hw::DpuEwCfg::kAddress] = 0x102; }), "without operator"},
      {"set up, but skipped", changed([](Program& p) { p.registers[hw::DpuEwCfg::kAddress] = 0x383; }),
       "ew_lut_bypass is set"},
      {"half loaded", short_table, "no command of the job loaded it"},
      {"too many entries", long_table, "a table has 513 entries"},
      {"data without access", changed([](Program& p) { p.registers[hw::DpuLutAccessData::kAddress] = 5; }),
       "does not write"},
  };
  for (const auto& c : cases) {
    Scene scene;
    const auto npu = Npu::create("rk3588");
    const auto result = (*npu)->run_task(0, scene.load(c.program.stream()), scene.memory);
    ASSERT_FALSE(result.ok()) << c.what;
    EXPECT_NE(result.error().message.find(c.message), std::string::npos) << c.what << ": " << result.error().message;
  }
}

TEST(RockchipLookup, EachJobLoadsItsOwn) {
  const Program loads = testing::lookup_program(24, [](int value) { return value; });
  Program uses = loads;
  uses.before_start.clear();
  Scene scene;
  const auto npu = Npu::create("rk3588");
  ASSERT_TRUE((*npu)->run_task(0, scene.load(loads.stream()), scene.memory).ok());
  Task task = scene.load(uses.stream());
  task.first_of_job = false;
  EXPECT_TRUE((*npu)->run_task(0, task, scene.memory).ok());
  task.first_of_job = true;
  EXPECT_FALSE((*npu)->run_task(0, task, scene.memory).ok());
}

TEST(RockchipPooling, AveragesAsMeasured) {
  // Halves of an even window: away from zero unless the result is odd or the reciprocal is inexact.
  EXPECT_EQ(average(6, 2, 2), 2);   // 1.5
  EXPECT_EQ(average(10, 2, 2), 2);  // 2.5
  EXPECT_EQ(average(-6, 2, 2), -2);
  EXPECT_EQ(average(-10, 2, 2), -2);
  EXPECT_EQ(average(3, 6, 1), 0);  // 0.5, 65536 % 6 != 0
  EXPECT_EQ(average(9, 3, 2), 1);  // 1.5, 65536 % 3 != 0
  EXPECT_EQ(average(-9, 3, 2), -1);
  EXPECT_EQ(average(5, 3, 3), 1);
  EXPECT_EQ(average(-4, 3, 3), 0);
}

TEST(RockchipPooling, EqualsLoops) {
  for (const testing::Pool& c :
       {testing::Pool{}, testing::Pool{.method = hw::Pooling::min, .in_h = 7, .in_w = 7, .out_h = 3},
        testing::Pool{.method = hw::Pooling::average, .in_h = 4, .in_w = 6, .out_h = 2, .out_w = 3, .kernel = 2},
        testing::Pool{.in_h = 5, .in_w = 5, .out_h = 3, .out_w = 3, .pad = 1}}) {
    Scene scene;
    const auto npu = Npu::create("rk3588");
    const auto result = (*npu)->run_task(0, scene.load(testing::pool_program(c).stream()), scene.memory);
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(result->raw_status, 0x400U);
    EXPECT_FALSE(result->completes()) << "the mainline kernel does not see the PPU's bits";
    for (int lane = 0; lane < c.channels; ++lane) {
      for (int p = 0; p < c.out_h * c.out_w; ++p) {
        int sum = 0, most = -128, least = 127;
        for (int k = 0; k < c.kernel * c.kernel; ++k) {
          const int y = p / c.out_w * c.stride + k / c.kernel - c.pad,
                    x = p % c.out_w * c.stride + k % c.kernel - c.pad;
          if (y < 0 || x < 0 || y >= c.in_h || x >= c.in_w) continue;
          const int v =
              static_cast<int8_t>(scene.buffers[testing::kInput][cube_offset(c.in_h * c.in_w, y * c.in_w + x, lane)]);
          sum += v;
          most = std::max(most, v);
          least = std::min(least, v);
        }
        const int expected = c.method == hw::Pooling::max   ? most
                             : c.method == hw::Pooling::min ? least
                                                            : average(sum, c.kernel, c.kernel);
        ASSERT_EQ(static_cast<int8_t>(scene.output()[cube_offset(c.out_h * c.out_w, p, lane)]), expected);
      }
    }
  }
}

}  // namespace
}  // namespace skillet::sim::rockchip
