#include "base/text.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "base/environment.h"

namespace skillet {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Edit distance in letters, ignoring case. Two swapped neighbours count once.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  const auto same = [&](size_t i, size_t j) { return lower(a[i]) == lower(b[j]); };
  for (size_t i = 0; i < a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({last[j] + (same(i, j) ? 0 : 1), row[j] + 1, last[j + 1] + 1});
      if (i > 0 && j > 0 && same(i, j - 1) && same(i - 1, j)) row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

// U+202A to U+202E and U+2066 to U+2069 change the direction of the text after them.
static bool is_direction(std::string_view letter) {
  const std::string_view last = letter.substr(std::min<size_t>(letter.size(), 2), 1);
  if (last.empty()) return false;
  const auto byte = static_cast<unsigned char>(last[0]);
  return (letter.starts_with("\xE2\x80") && byte >= 0xAA && byte <= 0xAE) ||
         (letter.starts_with("\xE2\x81") && byte >= 0xA6 && byte <= 0xA9);
}

std::string printable(std::string_view text, bool keeps_lines) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_direction(text.substr(i))) {
      i += 2;
      out += '?';
      continue;
    }
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool kept = keeps_lines && (byte == '\n' || byte == '\t');
    const bool two_bytes = byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (two_bytes) ++i;
    out += (byte >= 0x20 && byte != 0x7F && !two_bytes) || kept ? text[i] : '?';
  }
  return out;
}

bool is_utf8(std::string_view text) {
  constexpr std::array<uint32_t, 4> kLowest = {0, 0x80, 0x800, 0x10000};  // by number of bytes that follow
  for (size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first < 0x80) continue;
    const size_t more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
    if (first < 0xC0 || first >= 0xF8 || text.size() - i <= more) return false;
    uint32_t letter = first & (0x3FU >> more);
    for (size_t k = 0; k < more; ++k) {
      const auto next = static_cast<unsigned char>(text[++i]);
      if ((next & 0xC0) != 0x80) return false;
      letter = letter << 6 | (next & 0x3FU);
    }
    const bool is_surrogate = letter >= 0xD800 && letter < 0xE000;
    if (letter < kLowest[more] || letter > 0x10FFFF || is_surrogate) return false;
  }
  return true;
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  constexpr size_t kMostLetters = 200;  // longer words were not typed
  if (word.size() > kMostLetters) return {};
  std::string_view best;
  size_t best_distance = word.size() / 3 + 1;  // a larger distance means another word
  for (const std::string_view one : known) {
    if (std::max(word.size(), one.size()) - std::min(word.size(), one.size()) > best_distance) continue;
    const size_t far = distance(word, one);
    if (far > best_distance || (far == best_distance && !best.empty()) || far >= one.size()) continue;
    if (2 * far > std::max(word.size(), one.size())) continue;  // most letters differ: 'foo' is not 'toy'
    best = one;
    best_distance = far;
  }
  return best;
}

std::string counted(size_t count, std::string_view noun) {
  std::string out = std::to_string(count) + " " + std::string(noun);
  if (count == 1) return out;
  if (!out.ends_with('y')) return out + "s";
  out.pop_back();
  return out + "ies";
}

std::string_view beginning(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most);
}

std::string shortened(std::string_view text, size_t most) {
  constexpr std::string_view kMore = "...";
  if (text.size() <= most) return std::string(text);
  return std::string(beginning(text, most - std::min(most, kMore.size()))) + std::string(kMore.substr(0, most));
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  const std::string_view found = nearest(word, known);
  return found.empty() ? "" : fmt::format("; did you mean '{}'?", found);
}

std::string expand_home(std::string_view path) {
  if (path != "~" && !path.starts_with("~/")) return std::string(path);
  if (const char* home = environment_variable("HOME"); home != nullptr && *home != '\0')
    return home + std::string(path.substr(1));
  // Services may have no HOME; a folder named ~ is never meant.
  passwd entry{}, *found = nullptr;
  std::array<char, 4096> text{};
  if (::getpwuid_r(::geteuid(), &entry, text.data(), text.size(), &found) != 0 || found == nullptr)
    return "/dev/null" + std::string(path.substr(1));  // a place where no file can be created
  return found->pw_dir + std::string(path.substr(1));
}

}  // namespace skillet
