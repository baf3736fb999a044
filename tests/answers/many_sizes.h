// Sizes for a number of a graph's text, and how large the graph then is.
// Called by sizes_test.cpp and passes_test.cpp.
// Must not know: what the graph is for.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace skillet::answers {

inline constexpr int64_t kElemsOfSizes = 1 << 17;  // of a graph: larger ones are left out

// Small values, and those around powers of two.
inline std::vector<int64_t> many_sizes(int64_t largest) {
  std::vector<int64_t> out;
  for (int64_t value = 1; value <= 18; ++value) out.push_back(value);
  for (int64_t power = 32; power <= largest; power *= 2)
    for (int64_t value = power - 1; value <= power + 2; ++value) out.push_back(value);
  return out;
}

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
// Elements of all tensors of a graph's text, before its constants are made.
inline double elems_of(std::string_view text) {
  double all = 0;
  for (size_t at = 0; (at = text.find("\ntensor ", at)) != std::string_view::npos; ++at) {
    const size_t shape = text.find(' ', text.find("\" ", at) + 2) + 1;
    double elems = 1, dim = 0;
    for (size_t i = shape; i < text.size() && (text[i] == 'x' || is_digit(text[i])); ++i) {
      dim = is_digit(text[i]) ? dim * 10 + (text[i] - '0') : 0;
      if (i + 1 == text.size() || !is_digit(text[i + 1])) elems *= is_digit(text[i]) ? dim : 1;
    }
    all += elems;
  }
  return all;
}

}  // namespace skillet::answers
