// docs/hw/rockchip.md, RK3576: convolutions store signed bytes in groups of 32 kernels; within a group, groups of 32
// lanes, taps by rows, kernels, lanes:
//   [kernel / 32][lane / 32][tap][kernel % 32][lane % 32]
// The last group of kernels has only the remaining kernels, the last group of lanes a multiple of 16; lanes beyond the
// input's channels hold the kernel's zero point. Depthwise: groups of 64 channels, [channel / 64][tap][two channels][4
// bytes]: the first bytes of both channels, then the second ones. A channel's weight is the sum of its two signed
// bytes: the weight and the negated zero point. Operands: groups of eight channels: int32 A[8]; direct: int16 B[8];
// int16 C[8]; direct 64 bytes, depthwise 48. The shift word takes 64 bytes.
#include <algorithm>

#include "base/int_math.h"
#include "npus/rockchip/compiler/rk3576.h"

namespace skillet::npus::rockchip::rk3576 {
namespace {

constexpr int32_t kOperandGroup = 8, kSlotBytes = 2;
constexpr size_t kDirectGroupBytes = 64, kDepthwiseGroupBytes = 48, kShiftBytes = 64;
constexpr size_t kFactorsAt = 32;  // B; depthwise C
constexpr size_t kMultipliersAt = 48;

uint8_t stored(int32_t value) { return static_cast<uint8_t>(value - 128); }

void pack_depthwise(const Conv& conv, const Geometry& g, bool whole, Bytes& out) {
  const int32_t channels = conv.in.channels, lanes = align_up(g.in_lanes, kAtom), taps = conv.taps();
  size_t at = out.size();
  out.resize(at + static_cast<size_t>(lanes * taps * kSlotBytes));
  for (int32_t first = 0; first < lanes; first += kDepthwiseGroup) {
    const int32_t held = std::min(kDepthwiseGroup, lanes - first);
    for (int32_t tap = 0; tap < taps; ++tap, at += static_cast<size_t>(held * kSlotBytes)) {
      for (int32_t j = 0; j < std::min(held, channels - first); ++j) {
        const auto c = static_cast<size_t>(first + j);
        const int32_t weight = conv.weight(static_cast<size_t>(tap) * static_cast<size_t>(channels) + c);
        const int32_t sum = weight - conv.zero_of(c);
        // The opposite of a zero point of -128 does not fit a byte; recorded: -128 again.
        const bool split = whole && conv.zero_of(c) == 0;
        const int32_t first_byte = split ? std::min<int32_t>(sum, INT8_MAX) : weight - kZeroPoint;
        const size_t slot = at + static_cast<size_t>(4 * (j / 2) + j % 2);
        out[slot] = static_cast<uint8_t>(first_byte);
        out[slot + 2] = static_cast<uint8_t>(sum - first_byte);
      }
    }
  }
}

void pack_direct(const Conv& conv, const Geometry& g, Bytes& out) {
  const int32_t channels = conv.in.channels, taps = conv.taps(), all = align_up(g.in_lanes, kAtom);
  for (int32_t first = 0; first < g.kernels; first += kGroup) {
    const int32_t kernels = std::min(kGroup, g.kernels - first);
    for (int32_t lane = 0; lane < all; lane += kGroup) {
      const int32_t lanes = std::min(kGroup, all - lane);
      for (int32_t tap = 0; tap < taps; ++tap) {
        for (int32_t k = first; k < first + kernels; ++k) {
          const auto kernel = static_cast<size_t>(k);
          const bool is_there = k < conv.out.channels;
          const size_t from =
              (kernel * static_cast<size_t>(taps) + static_cast<size_t>(tap)) * static_cast<size_t>(channels);
          for (int32_t c = lane; c < lane + lanes; ++c) {
            if (!is_there)
              out.push_back(0);
            else
              out.push_back(stored(c < channels ? conv.weight(from + static_cast<size_t>(c)) : conv.zero_of(kernel)));
          }
        }
      }
    }
  }
}

size_t group_bytes(const Conv& conv) { return conv.depthwise ? kDepthwiseGroupBytes : kDirectGroupBytes; }

}  // namespace

void pack_weights(const Conv& conv, const Geometry& g, const Tuning& tuning, Bytes& out) {
  conv.depthwise ? pack_depthwise(conv, g, tuning.whole_groups, out) : pack_direct(conv, g, out);
}

uint64_t weights_offset(const Conv& conv, const Geometry& g, const Task& task) {
  return static_cast<uint64_t>(task.first_lane) *
         static_cast<uint64_t>(conv.depthwise ? conv.taps() * kSlotBytes : g.kernel_bytes);
}

uint64_t operands_offset(const Conv& conv, const Task& task) {
  return static_cast<uint64_t>(task.first_lane / kOperandGroup) * group_bytes(conv);
}

uint64_t shifts_offset(const Conv& conv, const Geometry& g) {
  return align_up(static_cast<uint64_t>(ceil_div(g.out_lanes, kOperandGroup)) * group_bytes(conv),
                  uint64_t{kShiftBytes});
}

// A multiplier of 0 would disable its whole group, so lanes without a channel have 1.
void pack_operands(const Conv& conv, const Geometry& g, const Tuning&, Bytes& to) {
  const size_t first = to.size(), shifts = static_cast<size_t>(shifts_offset(conv, g));
  to.resize(first + shifts + kShiftBytes);
  uint8_t* const out = to.data() + first;
  for (size_t c = 0; c < static_cast<size_t>(g.out_lanes); ++c) {
    uint8_t* const group = out + c / kOperandGroup * group_bytes(conv);
    const size_t i = c % kOperandGroup;
    const bool is_there = c < conv.bias.size();
    if (is_there) store_le(group + i * 4, conv.bias[c]);
    if (is_there && !conv.depthwise)
      store_le(group + kFactorsAt + i * 2, static_cast<int16_t>(kZeroPoint - conv.zero_of(c)));
    store_le(group + (conv.depthwise ? kFactorsAt : kMultipliersAt) + i * 2,
             is_there && !conv.multipliers.empty() ? conv.multipliers[c] : int16_t{1});
  }
  store_le(out + shifts, static_cast<uint32_t>(conv.multiplier_shift << 8 | conv.multiplier_shift));
}

}  // namespace skillet::npus::rockchip::rk3576
