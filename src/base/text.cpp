#include "base/text.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace skillet {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Changes of one letter that make one word of the other, case aside.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (lower(a[i]) == lower(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string printable(std::string_view text, bool keeps_lines) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool kept = keeps_lines && (byte == '\n' || byte == '\t');
    const bool two_bytes = byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (two_bytes) ++i;
    out += (byte >= 0x20 && byte != 0x7F && !two_bytes) || kept ? text[i] : '?';
  }
  return out;
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  constexpr size_t kMostLetters = 200;  // longer ones nobody typed
  if (word.size() > kMostLetters) return {};
  std::string_view best;
  size_t best_distance = word.size() / 3 + 1;  // more is another word
  for (const std::string_view one : known) {
    if (std::max(word.size(), one.size()) - std::min(word.size(), one.size()) > best_distance) continue;
    const size_t far = distance(word, one);
    if (far > best_distance || (far == best_distance && !best.empty()) || far >= one.size()) continue;
    best = one;
    best_distance = far;
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  const std::string_view found = nearest(word, known);
  return found.empty() ? "" : fmt::format("; did you mean '{}'?", found);
}

std::string expand_home(std::string_view path) {
  if (path != "~" && !path.starts_with("~/")) return std::string(path);
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return home + std::string(path.substr(1));
  // Services have no HOME; a folder of the name ~ is never meant.
  passwd entry{}, *found = nullptr;
  std::array<char, 4096> text{};
  if (::getpwuid_r(::geteuid(), &entry, text.data(), text.size(), &found) != 0 || found == nullptr)
    return "/dev/null" + std::string(path.substr(1));  // where nothing can be
  return found->pw_dir + std::string(path.substr(1));
}

}  // namespace skillet
