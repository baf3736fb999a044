// Alignment of two lists: which elements correspond.
// Called by the comparison of captures, and where jobs are matched with a model.
// Must not know: what the elements are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace skillet {

// Indices of corresponding elements; none: no counterpart.
struct AlignedPair {
  std::optional<size_t> a, b;
};

// Longest common subsequence: pairs of equal elements and single elements, all in order.
template <typename Item>
std::vector<AlignedPair> align_middle(std::span<const Item> a, std::span<const Item> b) {
  std::vector<std::vector<uint32_t>> length(a.size() + 1, std::vector<uint32_t>(b.size() + 1, 0));
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;)
      length[i][j] = a[i] == b[j] ? length[i + 1][j + 1] + 1 : std::max(length[i + 1][j], length[i][j + 1]);
  }
  std::vector<AlignedPair> pairs;
  for (size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    if (i < a.size() && j < b.size() && a[i] == b[j])
      pairs.push_back({i++, j++});
    else if (j == b.size() || (i < a.size() && length[i + 1][j] >= length[i][j + 1]))
      pairs.push_back({i++, std::nullopt});
    else
      pairs.push_back({std::nullopt, j++});
  }
  return pairs;
}

// The same; the quadratic table covers only the elements between a common start and a common end.
template <typename Item>
std::vector<AlignedPair> align(const std::vector<Item>& a, const std::vector<Item>& b) {
  const size_t shorter = std::min(a.size(), b.size());
  size_t start = 0, end = 0;
  while (start < shorter && a[start] == b[start]) ++start;
  while (end < shorter - start && a[a.size() - 1 - end] == b[b.size() - 1 - end]) ++end;
  std::vector<AlignedPair> pairs;
  for (size_t i = 0; i < start; ++i) pairs.push_back({i, i});
  const auto middle = [&](const std::vector<Item>& all) {
    return std::span(all).subspan(start, all.size() - start - end);
  };
  for (const AlignedPair& one : align_middle<Item>(middle(a), middle(b)))
    pairs.push_back(
        {one.a ? std::optional(*one.a + start) : std::nullopt, one.b ? std::optional(*one.b + start) : std::nullopt});
  for (size_t i = end; i > 0; --i) pairs.push_back({a.size() - i, b.size() - i});
  return pairs;
}

}  // namespace skillet
