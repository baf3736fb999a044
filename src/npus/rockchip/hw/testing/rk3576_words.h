// The words of RK3576 programs, written a second time from the tables of its specification, without the compiler's rows
// or code. Addresses are 0. Called by tests of compiler and simulator. Must not know: what they test.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>

namespace skillet::npus::rockchip::testing {

struct Shape {
  bool depthwise = false, same = true;
  uint32_t in_channels = 16, out_channels = 16, in_height = 8, in_width = 8, kernel_height = 3, kernel_width = 3,
           stride_y = 1, stride_x = 1;
  int32_t zero = 0;          // of the weights
  bool per_channel = false;  // each channel has its own scale
  float out_scale = 2;
  enum class Limit : uint8_t { none, relu, relu6 } limit = Limit::none;
  // Explicit amounts, as other frameworks pad, for `same` = false. Padding at the end may exceed what a window reads.
  uint32_t front_rows = 0, back_rows = 0, front_columns = 0, back_columns = 0;

  static uint32_t out(uint32_t size, uint32_t kernel, uint32_t stride, bool same) {
    return same ? (size + stride - 1) / stride : (size - kernel) / stride + 1;
  }
  static uint32_t pads(uint32_t size, uint32_t kernel, uint32_t stride, uint32_t outputs) {
    const uint32_t reach = (outputs - 1) * stride + kernel;
    return reach > size ? reach - size : 0;
  }
  uint32_t padded_height() const { return in_height + front_rows + back_rows; }
  uint32_t padded_width() const { return in_width + front_columns + back_columns; }
  bool pads_itself() const { return front_rows + back_rows + front_columns + back_columns > 0; }
  uint32_t out_height() const { return out(padded_height(), kernel_height, stride_y, same); }
  uint32_t out_width() const { return out(padded_width(), kernel_width, stride_x, same); }
  uint32_t pad_rows() const { return pads(in_height, kernel_height, stride_y, out_height()); }
  uint32_t pad_columns() const { return pads(in_width, kernel_width, stride_x, out_width()); }
  uint32_t top() const { return same ? pad_rows() / 2 : front_rows; }
  uint32_t left() const { return same ? pad_columns() / 2 : front_columns; }
  uint32_t bottom() const { return pad_rows() > top() ? pad_rows() - top() : 0; }
  uint32_t right() const { return pad_columns() > left() ? pad_columns() - left() : 0; }
  uint32_t channels() const { return depthwise ? in_channels : out_channels; }
  // Scale of the weights, in 64ths; the last channel has the largest.
  uint32_t scale(uint32_t channel) const { return per_channel && channel + 1 < channels() ? 5 + channel % 11 : 16; }
  std::string scales() const {
    if (!per_channel) return "0.25";
    std::string out = "[";
    for (uint32_t c = 0; c < channels(); ++c) out += fmt::format("{}{}", c == 0 ? "" : " ", scale(c) / 64.0);
    return out + "]";
  }

