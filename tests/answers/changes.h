// Variants of a text or a file, each with one change.
// Called by the tests of this folder.
// Must not know: the format of the text or file.
#pragma once

#include <algorithm>
#include <cctype>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace skillet::answers {

// Changes each number to one more, one less, its double and 0; changes each word of a set of `sets` to each other word
// of the set; removes each KEY=VALUE and each line. Then changes all places of a number, or of a word, at once. Leaves
// names in quotes unchanged.
using Words = std::span<const std::string_view>;
class TextChanges {
 public:
  TextChanges(std::string text, std::span<const Words> sets) : text_(std::move(text)), sets_(sets) {}

  void each(const std::function<void(const std::string&)>& take) const {
    bool is_quoted = false;
    for (size_t at = 0; at < text_.size();) {
      const char c = text_[at];
      if (c == '"') is_quoted = !is_quoted;
      const size_t end = is_quoted ? at + 1 : end_of_word(at);
      const std::string word = text_.substr(at, end - at);
      if (!is_quoted) change(at, word, take);
      if (c == '\n')
        take(text_.substr(0, at + 1) + text_.substr(std::min(text_.find('\n', at + 1), text_.size() - 1) + 1));
      at = end;
    }
    everywhere(take);
  }

  // Changes all places of a number to each of `values`.
  void each_value(std::span<const int64_t> values, const std::function<void(const std::string&)>& take) const {
    const std::vector<std::string> all = parts();
    for (const std::string& part : std::set<std::string>(all.begin(), all.end()))
      if (is_number(part))
        for (const int64_t value : values) take(replaced(all, part, std::to_string(value)));
  }

  // The text with each number as a blank, {0}: one blank for all places of a number, or one for each place.
  std::vector<std::string> with_blanks() const {
    const std::vector<std::string> all = parts();
    std::vector<std::string> out;
    for (const std::string& part : std::set<std::string>(all.begin(), all.end()))
      if (is_number(part)) out.push_back(replaced(all, part, "{0}"));
    for (size_t i = 0; i < all.size(); ++i) {
      if (!is_number(all[i]) || std::ranges::count(all, all[i]) == 1) continue;
      std::vector<std::string> one = all;
      one[i] = "{0}";
      out.push_back(replaced(one, "", ""));
    }
    return out;
  }

 private:
  void everywhere(const std::function<void(const std::string&)>& take) const {
    const std::vector<std::string> all = parts();
    std::set<std::string> known;
    for (const std::string& part : all) {
      if (!known.insert(part).second) continue;
      if (is_number(part)) take(replaced(all, part, std::to_string(std::stoll(part) + 1)));
      for (const Words& set : sets_) {
        if (std::ranges::find(set, part) == set.end()) continue;
        for (const std::string_view other : set)
          if (other != part) take(replaced(all, part, other));
      }
    }
  }
  // Words, numbers, and single other characters; texts in quotes with the first quote only.
  std::vector<std::string> parts() const {
    std::vector<std::string> out;
    bool is_quoted = false;
    for (size_t at = 0; at < text_.size(); at += out.back().size()) {
      if (text_[at] == '"') is_quoted = !is_quoted;
      out.push_back(text_.substr(at, is_quoted ? text_.find('"', at + 1) - at : end_of_word(at) - at));
    }
    return out;
  }
  static bool is_number(const std::string& part) {
    return std::isdigit(static_cast<unsigned char>(part[0])) != 0 && part.size() < 10;
  }
  static std::string replaced(const std::vector<std::string>& all, const std::string& part, std::string_view by) {
    std::string out;
    for (const std::string& one : all) out += one == part ? by : one;
    return out;
  }

  static bool is_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
  // A number ends where letters begin: 1x8x8x3 is four numbers.
  size_t end_of_word(size_t at) const {
    const bool is_number = std::isdigit(static_cast<unsigned char>(text_[at])) != 0;
    if (!is_of_word(text_[at])) return at + 1;
    size_t end = at;
    while (end < text_.size() && is_of_word(text_[end]) &&
           !(is_number && std::isdigit(static_cast<unsigned char>(text_[end])) == 0))
      ++end;
    return end;
  }
  void change(size_t at, const std::string& word, const std::function<void(const std::string&)>& take) const {
    const auto put = [&](const std::string& other) {
      if (other != word) take(text_.substr(0, at) + other + text_.substr(at + word.size()));
    };
    if (std::isdigit(static_cast<unsigned char>(word[0])) != 0 && word.size() < 10) {
      const int64_t value = std::stoll(word);
      for (const int64_t other : {value + 1, value - 1, value * 2, int64_t{0}}) put(std::to_string(other));
      return;
    }
    for (const Words& set : sets_) {
      if (std::ranges::find(set, word) == set.end()) continue;
      for (const std::string_view other : set) put(std::string(other));
    }
    if (const size_t end = at + word.size(); end < text_.size() && text_[end] == '=' && at > 0 && text_[at - 1] == ' ')
      take(text_.substr(0, at) + text_.substr(std::min(text_.find_first_of(" \n", end), text_.size())));
  }

  std::string text_;
  std::span<const Words> sets_;
};

// Changes each `step`-th byte to one more, 0, 255, and itself with the highest bit flipped; also cuts the file there.
inline void each_change(const Bytes& file, size_t step, const std::function<void(const Bytes&)>& take) {
  for (size_t at = 0; at < file.size(); at += step) {
    const uint8_t old = file[at];
    Bytes changed = file;
    for (const int value : {old + 1, 0, 255, old ^ 128}) {
      changed[at] = static_cast<uint8_t>(value);
      if (changed[at] != old) take(changed);
    }
    take(Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(at)));
  }
}

}  // namespace skillet::answers
