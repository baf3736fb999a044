// Where the specification leaves the order open it is inferred from Vela's streams with known weights: taps of a
// depthwise kernel are in groups of ten, each followed by its padding; for 16 bits a block of input channels ends with
// the last eight channels that exist, and depth first it has 32 where a chip of 256 multiply-adds or less has ublocks
// of 16 channels; every other block of output channels has its blocks of input channels in reverse.
#include "npus/ethosu/sim/weights_u85.h"

#include <algorithm>

#include "base/int_math.h"

namespace skillet::sim::ethosu {
namespace {

constexpr uint32_t kKernelPart = 8, kInputStep = 8, kStreamOutputs = 4, kTapGroup = 10;

struct StreamedTap {
  uint32_t ky = 0, kx = 0;
  bool is_padding = true;
};

class StreamedWalk {
 public:
  explicit StreamedWalk(const StreamedOrder& order)
      : order_(order),
        of_(order.of_all),
        is_depthwise_(of_.traversal == Traversal::depthwise),
        is_part_(of_.traversal == Traversal::part_kernel),
        inputs_(is_depthwise_ ? 1 : of_.input_depth),
        block_(block_of(order)),
        ublock_(is_depthwise_              ? 1
                : is_part_ && of_.is_16bit ? kInputStep
                                           : block_),
        tall_(kKernelPart / of_.dilation_y),
        wide_(kKernelPart / of_.dilation_x) {}

  static uint32_t block_of(const StreamedOrder& order) {
    constexpr uint32_t kNarrowMacs = 256, kDeepUblock = 16;
    const WeightOrder& of = order.of_all;
    if (of.traversal == Traversal::depthwise) return 1;
    if (of.traversal == Traversal::part_kernel) return 16;
    return of.is_16bit && order.macs <= kNarrowMacs && of.ublock_depth == kDeepUblock ? 32 : 64;
  }

  uint64_t count() const {
    const auto in_blocks = [](uint64_t whole, uint64_t block, const auto& count) {
      return whole / block * count(block) + (whole % block == 0 ? 0 : count(whole % block));
    };
    const uint64_t outputs = in_blocks(of_.output_depth, of_.block_depth,
                                       [&](uint64_t count) { return align_up(count, uint64_t{of_.ublock_depth}); });
    const uint64_t taps = in_blocks(of_.kernel_height, tall_, [&](uint64_t height) {
      return in_blocks(of_.kernel_width, wide_, [&](uint64_t width) { return padded(height * width); });
    });
    return outputs / order_.streams * align_up(uint64_t{inputs_}, uint64_t{ublock_}) * taps;
  }

  // Calls `weight(stream, o, tap, i)` in the order of the streams.
  template <typename Weight>
  void run(const Weight& weight) const {
    bool is_forward = true;
    for (uint32_t ob = 0; ob < of_.output_depth; ob += of_.block_depth, is_forward = !is_forward) {
      const uint32_t blocks = (inputs_ + block_ - 1) / block_;
      for (uint32_t n = 0; n < blocks; ++n) {
        const uint32_t ib = (is_forward ? n : blocks - 1 - n) * block_;
        for (uint32_t sx = 0; sx < of_.kernel_width; sx += wide_)
          for (uint32_t sy = 0; sy < of_.kernel_height; sy += tall_) run_block(ob, ib, taps_of(sy, sx), weight);
      }
    }
  }

 private:
  uint64_t padded(uint64_t taps) const {
    if (of_.traversal == Traversal::depth_first) return taps;
    const uint64_t whole = align_up(taps, uint64_t{is_depthwise_ || of_.is_16bit ? kTapGroup : kTapGroup / 2});
    return whole + (is_depthwise_ ? whole / kTapGroup * group_padding() : 0);
  }
  // Number of zero taps after each group of a depthwise kernel.
  uint32_t group_padding() const {
    constexpr uint32_t kNarrow = 256, kWide = 512;
    if (order_.macs <= kNarrow) return of_.is_16bit ? 2 : 0;
    return order_.macs <= kWide ? 2 : 6;
  }

