#include "tools/show/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/environment.h"

namespace skillet::tools {
namespace {

constexpr int kRowsOfWords = 2;  // text lines below a picture

// Index in the 6 x 6 x 6 cube of the 256 colours.
int cube_index(const uint8_t* rgb) {
  const auto level = [](uint8_t value) { return value < 48 ? 0 : value < 115 ? 1 : (value - 35) / 40; };
  return 16 + 36 * level(rgb[0]) + 6 * level(rgb[1]) + level(rgb[2]);
}

// `which`: 38 sets the colour of the upper half, 48 of the lower half.
std::string colour_code(int which, const uint8_t* rgb, Colours colours) {
  if (colours == Colours::all) return fmt::format("\x1b[{};2;{};{};{}m", which, rgb[0], rgb[1], rgb[2]);
  return fmt::format("\x1b[{};5;{}m", which, cube_index(rgb));
}

}  // namespace

std::string_view terminal_variable(const char* name) {
  const char* value = environment_variable(name);
  return value == nullptr ? "" : value;
}

Colours terminal_colours() {
  if (!::isatty(STDOUT_FILENO) || !terminal_variable("NO_COLOR").empty() || terminal_variable("TERM") == "dumb")
    return Colours::none;
  const std::string_view says = terminal_variable("COLORTERM");
  return says == "truecolor" || says == "24bit" ? Colours::all : Colours::c256;
}

TerminalSize terminal_size() {
  struct winsize size {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row, size.ws_xpixel, size.ws_ypixel};
}

Picture shrink_into(const Picture& picture, TerminalSize size) {
  constexpr int kCellWidthPx = 8, kCellHeightPx = 16;  // defaults for an unknown size
  const int64_t most_wide = size.width_px > 0 ? size.width_px : int64_t{size.columns} * kCellWidthPx;
  const int64_t cell_px = size.height_px > 0 ? std::max(1, size.height_px / size.rows) : kCellHeightPx;
  const int64_t most_high = std::max<int64_t>(1, (size.rows - kRowsOfWords) * cell_px);
  const int64_t wide =
      std::min({most_wide, int64_t{picture.width_px}, most_high * picture.width_px / picture.height_px});
  const int64_t width = std::max<int64_t>(1, wide);
  const int64_t high = std::clamp<int64_t>(width * picture.height_px / picture.width_px, 1, most_high);
  return resize(picture, static_cast<int>(width), static_cast<int>(high));
}

std::string half_blocks(const Picture& picture, TerminalSize size, Colours colours) {
  constexpr int kMostPx = 500;
  const int64_t most_wide = std::clamp(std::min(size.columns, picture.width_px), 1, kMostPx);
  const int64_t most_high = std::clamp(2 * (size.rows - kRowsOfWords), 2, kMostPx);
  const int64_t wide = std::min(most_wide, std::max<int64_t>(1, most_high * picture.width_px / picture.height_px));
  const int width = static_cast<int>(wide);
  const int height = static_cast<int>(std::clamp<int64_t>(wide * picture.height_px / picture.width_px, 1, most_high));
  const Picture small = resize(picture, width, height);
  std::string out;
  for (int y = 0; y < height; y += 2) {
    std::string upper, lower;  // current colours of the terminal
    for (int x = 0; x < width; ++x) {
      const auto at = [&](int row) { return small.pixels.data() + (static_cast<size_t>(row) * width + x) * 3; };
      const std::string front = colour_code(38, at(y), colours);
      const std::string back = y + 1 < height ? colour_code(48, at(y + 1), colours) : "\x1b[49m";
      if (front != upper) out += upper = front;
      if (back != lower) out += lower = back;
      out += "\u2580";
    }
    out += "\x1b[0m\n";
  }
  return out;
}

}  // namespace skillet::tools
