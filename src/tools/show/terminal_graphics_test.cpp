// Writes pictures as terminal graphics, and reads them back as terminals do.
#include "tools/show/terminal_graphics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/splitmix64.h"
#include "tools/show/canvas.h"
#include "tools/show/terminal.h"

namespace skillet::tools {
namespace {

Picture noise(int width, int height, uint64_t seed) {
  Picture out{.width_px = width, .height_px = height, .channels = 3, .pixels = {}};
  SplitMix64 random(seed);
  out.pixels.resize(static_cast<size_t>(width) * height * 3);
  for (uint8_t& one : out.pixels) one = static_cast<uint8_t>(random.next());
  return out;
}

int number(std::string_view& text) {
  int out = -1;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), out);
  EXPECT_EQ(failure, std::errc());
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return out;
}

std::vector<int> numbers(std::string_view& text) {
  std::vector<int> out = {number(text)};
  while (text.starts_with(";")) {
    text.remove_prefix(1);
    out.push_back(number(text));
  }
  return out;
}

// Reads a sixel picture; each pixel must be painted exactly once.
Picture read_sixel(std::string_view text) {
  Picture out{.width_px = 0, .height_px = 0, .channels = 3, .pixels = {}};
  std::map<int, std::vector<int>> palette;
  std::vector<int> painted;
  int x = 0, y = 0, colour = 0;
  const auto paint = [&](int bits, int count) {
    for (; count > 0; --count, ++x) {
      for (int row = 0; row < 6; ++row) {
        if ((bits >> row & 1) == 0) continue;
        ASSERT_LT(x, out.width_px);
        ASSERT_LT(y + row, out.height_px);
        const size_t at = static_cast<size_t>(y + row) * out.width_px + x;
        ++painted[at];
        for (size_t i = 0; i < 3; ++i) out.pixels[at * 3 + i] = static_cast<uint8_t>(palette.at(colour)[i] * 255 / 100);
      }
    }
  };
  constexpr std::string_view kStart = "\x1bP0;1q", kEnd = "\x1b\\\n";
  EXPECT_TRUE(text.starts_with(kStart) && text.ends_with(kEnd));
  text = text.substr(kStart.size(), text.size() - kStart.size() - kEnd.size());
  while (!text.empty()) {
    const char what = text.front();
    text.remove_prefix(1);
    if (what == '"') {
      const std::vector<int> size = numbers(text);
      out.width_px = size.at(2);
      out.height_px = size.at(3);
      painted.resize(static_cast<size_t>(out.width_px) * out.height_px);
      out.pixels.resize(painted.size() * 3);
    } else if (what == '#') {
      const std::vector<int> words = numbers(text);
      colour = words[0];
      if (words.size() > 1) palette[colour] = {words.at(2), words.at(3), words.at(4)};
    } else if (what == '!') {
      const int count = number(text);
      paint(text.front() - '?', count);
      text.remove_prefix(1);
    } else if (what == '$' || what == '-') {
      x = 0;
      y += what == '-' ? 6 : 0;
    } else {
      EXPECT_TRUE(what >= '?' && what <= '~') << what;
      paint(what - '?', 1);
    }
  }
  EXPECT_EQ(painted, std::vector<int>(painted.size(), 1));
  return out;
}

TEST(TerminalGraphics, SixelIsReadBack) {
  for (const auto& [width, height] : {std::pair{1, 1}, {7, 5}, {64, 6}, {33, 13}, {5, 600}}) {
    Picture exact = noise(width, height, 1);
    for (uint8_t& one : exact.pixels) one = static_cast<uint8_t>(one / 51 * 51);
    EXPECT_EQ(read_sixel(sixel_text(exact)).pixels, exact.pixels) << width << "x" << height;
    const Picture picture = noise(width, height, 2), back = read_sixel(sixel_text(picture));
    ASSERT_EQ(back.pixels.size(), picture.pixels.size());
    for (size_t i = 0; i < picture.pixels.size(); ++i) EXPECT_LT(std::abs(picture.pixels[i] - back.pixels[i]), 51);
  }
}

// A colour between two palette colours has the right average.
TEST(TerminalGraphics, SixelsAreDithered) {
  for (const int grey : {0, 13, 100, 200, 255}) {
    Picture picture{
        .width_px = 16, .height_px = 16, .channels = 3, .pixels = Bytes(16 * 16 * 3, static_cast<uint8_t>(grey))};
    double sum = 0;
    for (const uint8_t one : read_sixel(sixel_text(picture)).pixels) sum += one;
    EXPECT_NEAR(sum / static_cast<double>(picture.pixels.size()), grey, 2);
  }
}

