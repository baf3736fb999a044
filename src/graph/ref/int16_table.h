// Functions of int16 values by tables of 512 steps with linear interpolation, as in TFLite; and the logistic function
// and the hyperbolic tangent, which use a finer table.
// Called by kernels of int16 activations.
// Must not know: tensors.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>

#include "graph/ir/quant.h"

namespace skillet::ref {

class Int16Table {
 public:
  // Builds the table of a function of reals; TFLite computes the table in float or double.
  static Int16Table of_float(const ir::Quant& in, const ir::Quant& out, const std::function<float(float)>& f);
  static Int16Table of_double(double in_scale, int in_zero_point, double out_scale,
                              const std::function<double(double)>& f);
  int16_t operator()(int16_t value) const {
    const auto i = static_cast<size_t>(256 + (value >> 7));
    return static_cast<int16_t>(steps_[i] + (((steps_[i + 1] - steps_[i]) * (value & 0x7f) + 64) >> 7));
  }
  // Values at each 128th input, and one after the last.
  std::span<const int16_t, 513> steps() const { return steps_; }

 private:
  template <typename Real, typename F>
  static Int16Table make(Real in_scale, int in_zero_point, Real out_scale, int out_zero_point, const F& f);
  std::array<int16_t, 513> steps_{};
};

// Conversion from any scale to steps of 1 / (3 * 4096): a factor, and a right shift of its products.
struct SigmoidInput {
  int32_t multiplier = 0, right_shift = 0;
};
SigmoidInput sigmoid_input(float scale);
// Results are in steps of 1 / 32768.
int16_t int16_logistic(int16_t value, const SigmoidInput& input);
int16_t int16_tanh(int16_t value, const SigmoidInput& input);

}  // namespace skillet::ref
