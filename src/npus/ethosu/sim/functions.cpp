#include "npus/ethosu/sim/functions.h"

#include "base/sigmoid_steps.h"

namespace skillet::sim::ethosu {
namespace {

// Interpolates in a table with steps of 2^bits; the result is the value times 2^bits.
int64_t on_line(int64_t at, int bits, int64_t beyond) {
  const int64_t i = at >> bits;
  if (i >= 255) return beyond;
  const int64_t low = kSigmoidSteps[i], high = kSigmoidSteps[i + 1];
  return (low << bits) + (at & ((1 << bits) - 1)) * (high - low);
}

}  // namespace

int32_t hardware_sigmoid(int64_t value) {
  const int64_t y = on_line(value < 0 ? -value : value, 9, int64_t{0x7fff} << 10);
  return static_cast<int32_t>(((value >= 0 ? y : (1 << 25) - y - 1) + (1 << 9)) >> 10);
}

int32_t hardware_tanh(int64_t value) {
  const int64_t y = on_line(value < 0 ? -value : value, 8, int64_t{0xffff} << 8) - (1 << 23);
  return static_cast<int32_t>(((value >= 0 ? y : -y - 1) + (1 << 7)) >> 8);
}

}  // namespace skillet::sim::ethosu
