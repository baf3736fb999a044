// Programs of the RK3576 against the tables of its specification (sections 3, 5, 6), with numbers of our own.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/bytes.h"
#include "npu/driver.h"

namespace skillet::npus::rockchip {

const npu::Driver& driver();

namespace {

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
    }
  }
  for (const npu::Buffer& buffer : program->buffers) {
    if (buffer.name.starts_with("weights")) out.weights.assign(buffer.contents.begin(), buffer.contents.end());
    if (buffer.name.starts_with("operands")) out.operands.assign(buffer.contents.begin(), buffer.contents.end());
  }
  return out;
}

// 10x12, 48 channels to 24: three atoms count as four, no group is filled up.
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
  // An odd number of rows is halved otherwise, with a dummy program behind each.
  const Compiled odd = compile(conv_text(9, 12, 32, 32), {.tuning = npu::Tuning::recorded, .switches = {"two_halves"}});
  ASSERT_EQ(odd.tasks.size(), 4U);
  EXPECT_EQ(odd.tasks[1].at(0x1038), 0xC0000007U);
  EXPECT_EQ(odd.tasks[2].at(0x1038), 0xEU);
}

// ---- words of any shape

// A layer of int8 as the tables of section 5 have it; `a` and `b` of direct, depthwise.
struct Shape {
  bool depthwise = false, same = true;
  uint32_t in_channels = 16, out_channels = 16, in_height = 8, in_width = 8, kernel_height = 3, kernel_width = 3,
           stride_y = 1, stride_x = 1;
  int32_t zero = 0;  // of the weights

  static uint32_t out(uint32_t size, uint32_t kernel, uint32_t stride, bool same) {
    return same ? (size + stride - 1) / stride : (size - kernel) / stride + 1;
  }
  static uint32_t pads(uint32_t size, uint32_t kernel, uint32_t stride, uint32_t outputs) {
    const uint32_t reach = (outputs - 1) * stride + kernel;
    return reach > size ? reach - size : 0;
  }
  uint32_t out_height() const { return out(in_height, kernel_height, stride_y, same); }
  uint32_t out_width() const { return out(in_width, kernel_width, stride_x, same); }
  uint32_t pad_rows() const { return same ? pads(in_height, kernel_height, stride_y, out_height()) : 0; }
  uint32_t pad_columns() const { return same ? pads(in_width, kernel_width, stride_x, out_width()) : 0; }
  uint32_t channels() const { return depthwise ? in_channels : out_channels; }

  std::string text() const {
    const uint32_t kernels = depthwise ? 1 : out_channels;
    return fmt::format(
        "graph \"\"\ntensor 0 \"in\" int8 1x{}x{}x{} scale=0.5 zero=-3\n"
        "tensor 1 \"w\" int8 {}x{}x{}x{} scale=0.25 zero={} const=random:3\n"
        "tensor 2 \"b\" int32 {} scale=0.125 zero=0 const=random:4\ntensor 3 \"out\" int8 1x{}x{}x{} scale=2 zero=7\n"
        "inputs 0\noutputs 3\nop 0 {} in=[0 1 2] out=[3] padding={} stride_h={} stride_w={}\n",
        in_height, in_width, in_channels, kernels, kernel_height, kernel_width, in_channels, zero, channels(),
        out_height(), out_width(), channels(), depthwise ? "DEPTHWISE_CONV_2D" : "CONV_2D", same ? "same" : "valid",
        stride_y, stride_x);
  }
};