  // Taps by phase of the stride; each row runs in the opposite direction of the row before.
  std::vector<StreamedTap> taps_of(uint32_t sy, uint32_t sx) const {
    const uint32_t height = std::min(tall_, of_.kernel_height - sy), width = std::min(wide_, of_.kernel_width - sx);
    const bool has_phases = of_.traversal != Traversal::depth_first;
    const uint32_t step_y = has_phases ? order_.stride_y : 1, step_x = has_phases ? order_.stride_x : 1;
    std::vector<StreamedTap> taps;
    for (uint32_t py = 0; py < std::min(step_y, height); ++py) {
      for (uint32_t px = 0; px < std::min(step_x, width); ++px) {
        const uint32_t columns = (width - px + step_x - 1) / step_x;
        bool is_forward = true;
        for (uint32_t y = py; y < height; y += step_y, is_forward = !is_forward)
          for (uint32_t n = 0; n < columns; ++n)
            taps.push_back({sy + y, sx + px + (is_forward ? n : columns - 1 - n) * step_x, false});
      }
    }
    if (!is_depthwise_) {
      taps.resize(static_cast<size_t>(padded(taps.size())));
      return taps;
    }
    std::vector<StreamedTap> grouped;
    for (size_t i = 0; i < align_up(taps.size(), size_t{kTapGroup}); ++i) {
      grouped.push_back(i < taps.size() ? taps[i] : StreamedTap{});
      if (i % kTapGroup == kTapGroup - 1) grouped.resize(grouped.size() + group_padding());
    }
    return grouped;
  }

  template <typename Weight>
  void run_block(uint32_t ob, uint32_t ib, const std::vector<StreamedTap>& taps, const Weight& weight) const {
    const uint32_t outputs = std::min(of_.block_depth, of_.output_depth - ob), inputs = std::min(block_, inputs_ - ib);
    const uint32_t last = is_depthwise_ ? 1 : kInputStep;
    for (uint32_t iu = 0; iu < inputs; iu += ublock_) {
      for (uint32_t ou = 0; ou < outputs; ou += of_.ublock_depth) {
        for (const StreamedTap& tap : taps) {
          for (uint32_t ii = 0; ii < ublock_; ii += last) {
            for (uint32_t oz = 0; oz < of_.ublock_depth; ++oz) {
              const uint32_t stream = oz / kStreamOutputs % order_.streams;
              const uint32_t o = ou + oz < outputs ? ob + ou + oz : of_.output_depth;
              for (uint32_t iz = 0; iz < last; ++iz) weight(stream, o, tap, ib + iu + ii + iz);
            }
          }
        }
      }
    }
  }

  const StreamedOrder& order_;
  const WeightOrder& of_;
  bool is_depthwise_, is_part_;
  uint32_t inputs_, block_, ublock_;  // channels: all, of a block, and before the next output channels
  uint32_t tall_, wide_;              // of a part of the kernel
};

}  // namespace

uint64_t count_of(const StreamedOrder& order) { return StreamedWalk(order).count(); }

Result<std::vector<int16_t>> ordered(std::span<const std::vector<int16_t>> streams, const StreamedOrder& order) {
  const uint64_t count = count_of(order);
  for (size_t i = 0; i < streams.size(); ++i) {
    if (streams[i].size() < count)
      return error(ErrorCode::fault, "weight stream {} has {} weights, and the operation {}", i, streams[i].size(),
                   count);
  }
  const WeightOrder& of = order.of_all;
  const size_t inputs = of.traversal == Traversal::depthwise ? 1 : of.input_depth;
  std::vector<int16_t> out(size_t{of.kernel_height} * of.kernel_width * of.output_depth * inputs);
  std::vector<size_t> at(streams.size());
  bool has_padding = false;
  StreamedWalk(order).run([&](uint32_t stream, uint32_t o, const StreamedTap& tap, uint32_t i) {
    const int16_t value = streams[stream][at[stream]++];
    if (!tap.is_padding && o < of.output_depth && i < inputs)
      out[((size_t{tap.ky} * of.kernel_width + tap.kx) * of.output_depth + o) * inputs + i] = value;
    else
      has_padding |= value != 0;
  });
  if (has_padding) return error(ErrorCode::fault, "a weight stream has weights where there is no channel");
  return out;
}

}  // namespace skillet::sim::ethosu