TEST(TerminalGraphics, SixelRunsAreShort) {
  const Picture picture{.width_px = 1000, .height_px = 6, .channels = 3, .pixels = Bytes(18000, 255)};
  EXPECT_EQ(sixel_text(picture), "\x1bP0;1q\"1;1;1000;6#215;2;100;100;100#215!1000~-\x1b\\\n");
}

// The payload of all parts, and the header of each.
Bytes read_kitty(std::string_view text, std::vector<std::string>& leads) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string letters;
  while (text.starts_with("\x1b_G")) {
    const size_t middle = text.find(';'), end = text.find("\x1b\\");
    leads.emplace_back(text.substr(3, middle - 3));
    EXPECT_LE(end - middle - 1, 4096U);
    letters += text.substr(middle + 1, end - middle - 1);
    text.remove_prefix(end + 2);
  }
  EXPECT_EQ(text, "\n");
  EXPECT_EQ(letters.size() % 4, 0U);
  Bytes out;
  uint32_t word = 0;
  int bits = 0;
  for (const char one : letters.substr(0, letters.find('='))) {
    const size_t six = kLetters.find(one);
    EXPECT_NE(six, std::string_view::npos);
    word = word << 6 | static_cast<uint32_t>(six);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    out.push_back(static_cast<uint8_t>(word >> bits));
  }
  return out;
}

TEST(TerminalGraphics, KittyGetsTheFile) {
  for (const auto& [width, height] : {std::pair{1, 1}, {2, 1}, {3, 1}, {100, 100}}) {
    const auto png = png_of(noise(width, height, 3));
    ASSERT_TRUE(png.ok());
    std::vector<std::string> leads;
    EXPECT_EQ(read_kitty(kitty_text(*png), leads), *png);
    for (size_t i = 0; i < leads.size(); ++i)
      EXPECT_EQ(leads[i], fmt::format("{}m={}", i == 0 ? "a=T,f=100,q=2," : "", i + 1 < leads.size() ? 1 : 0));
    EXPECT_EQ(leads.size() > 1, width == 100);
  }
}

// The terminal waits for more after each piece but the last one, also if the last one is full.
TEST(TerminalGraphics, PicturesOfAnySizeEndOnce) {
  constexpr size_t kPieceBytes = 3072;  // 4096 letters
  for (const size_t whole : {1U, 2U, 3U, 4U}) {
    for (int more = -4; more <= 4; ++more) {
      const Bytes png(static_cast<size_t>(static_cast<int>(whole * kPieceBytes) + more), 7);
      std::vector<std::string> leads;
      EXPECT_EQ(read_kitty(kitty_text(png), leads), png) << png.size();
      for (size_t i = 0; i < leads.size(); ++i)
        EXPECT_TRUE(leads[i].ends_with(i + 1 < leads.size() ? "m=1" : "m=0")) << png.size() << " " << leads[i];
    }
  }
}

TEST(TerminalGraphics, AnswersOfTerminals) {
  for (const auto* const yes : {"\x1b[?62;4c", "\x1b[?62;1;4;22c", "typed\x1b[?64;9;4;6c", "\x1b[?4;4c"})
    EXPECT_TRUE(names_sixel(yes)) << yes;
  for (const auto* const no :
       {"", "c", "4c", "\x1b[?6c", "\x1b[?4;6c", "\x1b[?62;14;24;40c", "\x1b[?62;22", "\x1b[?62c;4;c"})
    EXPECT_FALSE(names_sixel(no)) << no;
}

// The last row of a picture with an odd number of rows is the upper half of a line.
TEST(TerminalGraphics, ALineOfHalfBlocksMayEndHalf) {
  for (const int rows : {1, 2, 3}) {
    const std::string text = half_blocks(noise(4, rows, 4), {80, 24}, Colours::all);
    EXPECT_EQ(std::ranges::count(text, '\n'), (rows + 1) / 2) << rows;
    EXPECT_EQ(text.find("\x1b[49m") != std::string::npos, rows % 2 == 1) << rows;
  }
}

TEST(TerminalGraphics, PicturesFit) {
  struct Case {
    int width_px, height_px;
    TerminalSize size;
    int out_width, out_height;
  };
  const Case kCases[] = {{320, 320, {80, 24}, 320, 320},
                         {320, 320, {20, 24}, 160, 160},
                         {320, 320, {80, 12}, 160, 160},
                         {320, 320, {80, 1}, 1, 1},
                         {1000, 1, {80, 24}, 640, 1},
                         {1, 1000, {80, 24}, 1, 352},
                         {1280, 960, {80, 26, 1200, 780}, 960, 720}};
  for (const Case& c : kCases) {
    const Picture small = shrink_into(noise(c.width_px, c.height_px, 4), c.size);
    EXPECT_EQ(std::pair(small.width_px, small.height_px), std::pair(c.out_width, c.out_height)) << c.width_px;
  }
}

}  // namespace
}  // namespace skillet::tools