  // Tensors 4 and 5: the amounts, and the padded input.
  std::string padded() const {
    if (!pads_itself()) return "";
    return fmt::format(
        "tensor 4 \"amounts\" int32 4x2 const=[0 0 {} {} {} {} 0 0]\n"
        "tensor 5 \"padded\" int8 1x{}x{}x{} scale=0.5 zero=-3\n",
        front_rows, back_rows, front_columns, back_columns, padded_height(), padded_width(), in_channels);
  }
  std::string text() const {
    const uint32_t kernels = depthwise ? 1 : out_channels;
    return fmt::format(
        "graph \"\"\ntensor 0 \"in\" int8 1x{}x{}x{} scale=0.5 zero=-3\n"
        "tensor 1 \"w\" int8 {}x{}x{}x{} scale={} zero={}{} const=random:3\n"
        "tensor 2 \"b\" int32 {} scale=0.125 zero=0 const=random:4\ntensor 3 \"out\" int8 1x{}x{}x{} scale={} zero=7\n"
        "{}inputs 0\noutputs 3\n{}op {} {} in=[{} 1 2] out=[3] padding={} stride_h={} stride_w={}{}\n",
        in_height, in_width, in_channels, kernels, kernel_height, kernel_width, in_channels, scales(), zero,
        !per_channel ? ""
        : depthwise  ? " axis=3"
                     : " axis=0",
        channels(), out_height(), out_width(), channels(), out_scale, padded(),
        pads_itself() ? "op 0 PAD in=[0 4] out=[5]\n" : "", pads_itself() ? 1 : 0,
        depthwise ? "DEPTHWISE_CONV_2D" : "CONV_2D", pads_itself() ? 5 : 0, same ? "same" : "valid", stride_y, stride_x,
        limit == Limit::none   ? ""
        : limit == Limit::relu ? " activation=relu"
                               : " activation=relu6");
  }
};

struct Gain {
  uint32_t multiplier, shift;
};
// For the largest scale, 1/4, and an input scale of 1/2: 15 bits, rounded to nearest.
inline Gain gain_of(const Shape& s) {
  int exponent = 0;
  const auto multiplier =
      static_cast<uint32_t>(std::lround(std::frexp(0.125 / double{s.out_scale}, &exponent) * 32768));
  const auto shift = static_cast<uint32_t>(15 - exponent);
  return multiplier == 32768 ? Gain{multiplier / 2, shift - 1} : Gain{multiplier, shift};
}

// Section 5, for the first core alone.
inline std::map<uint32_t, uint32_t> words_of(const Shape& s) {
  const auto up = [](uint32_t value, uint32_t to) { return (value + to - 1) / to * to; };
  const auto pick = [&](uint32_t direct, uint32_t depthwise) { return s.depthwise ? depthwise : direct; };
  const uint32_t oh = s.out_height(), ow = s.out_width(), ih = s.in_height, iw = s.in_width, oc = s.channels();
  const uint32_t atoms = up(s.in_channels, 16) / 16, lanes = 16 * (atoms + (atoms % 4 == 3 ? 1 : 0));
  const uint32_t entries = up(iw * lanes, 64) / 64, out_atoms = up(oc, 16) / 16;
  const uint32_t kernel = up(s.in_channels, 16) * s.kernel_height * s.kernel_width, plane = oh * ow;
  const uint32_t banks = std::max(up(entries * ih, 1024) / 1024, 4U), rows = ih - 1, columns = iw - 1;
  const uint32_t pitch = plane == 1 ? 1 : up(plane, 4);
  const auto [multiplier, shift] = gain_of(s);
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
      {0x1080, s.right() << 24 | s.bottom() << 16 | s.left() << 8 | s.top()},
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
      {0x40B0, multiplier},
      {0x40B4, shift},
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
  if (s.limit != Shape::Limit::none) {
    out[0x4060] = 0x902, out[0x406C] = out[0x4074] = 0;
    // Input scale of 1/2: 6 in steps of the first channel.
    if (s.limit == Shape::Limit::relu6) out[0x4070] = out[0x4078] = (6 * 2 * 64 + s.scale(0) / 2) / s.scale(0);
  }
  constexpr uint32_t kZeros[] = {
      0x1054, 0x1058, 0x105C, 0x1060, 0x1064, 0x1068, 0x106C, 0x1070, 0x1074, 0x1088, 0x109C, 0x1100, 0x1104, 0x1110,
      0x1140, 0x1144, 0x3024, 0x4010, 0x4014, 0x4018, 0x4028, 0x403C, 0x4080, 0x4090, 0x4094, 0x409C, 0x40BC, 0x40C8,
      0x40CC, 0x4100, 0x4104, 0x4108, 0x410C, 0x4110, 0x4114, 0x4118, 0x411C, 0x4120, 0x4130, 0x4140, 0x4144, 0x4148,
      0x414C, 0x4150, 0x4154, 0x4160, 0x4170, 0x4174, 0x4184, 0x4188, 0x418C, 0x4190, 0x4194, 0x5018, 0x5020, 0x5024,
      0x5028, 0x502C, 0x5030, 0x5038, 0x5040, 0x5048, 0x504C, 0x5064, 0x506C, 0x5078, 0x507C};
  for (const uint32_t zero : kZeros) out[zero] = 0;
  return out;
}

// Ten rows of 16 channels, a filter of 3x3, four data banks for the rows that fit.
inline std::map<uint32_t, uint32_t> window_words(uint32_t top, uint32_t rows, uint32_t kept, uint32_t out_top,
                                                 uint32_t out_rows, uint32_t granule, uint32_t columns = 8) {
  constexpr uint32_t kAll = 10, kBanksUnits = 4096;
  const uint32_t units = columns / 4, row = 16 * columns, pitch = kAll * columns, last = columns - 1;
  std::map<uint32_t, uint32_t> words = words_of(Shape{.in_height = kAll, .in_width = columns});
  const uint32_t keeps = kept > 0 ? 1U << 31 : 0, fetched = rows - kept, bottom = top + rows == kAll ? 1 : 0;
  if (units * rows <= kBanksUnits) words[0x1018] = 0x40000404, words[0x1040] = 4U << 26;
  words[0x1018] |= keeps, words[0x1038] |= keeps;
  words[0x1028] = units * fetched << 16 | 15, words[0x102C] = last << 16 | (rows - 1);
  words[0x1034] = columns * out_rows - 1, words[0x103C] = units << 16 | granule;
  words[0x1040] |= granule + kept * units, words[0x1078] = last << 16 | (fetched - 1);
  words[0x1080] = 0x01000100 | bottom << 16 | (top == 0 ? 1 : 0);
  words[0x1088] += row * (top + kept), words[0x1098] = columns * fetched;
  words[0x301C] = words[0x4034] = (out_rows - 1) << 16 | last, words[0x4024] = words[0x5010] = out_rows - 1;
  words[0x40B4] = 24;  // sums / 1024
  words[0x4018] += row * out_top, words[0x40B8] = 2 * pitch - columns * out_rows;
  return words;
}

// Section 3: the same program for the other core.
inline std::map<uint32_t, uint32_t> second_core(std::map<uint32_t, uint32_t> words) {
  constexpr uint32_t kBanks = 7, kFirst = kBanks * 1024;
  words[0x1018] += kBanks, words[0x1038] = 0x10E, words[0x1040] += kFirst << 16 | kFirst, words[0x103C] |= kFirst;
  return words;
}

// Half of the rows, for two cores: an even number of rows for both at once, an odd one for each alone.
inline std::map<uint32_t, uint32_t> half_words(const Shape& s, bool lower) {
  std::map<uint32_t, uint32_t> words = words_of(s);
  const uint32_t oh = s.out_height(), ow = s.out_width(), upper = (oh + 1) / 2, rows_out = lower ? oh - upper : upper;
  const auto pad = static_cast<int32_t>(s.top()), in = static_cast<int32_t>(s.in_height);
  const int32_t first = (lower ? static_cast<int32_t>(upper * s.stride_y) : 0) - pad;
  const int32_t last = first + static_cast<int32_t>((rows_out - 1) * s.stride_y + s.kernel_height) - 1;
  const int32_t top = std::max(first, 0), rows = std::min(last, in - 1) - top + 1;
  const uint32_t entries = words[0x1028] >> 16, each = entries / s.in_height, fetched = static_cast<uint32_t>(rows);
  const uint32_t pixels = fetched * s.in_width, banks = std::max((each * fetched + 1023) / 1024, 4U);
  words[0x1028] = each * fetched << 16 | (s.in_channels - 1);
  words[0x102C] = words[0x1078] = (s.in_width - 1) << 16 | (fetched - 1);
  words[0x1034] = rows_out * ow - 1, words[0x1098] = pixels == 1 ? 1 : (pixels + 3) / 4 * 4;
  words[0x1080] = (words[0x1080] & 0xFF00FF00) | static_cast<uint32_t>(std::max(last - in + 1, 0)) << 16 |
                  static_cast<uint32_t>(top - first);
  words[0x301C] = words[0x4034] = (rows_out - 1) << 16 | (ow - 1), words[0x4024] = words[0x5010] = rows_out - 1;
  words[0x40B8] += oh * ow - rows_out * ow;
  words[0x1018] = 0x40000000 | banks << 8 | banks, words[0x1040] = banks << 26;
  if (oh % 2 != 0) {
    if (!lower) return words;
    words = second_core(words), words[0x1038] = 0xE;
    return words;
  }
  words[0x1014] |= 1U << 28, words[0x1038] = lower ? 0x80000010 : 0x10;
  words[0x1018] = lower ? 0x4000060C : 0x40000606, words[0x1040] = lower ? 0x30001800 : 0x30000000;
  if (lower) words[0x103C] |= 0x1800;
  return words;
}

// Section 8, with a zero point of -3.
inline std::map<uint32_t, uint32_t> pool_words_of(const Shape& s, bool maximum) {
  const auto in_fours = [](uint32_t pixels) { return 16 * (pixels == 1 ? 1 : (pixels + 3) / 4 * 4); };
  const uint32_t oh = s.out_height(), ow = s.out_width(), top = s.top(), left = s.left();
  const uint32_t bottom = s.bottom(), right = s.right(), lanes = (s.in_channels + 15) / 16 * 16;
  const uint32_t rows = std::min(s.in_height, (oh - 1) * s.stride_y + s.kernel_height - top);
  const uint32_t columns = std::min(s.in_width, (ow - 1) * s.stride_x + s.kernel_width - left);
  const bool pads = top + left + bottom + right > 0;
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
          {0x7030, 0x40},
          {0x6054, 0},
          {0x6058, 0},
          {0x605C, 0},
          {0x6070, 0},
          {0x60DC, 0},
          {0x701C, 0}};
}

}  // namespace skillet::npus::rockchip::testing
