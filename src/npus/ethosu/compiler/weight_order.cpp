// The order of weights in a stream (hardware specification, section 6.2).
#include <algorithm>

#include "base/int_math.h"
#include "npus/ethosu/compiler/weights.h"

namespace skillet::npus::ethosu {
namespace {

constexpr uint32_t kInputUblock = 8, kSubkernel = 8;

// Writes values in the order of a stream, with zeros beyond the kernel or its channels.
class OrderedWriter {
 public:
  OrderedWriter(const WeightOrder& order, const Weights& weights) : order_(order), weights_(weights) {}

  std::vector<int16_t> run() {
    size_t size = 0;
    each_block([&](uint32_t ob, uint32_t ib, const Taps& taps) { size += sizes_of(ob, ib, taps).all(); });
    out_.resize(size);
    each_block([&](uint32_t ob, uint32_t ib, const Taps& taps) { add_block(ob, ib, taps); });
    return std::move(out_);
  }

 private:
  struct Taps {
    uint32_t y, x, height, width;
  };
  // For a block: the count of each loop, and the number of values of one step.
  struct Sizes {
    uint32_t outer, outputs, taps, inner, step;
    size_t ublock;
    size_t all() const { return ublock * outer * outputs * taps * inner; }
  };
  bool is_part() const { return order_.traversal == Traversal::part_kernel; }

  template <typename F>
  void each_block(const F& f) const {
    const uint32_t block_inputs = is_part() || order_.is_wide ? 16 : 32, tall = kSubkernel / order_.dilation_h,
                   wide = kSubkernel / order_.dilation_w;
    for (uint32_t ob = 0; ob < order_.outputs; ob += order_.block_depth)
      for (uint32_t ib = 0; ib < order_.inputs; ib += block_inputs)
        for (uint32_t sy = 0; sy < order_.kernel_h; sy += tall)
          for (uint32_t sx = 0; sx < order_.kernel_w; sx += wide) {
            const uint32_t width = std::min(wide, order_.kernel_w - sx);
            f(ob, ib, Taps{sy, sx, std::min(tall, order_.kernel_h - sy), width});
          }
  }

  Sizes sizes_of(uint32_t ob, uint32_t ib, const Taps& taps) const {
    const bool is_depthwise = order_.traversal == Traversal::depthwise;
    const uint32_t outer = is_part() ? std::min(16U, order_.inputs - ib) : 1;
    const uint32_t inner = order_.traversal != Traversal::depth_first ? 1 : order_.is_wide ? 16 : 32;
    const uint32_t at_once = is_depthwise ? 4 : !is_part() ? 1 : order_.is_wide ? 2 : 4;
    Sizes out{.outer = ceil_div(outer, kInputUblock),
              .outputs = ceil_div(std::min(order_.block_depth, order_.outputs - ob), order_.ublock_depth),
              .taps = align_up(taps.height * taps.width, at_once),
              .inner = ceil_div(inner, kInputUblock),
              .step = is_depthwise ? 1 : kInputUblock,
              .ublock = 0};
    out.ublock = size_t{order_.ublock_depth} * out.step;
    return out;
  }

  void add_block(uint32_t ob, uint32_t ib, const Taps& taps) {
    const Sizes sizes = sizes_of(ob, ib, taps);
    for (uint32_t iu = 0; iu < sizes.outer; ++iu)
      for (uint32_t ou = 0; ou < sizes.outputs; ++ou)
        for (uint32_t e = 0; e < sizes.taps; ++e)
          for (uint32_t ii = 0; ii < sizes.inner; ++ii, at_ += sizes.ublock)
            if (e < taps.height * taps.width)
              add_ublock({ob + ou * order_.ublock_depth, ib + (iu + ii) * kInputUblock}, taps.y + e / taps.width,
                         taps.x + e % taps.width, sizes.step, &out_[at_]);
  }

  struct Channels {
    uint32_t output, input;
  };
  void add_ublock(Channels from, uint32_t y, uint32_t x, uint32_t step, int16_t* to) const {
    if (from.input >= order_.inputs) return;
    const uint32_t inputs = std::min(step, order_.inputs - from.input);
    const uint32_t outputs = std::min(order_.ublock_depth, order_.outputs - from.output);
    const int64_t tap = int64_t{y} * order_.kernel_w + x;
    for (uint32_t o = 0; o < outputs; ++o, to += step) {
      const int16_t* const at = weights_.first + (from.output + o) * weights_.per_output + tap * weights_.per_tap +
                                from.input * weights_.per_input;
      for (uint32_t i = 0; i < inputs; ++i) to[i] = at[i * weights_.per_input];
    }
  }

  const WeightOrder& order_;
  const Weights& weights_;
  std::vector<int16_t> out_;
  size_t at_ = 0;
};

}  // namespace

std::vector<int16_t> in_order(const WeightOrder& order, const Weights& weights) {
  return OrderedWriter(order, weights).run();
}

}  // namespace skillet::npus::ethosu