// Of the first core alone. What is not here is 0, but for addresses.
std::map<uint32_t, uint32_t> words_of(const Shape& s) {
  const auto up = [](uint32_t value, uint32_t to) { return (value + to - 1) / to * to; };
  const auto pick = [&](uint32_t direct, uint32_t depthwise) { return s.depthwise ? depthwise : direct; };
  const uint32_t oh = s.out_height(), ow = s.out_width(), ih = s.in_height, iw = s.in_width, oc = s.channels();
  const uint32_t atoms = up(s.in_channels, 16) / 16, lanes = 16 * (atoms + (atoms % 4 == 3 ? 1 : 0));
  const uint32_t entries = up(iw * lanes, 64) / 64, out_atoms = up(oc, 16) / 16;
  const uint32_t kernel = up(s.in_channels, 16) * s.kernel_height * s.kernel_width, plane = oh * ow;
  const uint32_t banks = std::max(up(entries * ih, 1024) / 1024, 4U), rows = ih - 1, columns = iw - 1;
  const uint32_t top = s.pad_rows() / 2, left = s.pad_columns() / 2;
  const uint32_t bottom = Shape::pads(ih, s.kernel_height, s.stride_y, oh), pitch = plane == 1 ? 1 : up(plane, 4);
  const uint32_t right = Shape::pads(iw, s.kernel_width, s.stride_x, ow);
  const uint32_t behind = bottom > top ? bottom - top : 0, beside = right > left ? right - left : 0;
  std::map<uint32_t, uint32_t> out = {
      {0x1004, 0xE},
      {0x3004, 0xE},
      {0x4004, 0xE},
      {0x5004, 0xE},
      {0x100C, pick(0, 1)},
      {0x1010, 0xFFF},
      {0x1014, s.stride_y << 3 | s.stride_x},
      {0x1018, 0x40000000 | banks << 8 | banks},
      {0x1038, 7},
      {0x1040, banks << 26},
      {0x101C, pick(kernel * oc, kernel * 2)},
      {0x1020, kernel},
      {0x1024, (s.kernel_height - 1) << 24 | (s.kernel_width - 1) << 16 | pick(oc - 1, 1)},
      {0x1028, entries * ih << 16 | (s.in_channels - 1)},
      {0x102C, columns << 16 | rows},
      {0x1030, pick(kernel * 2, kernel / 8) << 16 | (ow - 1)},
      {0x1034, plane - 1},
      {0x103C, entries << 16},
      {0x1044, iw << 16 | entries},
      {0x1048, 0xB},
      {0x104C, 0x10001},
      {0x1050, 0x10001},
      {0x1078, columns << 16 | rows},
      {0x107C, s.in_channels - 1},
      {0x1080, beside << 24 | behind << 16 | left << 8 | top},
      {0x1084, 0xFFFFFFFD},
      {0x108C, 0xF000F},
      {0x1090, 4 * iw},
      {0x1094, iw * ih},
      {0x1098, ih * iw == 1 ? 1 : up(ih * iw, 4)},
      {0x118C, columns << 16 | columns},
      {0x3018, pick(0x10000001, 0x1000000A)},
      {0x301C, (oh - 1) << 16 | (ow - 1)},
      {0x3020, oc - 1},
      {0x400C, pick(0x40000004, 0x4000000C)},
      {0x401C, pitch},
      {0x4020, ow - 1},
      {0x4024, oh - 1},
      {0x402C, oc - 1},
      {0x4030, (oc - 1) << 16 | pick(0x710, 0x310)},
      {0x4034, (oh - 1) << 16 | (ow - 1)},
      {0x4038, pick(0x120080, 0x100092)},
      {0x4044, pick(1, 0)},
      {0x4050, pick(0x80011011 | (out_atoms % 2 == 0 ? 0x100U : 0), 0x13033 | ((out_atoms - 1) & 3) << 8)},
      {0x4060, 0x903},
      {0x407C, 0x010041C1},
      {0x4084, 1},
      {0x40AC, 7},
      {0x40B0, 0x4000},
      {0x40B4, 18},
      {0x40B8, pick(2, 4) * pitch - plane},
      {0x40C0, 0x04440100},
      {0x40D0, 0x0040FFFF},
      {0x500C, ow - 1},
      {0x5010, oh - 1},
      {0x5014, oc - 1},
      {0x501C, pick(0x710, 0x510)},
      {0x5034, 0x41},
      {0x5044, pick(0x40000010, 0x40000012)}};
  for (const uint32_t least : {0x4048, 0x4058, 0x406C, 0x4074, 0x4088, 0x40A4})
    out[least] = 0x80000000, out[least + 4] = 0x7FFFFFFF;
  return out;
}

