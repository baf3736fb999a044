#include "graph/ref/int16_table.h"

#include <algorithm>
#include <cmath>

namespace skillet::ref {

template <typename Real, typename F>
Int16Table Int16Table::make(Real in_scale, int in_zero_point, Real out_scale, int out_zero_point, const F& f) {
  constexpr int kSteps = 512;
  constexpr auto kLow = static_cast<Real>(INT16_MIN), kHigh = static_cast<Real>(INT16_MAX);
  const Real in_min = in_scale * static_cast<Real>(INT16_MIN - in_zero_point);
  const Real in_max = in_scale * static_cast<Real>(INT16_MAX - in_zero_point);
  const Real out_min = out_scale * static_cast<Real>(INT16_MIN - out_zero_point);
  const Real out_max = out_scale * static_cast<Real>(INT16_MAX - out_zero_point);
  const Real step = (in_max - in_min) / kSteps, half_step = step / 2;
  const Real by = static_cast<Real>(1 << 16) / (out_max - out_min);
  const auto limited = [&](Real value) {
    return static_cast<int16_t>(std::isnan(value) ? Real{0} : std::min(std::max(value, kLow), kHigh));
  };
  Int16Table table;
  for (int i = 0; i < kSteps; ++i) {
    const Real at = in_min + static_cast<Real>(i) * step;
    const Real sample = std::round(f(at) * by);
    const Real line = std::round((f(in_min + static_cast<Real>(i + 1) * step) * by + sample) / 2);
    // Half of what the line misses in its middle goes to its ends.
    const Real bias = std::round((line - std::round(f(at + half_step) * by)) / 2);
    table.steps_[static_cast<size_t>(i)] = limited(sample - bias);
  }
  table.steps_[kSteps] = limited(std::round(f(in_max) * by));
  return table;
}

Int16Table Int16Table::of_float(const ir::Quant& in, const ir::Quant& out, const std::function<float(float)>& f) {
  return make<float>(in.scale(), in.zero_point(), out.scale(), out.zero_point(), f);
}

Int16Table Int16Table::of_double(double in_scale, int in_zero_point, double out_scale,
                                 const std::function<double(double)>& f) {
  return make<double>(in_scale, in_zero_point, out_scale, 0, f);
}

namespace {

// 2^16 / (1 + exp(-i / 24)); 44 of them are one more than what it rounds to, as the published runtime's results show.
constexpr uint16_t kSigmoidSteps[256] = {
    32768, 33451, 34133, 34813, 35493, 36169, 36843, 37513, 38180, 38841, 39498, 40149, 40794, 41432, 42064, 42688,
    43304, 43912, 44511, 45102, 45683, 46255, 46817, 47369, 47911, 48443, 48964, 49475, 49975, 50464, 50942, 51409,
    51865, 52311, 52745, 53169, 53581, 53983, 54374, 54755, 55125, 55485, 55834, 56174, 56503, 56823, 57133, 57433,
    57724, 58007, 58280, 58544, 58800, 59048, 59288, 59519, 59743, 59959, 60168, 60370, 60565, 60753, 60935, 61110,
    61279, 61441, 61599, 61750, 61896, 62036, 62172, 62302, 62428, 62549, 62666, 62778, 62886, 62990, 63090, 63186,
    63279, 63368, 63454, 63536, 63615, 63691, 63765, 63835, 63903, 63968, 64030, 64090, 64148, 64204, 64257, 64308,
    64357, 64405, 64450, 64494, 64536, 64576, 64614, 64652, 64687, 64721, 64754, 64786, 64816, 64845, 64873, 64900,
    64926, 64950, 64974, 64997, 65019, 65039, 65060, 65079, 65097, 65115, 65132, 65149, 65164, 65179, 65194, 65208,
    65221, 65234, 65246, 65258, 65269, 65280, 65291, 65301, 65310, 65319, 65328, 65337, 65345, 65352, 65360, 65367,
    65374, 65381, 65387, 65393, 65399, 65404, 65410, 65415, 65420, 65425, 65429, 65433, 65438, 65442, 65445, 65449,
    65453, 65456, 65459, 65462, 65465, 65468, 65471, 65474, 65476, 65479, 65481, 65483, 65485, 65488, 65489, 65491,
    65493, 65495, 65497, 65498, 65500, 65501, 65503, 65504, 65505, 65507, 65508, 65509, 65510, 65511, 65512, 65513,
    65514, 65515, 65516, 65517, 65517, 65518, 65519, 65520, 65520, 65521, 65522, 65522, 65523, 65523, 65524, 65524,
    65525, 65525, 65526, 65526, 65526, 65527, 65527, 65528, 65528, 65528, 65529, 65529, 65529, 65529, 65530, 65530,
    65530, 65530, 65531, 65531, 65531, 65531, 65531, 65532, 65532, 65532, 65532, 65532, 65532, 65533, 65533, 65533,
    65533, 65533, 65533, 65533, 65533, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65535};

int32_t scaled(int16_t value, const SigmoidInput& input) {
  const int64_t half = input.right_shift > 0 ? int64_t{1} << (input.right_shift - 1) : 0;
  return static_cast<int32_t>((int64_t{value} * input.multiplier + half) >> input.right_shift);
}

// From a table of steps of 2^bits: the value there times 2^bits.
int32_t on_line(uint32_t at, int bits, uint32_t beyond) {
  const uint32_t i = at >> bits;
  if (i >= 255) return static_cast<int32_t>(beyond);
  const uint32_t low = kSigmoidSteps[i], high = kSigmoidSteps[i + 1];
  return static_cast<int32_t>((low << bits) + (at & ((1U << bits) - 1)) * (high - low));
}

}  // namespace

SigmoidInput sigmoid_input(float scale) {
  constexpr float kSteps = 4096;
  // Scales of 2^-12 and 2^-11 need no rounding.
  if (scale == 1 / kSteps) return {3, 0};
  if (scale == 2 / kSteps) return {6, 0};
  double multiplier = static_cast<double>(scale) * 4096 * 3;
  SigmoidInput input;
  for (; multiplier <= 32767.0 / 2 && input.right_shift <= 30; ++input.right_shift) multiplier *= 2;
  input.multiplier = static_cast<int32_t>(std::min(multiplier, static_cast<double>(INT16_MAX)));
  return input;
}

int16_t int16_logistic(int16_t value, const SigmoidInput& input) {
  const int32_t x = scaled(value, input);
  const int32_t y = on_line(static_cast<uint32_t>(std::abs(x)), 9, 0x7fffU << 10);
  return static_cast<int16_t>((x >= 0 ? y + (1 << 9) : (1 << 25) - y + (1 << 9) - 1) >> 10);
}

// 2 * logistic(2 * x) - 1
int16_t int16_tanh(int16_t value, const SigmoidInput& input) {
  const int32_t x = scaled(value, input);
  const int32_t y = on_line(static_cast<uint32_t>(std::abs(x)), 8, 0xffffU << 8);
  return static_cast<int16_t>((x >= 0 ? y - (1 << 23) + (1 << 7) : -y + (1 << 23) + (1 << 7) - 1) >> 8);
}

}  // namespace skillet::ref
