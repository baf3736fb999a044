// docs/hw/rockchip.md, RK3576: convolutions store signed bytes in groups of 32 kernels; within one, groups of 32 lanes,
// taps by rows, kernels, lanes:
//   [kernel / 32][lane / 32][tap][kernel % 32][lane % 32]
// The last group of kernels has as many as there are, the last group of lanes a multiple of 16; lanes beyond the
// input's channels hold the kernel's zero point. Depthwise: groups of 64 channels, [channel / 64][tap][two channels][4
// bytes]: the first bytes of both, then the second ones; a channel's weight is the sum of its two signed bytes: the
// weight and the zero point, negated. Operands: groups of eight channels: int32 A[8]; direct: int16 B[8]; int16 C[8];
// direct 64 bytes, depthwise 48. The word of shifts has 64 bytes of its own.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/int_math.h"
#include "npus/rockchip/compiler/numerics.h"
#include "npus/rockchip/compiler/rk3576.h"

namespace skillet::npus::rockchip::rk3576 {
namespace {

constexpr int32_t kOperandGroup = 8, kSlotBytes = 2, kOneMultiplierLog2 = 14;
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
        // A zero point of -128 has no byte for its opposite; recorded: -128 again.
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

int32_t limit_of(double value) {
  return static_cast<int32_t>(std::min<double>(value, std::numeric_limits<int32_t>::max()));
}

// TensorFlow Lite rounds a product twice: to steps of 2^-own, where the gain is between 1/2 and 1 of that, and those to
// whole ones, halves away from zero. A value up to half of such a step before the middle of two outputs so becomes
// the higher one. The chip does the same with steps 2^-k, one k for all channels; where outputs are never negative, a
// part of the difference goes into what is added to the channel's sum.
struct Rounding {
  int32_t added = 0;     // to the sum
  double otherwise = 0;  // part of the outputs that come out otherwise, expected
};
constexpr int32_t kStepsMax = 20, kMultiplierBits = 15;

int32_t own_steps(double gain) {
  int exponent = 0;
  std::frexp(gain, &exponent);
  return std::clamp<int32_t>(-exponent, 0, kStepsMax);
}
// By how much the middle of two outputs moves down where steps are rounded first; whole ones are rounded once.
double moved(int32_t steps) { return steps == 0 ? 0 : std::ldexp(1, -steps - 1); }

// The shift that leaves the largest product of `steps` 15 bits.
int32_t shift_for(double largest, int32_t steps) {
  int exponent = 0;
  std::frexp(std::ldexp(largest, steps), &exponent);
  return kMultiplierBits - exponent;
}
int16_t factor_of(double gain, int32_t bits) {
  return static_cast<int16_t>(std::clamp<double>(std::rint(std::ldexp(gain, bits)), 1, INT16_MAX));
}

// A factor that is a little too large makes outputs too large in proportion: where they are never negative, what is
// added makes up for that at a typical output. A coarse one is left as it is: its channel hardly leaves 0.
Rounding rounding(double gain, int32_t steps, int32_t shift, bool negative_too) {
  constexpr double kTypical = 40;   // steps of the output
  constexpr double kFine = 160;     // factor, at least
  constexpr double kCoarse = 0.02;  // of outputs of a channel whose factor is less, at most
  const int16_t factor = factor_of(gain, steps + shift);
  const double slope = factor < kFine ? 0 : std::ldexp(factor, -steps - shift) / gain - 1;
  const double much = moved(steps) - moved(own_steps(gain)) + (negative_too ? 0 : slope * kTypical);
  const double added = negative_too ? 0 : -std::rint(much / gain);
  const double slopes = factor < kFine ? kCoarse : std::abs(slope) * kTypical / 2;
  return {static_cast<int32_t>(added), std::abs(much + added * gain) + slopes};
}

// Steps of all channels, and what part of their outputs comes out otherwise.
struct Steps {
  int32_t log2 = 0;
  double otherwise = 0;
};
Steps steps_of(std::span<const double> gains, bool negative_too) {
  const double largest = std::ranges::max(gains);
  const auto otherwise = [&](int32_t steps) {
    double sum = 0;
    for (const double gain : gains) sum += rounding(gain, steps, shift_for(largest, steps), negative_too).otherwise;
    return sum / static_cast<double>(gains.size());
  };
  Steps best{0, otherwise(0)};
  for (int32_t steps = 1; steps <= kStepsMax; ++steps) {
    if (const double part = otherwise(steps); part < best.otherwise) best = {steps, part};
  }
  return best;
}

bool negative_too(const Conv& conv) { return !conv.clamp.on && conv.out_offset > INT8_MIN; }
std::vector<double> gains_of(std::span<const float> products, float out_scale) {
  std::vector<double> gains;
  for (const float product : products) gains.push_back(double{product} / out_scale);
  return gains;
}

Error too_large(double gain) {
  return error(ErrorCode::unsupported, "a gain of {:g} does not fit the chip's multiplier", gain);
}

// Multipliers of 15 bits make products steps of the output divided by a power of two.
Result<void> set_steps(std::span<const float> products, float out_scale, std::optional<double> limit, Conv& conv) {
  const std::vector<double> gains = gains_of(products, out_scale);
  const double largest = std::ranges::max(gains);
  const bool both_signs = negative_too(conv);
  const int32_t steps = steps_of(gains, both_signs).log2, shift = shift_for(largest, steps);
  if (shift < 0 || shift > kShiftMax) return too_large(largest);
  conv.multipliers.clear();
  for (size_t c = 0; c < gains.size(); ++c) {
    conv.multipliers.push_back(factor_of(gains[c], steps + shift));
    if (c < conv.bias.size() && std::abs(conv.bias[c]) < INT32_MAX / 2)
      conv.bias[c] += rounding(gains[c], steps, shift, both_signs).added;
  }
  conv.multiplier_shift = shift;
  conv.out_gain = power_of_two(steps);
  conv.halves_away = true;
  if (limit) conv.clamp.limit = limit_of(std::ldexp(*limit / out_scale, steps));
  return {};
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

// A multiplier of 0 would leave out its whole group: lanes without a channel have 1.
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

Result<void> set_scales(std::span<const float> products, float out_scale, std::optional<double> limit, bool first_units,
                        Conv& conv) {
  if (!first_units) return set_steps(products, out_scale, limit, conv);
  const double largest = std::ranges::max(products);
  conv.multipliers.clear();
  for (const float product : products)
    conv.multipliers.push_back(
        static_cast<int16_t>(std::max<int64_t>(std::llrint(std::ldexp(product / largest, kOneMultiplierLog2)), 1)));
  conv.multiplier_shift = kOneMultiplierLog2;
  conv.out_gain = nearest_gain(largest / out_scale);
  if (!is_valid(conv.out_gain)) return too_large(largest / out_scale);
  if (limit) conv.clamp.limit = limit_of(std::rint(*limit / products[0]));
  return {};
}

// Groups of channels, each with a shift and steps of its own: as few as keep what comes out otherwise rare.
std::vector<int32_t> ends_of_parts(std::span<const float> products, float out_scale, const Conv& conv) {
  constexpr double kRare = 0.003;
  const std::vector<double> gains = gains_of(products, out_scale);
  const auto group = static_cast<size_t>(conv.depthwise ? kDepthwiseGroup : kKernelGroup);
  std::vector<int32_t> ends;
  size_t first = 0;
  for (size_t end = group; end < gains.size(); end += group) {
    const size_t next = std::min(end + group, gains.size());
    if (steps_of(std::span(gains).subspan(first, next - first), negative_too(conv)).otherwise <= kRare) continue;
    ends.push_back(static_cast<int32_t>(end));
    first = end;
  }
  ends.push_back(static_cast<int32_t>(gains.size()));
  return ends;
}

// Products are as fine as 32 bits let a byte be.
Result<void> set_fine_scale(double gain, std::optional<double> limit, double out_scale, Conv& conv) {
  int exponent = 0;
  std::frexp(gain, &exponent);
  const int32_t bits = kMultiplierBits - exponent, steps = std::min(bits, kStepsMax);
  if (bits < 0 || bits - steps > kShiftMax) return too_large(gain);
  const double factor = std::min<double>(std::rint(std::ldexp(gain, bits)), INT16_MAX);
  conv.multipliers.assign(static_cast<size_t>(conv.out.channels), static_cast<int16_t>(factor));
  conv.multiplier_shift = bits - steps;
  conv.out_gain = power_of_two(steps);
  conv.halves_away = true;
  if (limit) conv.clamp.limit = limit_of(std::ldexp(*limit / out_scale, steps));
  return {};
}

}  // namespace skillet::npus::rockchip::rk3576
