// docs/hw/rockchip.md: a weight is stored as its unsigned value - 128. Convolutions: groups of 32 kernels; within a
// group, groups of 32 input channels, taps by rows, kernels, channels. The last group of channels has as many lanes as
// are programmed:
//   [kernel / 32][lane / 32][tap][kernel % 32][lane % 32]
// Lanes beyond the input's channels hold the weights' zero point, so that the bytes of these lanes cancel out; kernels
// beyond the output's hold 0.
// Depthwise: groups of 64 channels, [channel / 64][tap][channel % 64].
#include "npus/rockchip/compiler/weights.h"

#include <algorithm>
#include <cstring>

#include "base/int_math.h"
#include "npus/rockchip/compiler/packing.h"

namespace skillet::npus::rockchip {
namespace {

constexpr int32_t kOperandGroup = 8;
constexpr size_t kOperandGroupBytes = 64, kCorrectionsAt = 32, kMultipliersAt = 48;

uint8_t stored(int32_t value) { return static_cast<uint8_t>(value - 128); }

// The lanes of the last group that the recorded driver is known to write; it announces others.
int32_t recorded_lanes(int32_t channels) {
  if (channels <= 16) return 16;
  if (channels <= 32) return 32;
  if (channels % kDepthwiseGroup == 0 || channels % 32 > 16) return kDepthwiseGroup;
  if (channels < kDepthwiseGroup) return channels;
  return std::max(channels % kDepthwiseGroup, 16);
}

void pack_depthwise(const Conv& conv, const Geometry& g, const Tuning& tuning, Bytes& out) {
  const int32_t channels = conv.in.channels;
  const uint8_t fill = tuning.whole_groups ? 0 : stored(conv.weight_zero);
  for (int32_t first = 0; first < g.in_lanes; first += kDepthwiseGroup) {
    const bool last = first + kDepthwiseGroup >= channels;
    const int32_t lanes =
        last && !tuning.whole_groups ? recorded_lanes(channels) : read_lanes(g, first, kDepthwiseGroup);
    for (int32_t tap = 0; tap < conv.taps(); ++tap) {
      for (int32_t c = first; c < first + lanes; ++c)
        out.push_back(c < channels ? stored(conv.weight(static_cast<size_t>(tap * channels + c))) : fill);
    }
    if (last) break;
  }
}

// Recorded: a kernel that makes an odd number even takes a full group of lanes, so that the following bytes are further
// on.
int32_t filler_lanes(const Conv& conv, int32_t lanes, const Tuning& tuning) {
  return tuning.whole_groups || conv.in.channels <= kLaneGroup ? lanes : kLaneGroup;
}

// One kernel's weights of one tap and group of lanes.
void pack_lanes(const uint8_t* from, uint8_t flip, int32_t present, int32_t lanes, uint8_t fill, uint8_t* to) {
  const auto stored_flip = static_cast<uint8_t>(flip ^ 0x80);
  if (present == kLaneGroup) {  // the usual case
    uint64_t words[kLaneGroup / sizeof(uint64_t)];
    std::memcpy(words, from, sizeof words);
    for (uint64_t& word : words) word ^= 0x0101010101010101U * stored_flip;
    std::memcpy(to, words, sizeof words);
    return;
  }
  for (int32_t i = 0; i < present; ++i) to[i] = from[i] ^ stored_flip;
  std::fill(to + present, to + lanes, fill);
}

void pack_direct(const Conv& conv, const Geometry& g, const Tuning& tuning, uint8_t* to) {
  const int32_t channels = conv.in.channels, taps = conv.taps();
  const size_t kernel_bytes = static_cast<size_t>(taps) * static_cast<size_t>(channels);
  for (int32_t first = 0; first < g.kernels; first += kKernelGroup) {
    const int32_t kernels = std::min(kKernelGroup, g.kernels - first);
    const int32_t present = std::clamp(conv.out.channels - first, 0, kernels);
    for (int32_t lane = 0; lane < g.in_lanes; lane += kLaneGroup) {
      const int32_t lanes = std::min(kLaneGroup, g.in_lanes - lane), used = std::clamp(channels - lane, 0, lanes);
      for (int32_t tap = 0; tap < taps; ++tap) {
        const uint8_t* from = conv.weights.data() + static_cast<size_t>(first) * kernel_bytes +
                              static_cast<size_t>(tap) * static_cast<size_t>(channels) + static_cast<size_t>(lane);
        for (int32_t k = 0; k < present; ++k, from += kernel_bytes, to += lanes)
          pack_lanes(from, conv.weight_flip, used, lanes, stored(conv.weight_zero), to);
        to += (kernels - present) * filler_lanes(conv, lanes, tuning);
      }
    }
  }
}

}  // namespace

void pack_weights(const Conv& conv, const Geometry& g, const Tuning& tuning, Bytes& out) {
  if (tuning.packing != nullptr) return tuning.packing->pack_weights(conv, g, tuning, out);
  if (conv.depthwise) return pack_depthwise(conv, g, tuning, out);
  const int32_t last_lanes = g.in_lanes - (ceil_div(g.in_lanes, kLaneGroup) - 1) * kLaneGroup;
  const int32_t longer =
      (filler_lanes(conv, last_lanes, tuning) - last_lanes) * conv.taps() * (g.kernels - conv.out.channels);
  const size_t first = out.size();
  out.resize(first + static_cast<size_t>(g.weight_bytes() + std::max(longer, 0)));
  pack_direct(conv, g, tuning, out.data() + first);
}

uint64_t recorded_weights_room(const Conv& conv) {
  const int64_t kernels = conv.depthwise ? 1 : align_up(conv.out.channels, 2);
  const int64_t lanes = align_up(std::max(conv.in.channels, kAtom), kLaneGroup);
  return static_cast<uint64_t>(conv.taps() * kernels * lanes * 2);
}

uint64_t weights_offset(const Conv& conv, const Geometry& g, const Task& task, const Tuning& tuning) {
  if (tuning.packing != nullptr) return tuning.packing->weights_offset(conv, g, task);
  const int64_t per_channel = conv.depthwise ? conv.taps() : g.kernel_bytes;
  return static_cast<uint64_t>(per_channel * task.first_lane);
}

void pack_operands(const Conv& conv, const Geometry& g, const Tuning& tuning, Bytes& to) {
  if (tuning.packing != nullptr) return tuning.packing->pack_operands(conv, g, tuning, to);
  const auto lanes = static_cast<size_t>(tuning.whole_groups ? g.out_lanes : conv.out.channels);
  const bool multiplied = !conv.multipliers.empty();
  const size_t first = to.size();
  to.resize(first + (multiplied ? ceil_div(lanes, size_t{kOperandGroup}) * kOperandGroupBytes : lanes * 4));
  uint8_t* const out = to.data() + first;
  for (size_t c = 0; c < conv.bias.size(); ++c) {
    if (!multiplied) {
      store_le(out + c * 4, conv.bias[c]);
      continue;
    }
    uint8_t* const group = out + c / kOperandGroup * kOperandGroupBytes;
    const size_t i = c % kOperandGroup;
    store_le(group + i * 4, conv.bias[c]);
    store_le(group + kCorrectionsAt + i * 2, static_cast<int16_t>(128 - conv.weight_zero));
    store_le(group + kMultipliersAt + i * 2, conv.multipliers[c]);
  }
}

uint64_t operands_offset(const Conv& conv, const Task& task, const Tuning& tuning) {
  if (tuning.packing != nullptr) return tuning.packing->operands_offset(conv, task);
  const auto first = static_cast<uint64_t>(task.first_lane);
  return conv.multipliers.empty() ? first * 4 : first / kOperandGroup * kOperandGroupBytes;
}

}  // namespace skillet::npus::rockchip
