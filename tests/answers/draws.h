// Variants of a graph's text, each with two or three changes at once: conditions that fail only if two facts change.
// Called by the tests of this folder.
// Must not know: what the graph is for.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "answers/changes.h"
#include "base/splitmix64.h"

namespace skillet::answers {

class TextDraws {
 public:
  TextDraws(std::string_view text, std::span<const Words> sets, uint64_t seed) : sets_(sets), random_(seed) {
    for (size_t at = 0; at < text.size(); at += parts_.back().size()) parts_.emplace_back(part(text, at));
  }

  // Returns the text with two changes, or three. Each is of one place, or of all places of a number or word.
  std::string next() {
    std::vector<std::string> out = parts_;
    for (size_t i = 2 + below(2); i > 0; --i) change(out);
    std::string text;
    for (const std::string& one : out) text += one;
    return text;
  }

 private:
  static constexpr std::array kNumbers = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65};

  size_t below(size_t count) { return random_.next() % count; }
  static bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
  // A word, a number, a text in quotes, or one other character.
  static std::string_view part(std::string_view text, size_t at) {
    const char c = text[at];
    size_t end = at + 1;
    if (c == '"') return text.substr(at, text.find('"', end) + 1 - at);
    const auto goes_on = [&](char one) {
      return is_digit(c) ? is_digit(one) : std::isalpha(static_cast<unsigned char>(one)) != 0 || one == '_';
    };
    if (is_digit(c) || goes_on(c))
      while (end < text.size() && goes_on(text[end])) ++end;
    return text.substr(at, end - at);
  }

  std::string other(const std::string& part) {
    if (is_digit(part[0]) && part.size() < 10) {
      const int64_t value = std::stoll(part);
      const std::array<int64_t, 5> near = {value + 1, value - 1, value * 2, value / 2, 0};
      const size_t one = below(near.size() + 3);
      return std::to_string(one < near.size() ? near[one] : kNumbers[below(kNumbers.size())]);
    }
    for (const Words& set : sets_)
      if (std::ranges::find(set, part) != set.end()) return std::string(set[below(set.size())]);
    return part;
  }
  // One in eight changes lists another input or output of the graph or of an operation; one in eight removes KEY=VALUE.
  void change(std::vector<std::string>& parts) {
    for (int tries = 0; tries < 100; ++tries) {
      const size_t at = below(parts.size());
      const std::string old = parts[at];
      if (old.empty()) continue;
      const size_t kind = below(8);
      if (kind == 0 && (old == "inputs" || old == "outputs" || old == "[")) {
        parts[at] += (old == "[" ? "" : " ") + std::to_string(below(5)) + (old == "[" ? " " : "");
        return;
      }
      if (kind == 1 && at + 2 < parts.size() && parts[at + 1] == "=") {
        for (size_t i = at; i < parts.size() && parts[i] != " " && parts[i] != "\n"; ++i) parts[i].clear();
        return;
      }
      const std::string instead = other(old);
      if (instead == old) continue;
      if (below(2) == 0)
        std::ranges::replace(parts, old, instead);
      else
        parts[at] = instead;
      return;
    }
  }

  std::span<const Words> sets_;
  SplitMix64 random_;
  std::vector<std::string> parts_;
};

}  // namespace skillet::answers
