// The values of a number at which an answer changes.
// Called by limits_test.cpp and pairs_test.cpp.
// Must not know: what is asked.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "answers/lines.h"

namespace skillet::answers {

inline constexpr size_t kChangesMax = 12;  // that a line lists

// A text without its numbers: the kind of answer.
inline std::string without_numbers(std::string text) {
  std::erase_if(text, [](char c) { return (c >= '0' && c <= '9') || c == '-' || c == '.'; });
  return text;
}

class Ranges {
 public:
  // Answers for a value; none: the value is too large.
  using Ask = std::function<std::optional<std::vector<std::string>>(int64_t)>;
  // Asks for `values`, for powers of two up to `farthest` and for values near them, and between two of these that
  // differ.
  Ranges(Ask ask, std::initializer_list<int64_t> values, int64_t farthest, bool is_dense = true)
      : ask_(std::move(ask)) {
    for (const int64_t value : values) at(value);
    int64_t before = -1;
    for (int64_t power = 1; power <= farthest; power *= 2) {
      for (const int64_t value : {power - 1, power, power + 1, power + power / 2}) {
        if ((!is_dense && value != power) || value <= before || !at(value)) continue;
        if (before >= 0) between(before, value);
        before = value;
      }
    }
  }

  // The values at which the answer of number `who` changes, with the new answers.
  std::string of(size_t who) const {
    std::string out, last;
    size_t count = 0;
    Hash rest;
    for (const auto& [value, answers] : known_) {
      if (answers[who] == last) continue;
      last = answers[who];
      const std::string one = fmt::format(" {} {}", value, last.empty() ? "-" : last);
      ++count <= kChangesMax ? void(out += one) : rest.add(one);
    }
    return out + (count > kChangesMax ? fmt::format(" and {}", rest.text()) : "");
  }

 private:
  bool at(int64_t value) {
    if (known_.contains(value)) return true;
    auto answers = ask_(value);
    if (answers) known_[value] = std::move(*answers);
    return answers.has_value();
  }
  void between(int64_t low, int64_t high) {
    if (high - low < 2 || known_[low] == known_[high]) return;
    const int64_t middle = low + (high - low) / 2;
    if (!at(middle)) return;
    between(low, middle);
    between(middle, high);
  }

  Ask ask_;
  std::map<int64_t, std::vector<std::string>> known_;
};

}  // namespace skillet::answers
