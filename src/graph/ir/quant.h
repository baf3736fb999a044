// Quant: affine quantization of a tensor, real = scale * (q - zero_point), per tensor or per channel.
// Called by everything that touches a quantized tensor.
// Must not know: operations, chips.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace skillet::ir {

template <typename T>
bool all_equal(const std::vector<T>& values) {
  return std::ranges::adjacent_find(values, std::ranges::not_equal_to()) == values.end();
}

// Number of different values.
template <typename T>
size_t count_distinct(std::vector<T> values) {
  std::ranges::sort(values);
  return static_cast<size_t>(std::unique(values.begin(), values.end()) - values.begin());
}

struct Quant {
  std::vector<float> scales;         // empty: not quantized; one: per tensor; n: per channel along `axis`
  std::vector<int32_t> zero_points;  // same count as scales
  int32_t axis = 0;                  // quantized dimension, meaningful when per channel

  bool empty() const { return scales.empty(); }
  bool per_channel() const { return scales.size() > 1; }
  float scale() const { return scales.empty() ? 0.0F : scales[0]; }
  int32_t zero_point() const { return zero_points.empty() ? 0 : zero_points[0]; }

  bool operator==(const Quant&) const = default;
};

}  // namespace skillet::ir
