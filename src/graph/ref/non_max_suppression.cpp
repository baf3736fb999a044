// NON_MAX_SUPPRESSION_V4 and V5: the best boxes that do not overlap a better one; V5 can lower scores instead.
#include <algorithm>
#include <cmath>
#include <deque>
#include <queue>

#include "graph/ref/kernel.h"

namespace skillet::ref {
namespace {

struct Corners {
  float y_min, x_min, y_max, x_max;
  float area() const { return (y_max - y_min) * (x_max - x_min); }
};

// Accepts any two opposite corners.
Corners corners(std::span<const uint8_t> boxes, size_t i) {
  const auto at = [&](size_t k) { return load_element<float>(boxes, i * 4 + k); };
  return {std::min(at(0), at(2)), std::min(at(1), at(3)), std::max(at(0), at(2)), std::max(at(1), at(3))};
}

float overlap(const Corners& a, const Corners& b) {
  if (a.area() <= 0 || b.area() <= 0) return 0;
  const float h = std::max(std::min(a.y_max, b.y_max) - std::max(a.y_min, b.y_min), 0.0F);
  const float w = std::max(std::min(a.x_max, b.x_max) - std::max(a.x_min, b.x_min), 0.0F);
  return h * w / (a.area() + b.area() - h * w);
}

struct Candidate {
  size_t box = 0;
  float score = 0;
  size_t compared = 0;  // number of chosen boxes compared so far
};

struct Limits {
  float overlap = 0, score = 0, sigma = 0;
};

struct Chosen {
  size_t box;
  float score;
};

// Compares a candidate with the chosen boxes that it was not compared with. Returns false if it overlaps one too much.
bool survives(Candidate& candidate, const std::vector<Chosen>& chosen, std::span<const uint8_t> boxes,
              const Limits& limits) {
  const float scale = limits.sigma > 0 ? -0.5F / limits.sigma : 0.0F;
  for (size_t i = chosen.size(); i-- > candidate.compared;) {
    const float common = overlap(corners(boxes, candidate.box), corners(boxes, chosen[i].box));
    if (common >= limits.overlap) return false;
    if (limits.sigma > 0) candidate.score *= std::exp(scale * common * common);
    if (candidate.score <= limits.score) break;
  }
  candidate.compared = chosen.size();
  return true;
}

std::vector<Chosen> choose(std::span<const uint8_t> boxes, std::span<const uint8_t> scores, size_t count, size_t most,
                           const Limits& limits) {
  const auto worse = [](const Candidate& a, const Candidate& b) { return a.score < b.score; };
  std::priority_queue<Candidate, std::deque<Candidate>, decltype(worse)> queue(worse);
  for (size_t i = 0; i < count; ++i) {
    const auto score = load_element<float>(scores, i);
    if (score > limits.score) queue.push({i, score, 0});
  }
  std::vector<Chosen> chosen;
  while (chosen.size() < most && !queue.empty()) {
    Candidate next = queue.top();
    queue.pop();
    const float before = next.score;
    if (!survives(next, chosen, boxes, limits)) continue;
    if (next.score == before) {
      chosen.push_back({next.box, next.score});
    } else if (next.score > limits.score) {
      queue.push(next);
    }
  }
  return chosen;
}

}  // namespace

Result<KernelPtr> prepare_non_max_suppression_v5(const Context& c) {
  SK_TRY(c.constant_int(2));
  const bool soft = c.op().kind == ir::OpKind::non_max_suppression_v5;
  return make_kernel([op = c.op(), soft, count = elem_count(c.input(1)), most = elem_count(c.output())](Tensors t) {
    const auto input = [&](size_t i) { return t[static_cast<size_t>(op.inputs[i])]; };
    const auto output = [&](size_t i) { return t[static_cast<size_t>(op.outputs[i])]; };
    Limits limits{.overlap = load_element<float>(input(3), 0), .score = load_element<float>(input(4), 0)};
    if (soft) limits.sigma = load_element<float>(input(5), 0);
    const auto chosen = choose(input(0), input(1), count, most, limits);
    for (size_t i = 0; i < most; ++i) {
      const Chosen value = i < chosen.size() ? chosen[i] : Chosen{0, 0};
      elements<int32_t>(output(0))[i] = static_cast<int32_t>(value.box);
      if (soft) elements<float>(output(1))[i] = value.score;
    }
    elements<int32_t>(output(soft ? 2 : 1))[0] = static_cast<int32_t>(chosen.size());
  });
}
Result<KernelPtr> prepare_non_max_suppression_v4(const Context& c) { return prepare_non_max_suppression_v5(c); }

}  // namespace skillet::ref
