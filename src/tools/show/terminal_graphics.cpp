#include "tools/show/terminal_graphics.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <chrono>

#include "tools/show/terminal.h"

namespace skillet::tools {
namespace {

constexpr std::string_view kWhatAreYou = "\x1b[c";
constexpr std::chrono::milliseconds kPatience{300};

std::string read_answer(int terminal) {
  const auto latest = std::chrono::steady_clock::now() + kPatience;
  std::string out;
  while (out.find('c') == std::string::npos) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(latest - std::chrono::steady_clock::now());
    pollfd one{.fd = terminal, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&one, 1, static_cast<int>(left.count())) <= 0) return {};
    std::array<char, 256> some{};
    const ssize_t got = ::read(terminal, some.data(), some.size());
    if (got <= 0) return {};
    out.append(some.data(), static_cast<size_t>(got));
  }
  return out;
}

// The terminal's answer; empty: none in time, or this process is not in the foreground.
std::string ask_terminal() {
  if (::tcgetpgrp(STDOUT_FILENO) != ::getpgrp()) return {};
  const int terminal = ::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0) return {};
  std::string out;
  struct termios before {};
  if (::tcgetattr(terminal, &before) == 0) {
    struct termios plain = before;  // the answer arrives as typed input: read it at once, without echo
    plain.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    if (::tcsetattr(terminal, TCSANOW, &plain) == 0 &&
        ::write(terminal, kWhatAreYou.data(), kWhatAreYou.size()) == static_cast<ssize_t>(kWhatAreYou.size()))
      out = read_answer(terminal);
    ::tcsetattr(terminal, TCSANOW, &before);
  }
  ::close(terminal);
  return out;
}

constexpr int kLevels = 6, kStep = 51, kColours = kLevels * kLevels * kLevels, kBandRows = 6;

// Dithers to the palette: a pattern of 4 x 4 pixels mixes two neighbouring colours.
std::vector<uint8_t> colours_of(const Picture& picture) {
  constexpr int kPattern[4][4] = {{0, 8, 2, 10}, {12, 4, 14, 6}, {3, 11, 1, 9}, {15, 7, 13, 5}};
  std::vector<uint8_t> out;
  out.reserve(picture.pixels.size() / 3);
  for (int y = 0; y < picture.height_px; ++y) {
    for (int x = 0; x < picture.width_px; ++x) {
      const uint8_t* rgb = picture.pixels.data() + (static_cast<size_t>(y) * picture.width_px + x) * 3;
      const auto level = [&](uint8_t value) {
        return (value * 16 + kPattern[y % 4][x % 4] * kStep + kStep / 2) / (kStep * 16);
      };
      out.push_back(static_cast<uint8_t>((level(rgb[0]) * kLevels + level(rgb[1])) * kLevels + level(rgb[2])));
    }
  }
  return out;
}

void add_run(std::string& text, char what, int count) {
  if (count > 3)
    text += fmt::format("!{}{}", count, what);
  else
    text.append(static_cast<size_t>(count), what);
}

// Encodes six rows of one colour, one character per column.
std::string row_of(std::span<const uint8_t> colours, int width, int rows, uint8_t colour) {
  std::string out;
  char last = '?';
  int count = 0;
  for (int x = 0; x < width; ++x) {
    int bits = 0;
    for (int y = 0; y < rows; ++y) bits |= (colours[static_cast<size_t>(y) * width + x] == colour ? 1 : 0) << y;
    const char now = static_cast<char>('?' + bits);
    if (now != last) {
      add_run(out, last, count);
      last = now;
      count = 0;
    }
    ++count;
  }
  if (last != '?') add_run(out, last, count);
  return out;
}

std::string base64(std::span<const uint8_t> bytes) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k) word = word << 8 | (k < count ? bytes[i + k] : 0U);
    for (size_t k = 0; k < 4; ++k) out += k <= count ? kLetters[word >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

}  // namespace

bool names_sixel(std::string_view answer) {
  const size_t start = answer.find("\x1b[?");
  if (start == std::string_view::npos) return false;
  answer = answer.substr(start, answer.find('c', start) - start);
  const size_t abilities = answer.find(';');  // before it: the terminal's model
  return abilities != std::string_view::npos &&
         (std::string(answer.substr(abilities)) + ";").find(";4;") != std::string::npos;
}

Graphics terminal_graphics() {
  if (terminal_colours() == Colours::none) return Graphics::none;
  const std::string_view term = terminal_variable("TERM");
  const bool is_within_another = term.starts_with("screen") || term.starts_with("tmux");
  const bool is_kitty =
      term == "xterm-kitty" || term == "xterm-ghostty" || !terminal_variable("KITTY_WINDOW_ID").empty();
  if (is_kitty && !is_within_another) return Graphics::kitty;
  return names_sixel(ask_terminal()) ? Graphics::sixel : Graphics::none;
}

std::string sixel_text(const Picture& picture) {
  const std::vector<uint8_t> colours = colours_of(picture);
  std::string out = fmt::format("\x1bP0;1q\"1;1;{};{}", picture.width_px, picture.height_px);
  const auto add_colours = [&](std::span<const uint8_t> some, const auto& add) {
    std::bitset<kColours> used;
    for (const uint8_t one : some) used.set(one);
    for (int i = 0; i < kColours; ++i)
      if (used[static_cast<size_t>(i)]) add(static_cast<uint8_t>(i));
  };
  add_colours(colours, [&](uint8_t one) {  // percent
    out += fmt::format("#{};2;{};{};{}", one, one / 36 * 20, one / 6 % 6 * 20, one % 6 * 20);
  });
  for (int y = 0; y < picture.height_px; y += kBandRows) {
    const int rows = std::min(kBandRows, picture.height_px - y);
    const std::span<const uint8_t> band(colours.data() + static_cast<size_t>(y) * picture.width_px,
                                        static_cast<size_t>(rows) * picture.width_px);
    add_colours(band,
                [&](uint8_t one) { out += fmt::format("#{}{}$", one, row_of(band, picture.width_px, rows, one)); });
    out.back() = '-';
  }
  return out + "\x1b\\\n";
}

std::string kitty_text(std::span<const uint8_t> png) {
  constexpr size_t kMostAtOnce = 4096;
  const std::string letters = base64(png);
  std::string out;
  for (size_t at = 0; at < letters.size(); at += kMostAtOnce)
    out += fmt::format("\x1b_G{}m={};{}\x1b\\", at == 0 ? "a=T,f=100,q=2," : "",
                       at + kMostAtOnce < letters.size() ? 1 : 0, std::string_view(letters).substr(at, kMostAtOnce));
  return out + "\n";
}

}  // namespace skillet::tools
