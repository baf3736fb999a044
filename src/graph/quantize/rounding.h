// Rounds the weights of one layer to fewer scales, such that later weights compensate the effect of rounding earlier
// ones on the outputs (GPTQ: Frantar et al. 2022, arXiv 2210.17323), as far as calibration data shows how inputs
// correlate. Called by quantize.cpp. Must not know: graphs, chips.
#pragma once

#include <cstddef>
#include <memory>

#include "graph/passes/lower/weight_scales.h"
#include "graph/quantize/samples.h"

namespace skillet::quantize {

// Difference of unrounded, unclamped outputs from those with the layer's own weights, in steps of the output. Values
// that are clamped with the own weights do not count.
struct Fit {
  double squares = 0, worst = 0;
  size_t values = 0, beyond = 0;  // `beyond`: off by more than 1
  double rms() const;
  double share_beyond() const { return values == 0 ? 0 : static_cast<double>(beyond) / static_cast<double>(values); }
};
Fit fit_of(const passes::WeightedLayer& before, const passes::WeightedLayer& after, const Samples& samples,
           Limits limits);

// Rounds to one scale for each of `scales` groups of channels, and adapts the biases.
passes::WeightedLayer round_plainly(const passes::WeightedLayer& layer, const Samples& samples, size_t scales);

// Computes the data for error feedback once, for any number of scales.
class Rounding {
 public:
  // All are borrowed.
  Rounding(const passes::WeightedLayer& layer, const Samples& samples, Limits limits);
  ~Rounding();
  Rounding(const Rounding&) = delete;
  Rounding& operator=(const Rounding&) = delete;

  // No channel's error is larger than with round_plainly() on these samples.
  passes::WeightedLayer round(size_t scales) const;

 private:
  struct Curvature;
  const passes::WeightedLayer& layer_;
  const Samples& samples_;
  Limits limits_;
  std::vector<Curvature> curvatures_;  // by matrix of the samples
};

}  // namespace skillet::quantize
