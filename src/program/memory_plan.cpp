#include "program/memory_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/int_math.h"

namespace skillet::npu {
namespace {

bool overlap(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

class Packer {
 public:
  Packer(std::span<const Lifetime> lifetimes, uint64_t align) : beside_(lifetimes.size()) {
    for (const Lifetime& one : lifetimes) sizes_.push_back(align_up(one.size_bytes, align));
    for (size_t a = 0; a < lifetimes.size(); ++a)
      for (size_t b = 0; b < lifetimes.size(); ++b)
        if (a != b && overlap(lifetimes[a], lifetimes[b])) beside_[a].push_back(b);
  }

  MemoryPlan in_order(std::span<const size_t> order) const {
    MemoryPlan plan{std::vector<uint64_t>(sizes_.size(), kNowhere), 0};
    for (const size_t one : order) {
      plan.offsets[one] = lowest_gap(one, plan.offsets);
      plan.size_bytes = std::max(plan.size_bytes, plan.offsets[one] + sizes_[one]);
    }
    return plan;
  }

 private:
  static constexpr uint64_t kNowhere = UINT64_MAX;  // not placed yet

  uint64_t lowest_gap(size_t one, const std::vector<uint64_t>& offsets) const {
    taken_.clear();
    for (const size_t other : beside_[one])
      if (offsets[other] != kNowhere) taken_.push_back({offsets[other], offsets[other] + sizes_[other]});
    std::ranges::sort(taken_);
    uint64_t at = 0;
    for (const auto& [begin, end] : taken_) {
      if (at + sizes_[one] <= begin) break;
      at = std::max(at, end);
    }
    return at;
  }

  std::vector<uint64_t> sizes_;
  std::vector<std::vector<size_t>> beside_;                   // by tensor: those that are alive at the same time
  mutable std::vector<std::pair<uint64_t, uint64_t>> taken_;  // begins and ends, of one search
};

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> lifetimes, uint64_t align) {
  constexpr int kTries = 64;
  const uint64_t least = least_memory(lifetimes, align);
  const auto bytes = [&](size_t i) { return lifetimes[i].size_bytes; };
  const auto steps = [&](size_t i) { return uint64_t{lifetimes[i].last} - lifetimes[i].first + 1; };
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const Packer packer(lifetimes, align);
  MemoryPlan best = packer.in_order(order);
  const auto try_order = [&](auto key) {
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return key(a) > key(b); });
    MemoryPlan plan = packer.in_order(order);
    // The next try places the tensor with the highest end first.
    for (int i = 0; i < kTries && std::min(plan.size_bytes, best.size_bytes) > least; ++i) {
      const auto end = [&](size_t one) { return plan.offsets[one] + bytes(one); };
      const auto top = std::ranges::max_element(order, {}, end);
      std::rotate(order.begin(), top, top + 1);
      if (plan.size_bytes < best.size_bytes) best = plan;
      plan = packer.in_order(order);
    }
    if (plan.size_bytes < best.size_bytes) best = std::move(plan);
  };
  try_order(bytes);
  try_order(steps);
  try_order([&](size_t i) { return bytes(i) * steps(i); });
  try_order([&](size_t i) { return UINT32_MAX - lifetimes[i].first; });
  return best;
}

uint64_t least_memory(std::span<const Lifetime> lifetimes, uint64_t align) {
  uint64_t most = 0;
  for (const Lifetime& at : lifetimes) {  // the maximum is reached where a lifetime begins
    uint64_t sum = 0;
    for (const Lifetime& one : lifetimes) {
      if (one.first <= at.first && at.first <= one.last) sum += align_up(one.size_bytes, align);
    }
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace skillet::npu
