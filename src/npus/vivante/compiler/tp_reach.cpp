// Specification 5.2: elements follow each other tile by tile. The place of each is the sum of the loops' counters times
// their increments; then loop 0 steps, whose end steps loop 1, and so on. The end of a row, tile or plane may end the
// first two, three or four loops.
#include "npus/vivante/compiler/tp_reach.h"

#include <algorithm>
#include <array>

namespace skillet::npus::vivante {
namespace {

namespace hw = ::skillet::vivante::hw;

constexpr size_t kLoops = 7;
constexpr uint64_t kRunsMax = uint64_t{1} << 20;  // a run is the elements between two resets

uint64_t sum(uint64_t a, uint64_t b) {
  uint64_t out = 0;
  return __builtin_add_overflow(a, b, &out) ? UINT64_MAX : out;
}
uint64_t product(uint64_t a, uint64_t b) {
  uint64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? UINT64_MAX : out;
}

using Counters = std::array<uint64_t, kLoops>;

class Loops {
 public:
  explicit Loops(const hw::TpInstruction& tp)
      : increment_{tp.out_loop_0_inc, tp.out_loop_1_inc, tp.out_loop_2_inc, tp.out_loop_3_inc,
                   tp.out_loop_4_inc, tp.out_loop_5_inc, tp.out_loop_6_inc},
        count_{tp.out_loop_0_count,
               tp.out_loop_1_count,
               tp.out_loop_2_count,
               tp.out_loop_3_count,
               tp.out_loop_4_count,
               tp.out_loop_5_count,
               0} {}

  uint64_t farthest() const { return farthest_; }

  // `elements` > 0 without a reset between them. The counters are digits of a number. Of the numbers from `first` to
  // `last` the one with the largest sum is `last`, or has the digits of `last` down to one that is smaller by 1, then
  // the largest digits.
  void run(uint64_t elements) {
    const Counters first = now_, last = after(first, elements - 1);
    farthest_ = std::max(farthest_, place(last));
    for (size_t loop = 0; loop < kLoops; ++loop) {
      Counters other = last;
      if (other[loop] == 0) continue;
      --other[loop];
      for (size_t lower = 0; lower < loop; ++lower) other[lower] = count_[lower] == 0 ? 0 : count_[lower] - 1;
      const bool is_there = !std::lexicographical_compare(other.rbegin(), other.rend(), first.rbegin(), first.rend());
      if (is_there) farthest_ = std::max(farthest_, place(other));
    }
    now_ = after(last, 1);
  }

  // Ends loops 0..last, unless they have just ended by themselves.
  void finish(size_t last) {
    const auto end = now_.begin() + static_cast<std::ptrdiff_t>(last) + 1;
    if (std::all_of(now_.begin(), end, [](uint64_t counter) { return counter == 0; })) return;
    std::fill(now_.begin(), end, 0);
    now_ = step(now_, last + 1, 1);
  }

  // Repeats all steps so far `times` more; only possible if they left all loops but loop 6 at 0.
  bool repeat(uint64_t times) {
    if (std::any_of(now_.begin(), now_.end() - 1, [](uint64_t counter) { return counter != 0; })) return false;
    farthest_ = sum(farthest_, product(product(now_[kLoops - 1], increment_[kLoops - 1]), times));
    return true;
  }

 private:
  Counters step(Counters at, size_t loop, uint64_t steps) const {
    for (; steps > 0; ++loop) {
      at[loop] += steps;
      if (count_[loop] == 0) break;
      steps = at[loop] / count_[loop];
      at[loop] %= count_[loop];
    }
    return at;
  }
  Counters after(const Counters& at, uint64_t steps) const { return step(at, 0, steps); }
  uint64_t place(const Counters& at) const {
    uint64_t out = 0;
    for (size_t i = 0; i < kLoops; ++i) out = sum(out, product(at[i], increment_[i]));
    return out;
  }

  std::array<uint64_t, kLoops> increment_, count_;
  Counters now_{};
  uint64_t farthest_ = 0;
};

// Tiles along one axis: they begin at 0, inc, 2 * inc, ... and end at `length` at the latest.
struct Axis {
  uint64_t length, size, inc;
  uint64_t tiles() const { return (length - 1) / inc + 1; }
  uint64_t extent(uint64_t tile) const { return std::min(size, length - tile * inc); }
  uint64_t total() const {
    const uint64_t whole = length < size ? 0 : (length - size) / inc + 1, cut = tiles() - whole;
    // Each cut tile has length - tile * inc elements.
    return whole * size + cut * length - inc * (cut * whole + cut * (cut - 1) / 2);
  }
};

Axis axis(int32_t start, int32_t end, uint32_t size, uint32_t inc) {
  return {static_cast<uint64_t>(int64_t{end} - start + 1), size, inc};
}

// One plane, in runs from reset to reset.
void walk_plane(const hw::TpInstruction& tp, const Axis& x, const Axis& y, Loops& loops) {
  for (uint64_t ty = 0; ty < y.tiles(); ++ty) {
    for (uint64_t tx = 0; tx < x.tiles(); ++tx) {
      const uint64_t rows = y.extent(ty), width = x.extent(tx);
      if (!tp.out_loop_1_reset) loops.run(rows * width);
      for (uint64_t row = 0; tp.out_loop_1_reset && row < rows; ++row) {
        loops.run(width);
        loops.finish(1);
      }
      if (tp.out_loop_2_reset) loops.finish(2);
    }
  }
}

}  // namespace

std::optional<TpOutput> tp_output(const hw::TpInstruction& tp) {
  const Axis x = axis(tp.in_window_x_start, tp.in_window_x_end, tp.in_tile_x_size, tp.in_tile_x_inc);
  const Axis y = axis(tp.in_window_y_start, tp.in_window_y_end, tp.in_tile_y_size, tp.in_tile_y_inc);
  const uint64_t planes = uint64_t{tp.in_z_size} + tp.in_window_z_start_overfetch + tp.in_window_z_end_overfetch;
  const uint64_t plane = x.total() * y.total(), elements = product(plane, planes);
  Loops loops(tp);
  const bool in_tiles = tp.out_loop_1_reset || tp.out_loop_2_reset;
  if (!in_tiles && !tp.out_loop_3_reset) {
    loops.run(elements);
    return TpOutput{elements, sum(loops.farthest(), 1)};
  }
  const uint64_t runs = !in_tiles ? 1 : x.tiles() * (tp.out_loop_1_reset ? y.total() : y.tiles());
  for (uint64_t z = 0, done = 0; z < planes; ++z, done += runs) {
    if (done + runs > kRunsMax) return std::nullopt;
    if (in_tiles)
      walk_plane(tp, x, y, loops);
    else
      loops.run(plane);
    if (tp.out_loop_3_reset) loops.finish(3);
    if (z == 0 && loops.repeat(planes - 1)) break;
  }
  return TpOutput{elements, sum(loops.farthest(), 1)};
}

}  // namespace skillet::npus::vivante
