// The reference for plan_memory(): the smallest plan, found by exhaustive search.
// Called by its test and by skillet_memory_bench.
// Must not know: the algorithm of plan_memory().
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "program/memory_plan.h"

namespace skillet::npu::testing {

inline std::vector<Lifetime> random_lifetimes(std::mt19937& random, size_t count) {
  std::vector<Lifetime> lifetimes(count);
  for (Lifetime& one : lifetimes) {
    one = {1 + random() % 12, static_cast<uint32_t>(random() % 8), 0};
    one.last = one.first + static_cast<uint32_t>(random() % 4);
  }
  return lifetimes;
}

// For few lifetimes. The smallest plan results from placing each into the lowest gap in some order: tries all orders.
inline uint64_t smallest_memory(std::span<const Lifetime> lifetimes) {
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  uint64_t best = UINT64_MAX;
  do {
    std::vector<uint64_t> offsets(lifetimes.size());
    uint64_t end = 0;
    for (size_t n = 0; n < order.size(); ++n) {
      const Lifetime& one = lifetimes[order[n]];
      uint64_t at = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t m = 0; m < n; ++m) {
          const Lifetime& other = lifetimes[order[m]];
          const uint64_t from = offsets[order[m]], to = from + other.size_bytes;
          if (one.first > other.last || other.first > one.last || at + one.size_bytes <= from || at >= to) continue;
          at = to, moved = true;
        }
      }
      offsets[order[n]] = at;
      end = std::max(end, at + one.size_bytes);
    }
    best = std::min(best, end);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

}  // namespace skillet::npu::testing