// Section 6: where each weight is, and A and B of each channel, without the rounding of C.
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
    if (!s.depthwise) EXPECT_EQ(load_le<int16_t>(group + 32 + size_t{c % 8} * 2), -s.zero) << "B of " << c;
    EXPECT_EQ(load_le<int16_t>(group + (s.depthwise ? 32 : 48) + size_t{c % 8} * 2), 16384) << "C of " << c;
  }
}

// Rows and columns from 1, channels of parts of atoms, three atoms, seven, filters of 1 to 7, whole and half steps.
TEST(Rk3576, RecordedProgramsOfAnyShapeAreThoseOfTheTables) {
  constexpr int kShapes = 150;
  constexpr uint32_t kAddresses[] = {0x1088, 0x1110, 0x4018, 0x5020, 0x5024};
  std::mt19937 random(35);
  const auto from = [&](uint32_t least, uint32_t most) {
    return least + static_cast<uint32_t>(random() % (most - least + 1));
  };
  int compared = 0;
  for (int i = 0; i < kShapes; ++i) {
    Shape s{.depthwise = from(0, 2) == 0,
            .same = from(0, 3) != 0,
            .in_channels = from(2, 200),
            .out_channels = from(1, 130)};
    s.in_height = from(1, 40), s.in_width = from(1, 40), s.stride_y = from(1, 2), s.stride_x = from(1, 2);
    s.zero = static_cast<int32_t>(from(0, 255)) - 128;
    s.kernel_height = from(1, s.same ? 7 : std::min(s.in_height, 7U));
    s.kernel_width = from(1, s.same ? 7 : std::min(s.in_width, 7U));
    SCOPED_TRACE(s.text());
    const auto graph = ir::parse(s.text());
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    if (!driver().supports(npu::find_chip("rk3576").value(), *graph, 0).ok) continue;
    const Compiled one = compile(s.text(), {.tuning = npu::Tuning::recorded});
    if (one.tasks.size() != 1) continue;  // windows of rows, parts of the kernels
    ++compared;
    EXPECT_EQ(one.words[0], 139U);
    const std::map<uint32_t, uint32_t> words = words_of(s);
    for (const auto& [address, value] : one.tasks[0]) {
      if (std::ranges::find(kAddresses, address) != std::end(kAddresses)) continue;
      const auto at = words.find(address);
      EXPECT_EQ(value, at == words.end() ? 0 : at->second) << std::hex << address;
    }
    expect_buffers(s, *graph, one);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(compared, kShapes / 2);
}

// Section 8, with a zero point of -3.
std::map<uint32_t, uint32_t> pool_words_of(const Shape& s, bool maximum) {
  const auto in_fours = [](uint32_t pixels) { return 16 * (pixels == 1 ? 1 : (pixels + 3) / 4 * 4); };
  const uint32_t oh = s.out_height(), ow = s.out_width(), top = s.pad_rows() / 2, left = s.pad_columns() / 2;
  const uint32_t bottom = s.pad_rows() - top, right = s.pad_columns() - left, lanes = (s.in_channels + 15) / 16 * 16;
  const uint32_t rows = std::min(s.in_height, (oh - 1) * s.stride_y + s.kernel_height - top);
  const uint32_t columns = std::min(s.in_width, (ow - 1) * s.stride_x + s.kernel_width - left);
  const bool pads = s.pad_rows() + s.pad_columns() > 0;
  const auto value = [&](int32_t times) {
    return (maximum ? -128U : pads ? 0U : static_cast<uint32_t>(-3 * times)) & 0x7FFFF;
  };
  return {{0x6004, 0xE},
          {0x7004, 0xE},
          {0x600C, columns - 1},
          {0x6010, rows - 1},
          {0x6014, lanes - 1},
          {0x6018, ow - 1},
          {0x601C, oh - 1},
          {0x6020, lanes - 1},
          {0x6024, maximum ? 0x11U
                   : pads  ? 0x18U
                           : 0x10U},
          {0x6034, (s.stride_y - 1) << 20 | (s.stride_x - 1) << 16 | (s.kernel_height - 1) << 8 | (s.kernel_width - 1)},
          {0x6038, maximum ? 0 : 65536 / s.kernel_width},
          {0x603C, maximum ? 0 : 65536 / s.kernel_height},
          {0x6040, left | top << 4 | right << 8 | bottom << 12},
          {0x6044, value(1)},
          {0x6048, value(2)},
          {0x604C, value(3)},
          {0x6050, value(4)},
          {0x607C, in_fours(oh * ow)},
          {0x6084, in_fours(oh * ow)},

          {0x700C, columns - 1},
          {0x7010, rows - 1},
          {0x7014, lanes - 1},
          {0x7024, 16 * s.in_width},
          {0x7028, in_fours(s.in_width * s.in_height)},
          {0x7030, 0x40}};
}

TEST(Rk3576, RecordedPoolsOfAnyShapeAreThoseOfTheTables) {
  constexpr int kShapes = 150;
  std::mt19937 random(36);
  const auto from = [&](uint32_t least, uint32_t most) {
    return least + static_cast<uint32_t>(random() % (most - least + 1));
  };
  int compared = 0;
  for (int i = 0; i < kShapes; ++i) {
    const bool maximum = from(0, 1) == 0;
    Shape s{.depthwise = true, .same = from(0, 1) == 0, .in_channels = from(2, 200)};
    s.in_height = from(1, 40), s.in_width = from(1, 40), s.stride_y = from(1, 4), s.stride_x = from(1, 4);
    s.kernel_height = from(2, 8), s.kernel_width = from(2, 8);
    if (!s.same && (s.kernel_height > s.in_height || s.kernel_width > s.in_width)) continue;
    const std::string text = fmt::format(
        "graph \"\"\ntensor 0 \"in\" int8 1x{}x{}x{} scale=0.5 zero=-3\ntensor 1 \"out\" int8 1x{}x{}x{} scale=0.5 "
        "zero=-3\n"
        "inputs 0\noutputs 1\nop 0 {} in=[0] out=[1] padding={} stride_h={} stride_w={} filter_h={} filter_w={}\n",
        s.in_height, s.in_width, s.in_channels, s.out_height(), s.out_width(), s.in_channels,
        maximum ? "MAX_POOL_2D" : "AVERAGE_POOL_2D", s.same ? "same" : "valid", s.stride_y, s.stride_x, s.kernel_height,
        s.kernel_width);
    SCOPED_TRACE(text);
    const auto graph = ir::parse(text);
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    if (!driver().supports(npu::find_chip("rk3576").value(), *graph, 0).ok) continue;
    const Compiled one = compile(text, {.tuning = npu::Tuning::recorded});
    ASSERT_EQ(one.tasks.size(), 1U);
    ++compared;
    EXPECT_EQ(one.words[0], 31U);
    const std::map<uint32_t, uint32_t> words = pool_words_of(s, maximum);
    for (const auto& [address, word] : one.tasks[0]) {
      if (address == 0x6070 || address == 0x701C) continue;
      const auto at = words.find(address);
      EXPECT_EQ(word, at == words.end() ? 0 : at->second) << std::hex << address;
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(compared, kShapes / 3);
}

// Channels are programmed whole, surfaces begin at multiples of four pixels.
TEST(Rk3576, ProvenProgramsHaveWholeGroups) {
  const Compiled one = compile(conv_text(5, 5, 20, 40), {});
  EXPECT_EQ(one.tasks.at(0).at(0x107C), 31U);
  EXPECT_EQ(one.tasks.at(0).at(0x3020), 63U);
  EXPECT_EQ(one.tasks.at(0).at(0x401C), 28U);
}

// What the chip has not is refused with its limit.
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
}

}  // namespace
}  // namespace skillet::npus::rockchip
