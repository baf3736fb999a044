// The weights of one layer rounded to fewer scales, such that what rounding one weight does to the outputs is taken
// back by those after it (GPTQ: Frantar et al. 2022, arXiv 2210.17323), as far as calibration data shows how inputs go
// together. Called by quantize.cpp. Must not know: graphs, chips.
#pragma once

#include <cstddef>
#include <memory>

#include "graph/passes/lower/weight_scales.h"
#include "graph/quantize/samples.h"

namespace skillet::quantize {

// How far outputs before rounding and clamping are from those with the layer's own weights, in steps of the output,
// where these are not clamped.
struct Fit {
  double squares = 0, worst = 0;
  size_t values = 0, beyond = 0;  // by more than 1
  double rms() const;
  double share_beyond() const { return values == 0 ? 0 : static_cast<double>(beyond) / static_cast<double>(values); }
};
Fit fit_of(const passes::WeightedLayer& before, const passes::WeightedLayer& after, const Samples& samples,
           Limits limits);

// Rounded to one scale for each of `scales` groups of channels; biases follow.
passes::WeightedLayer round_plainly(const passes::WeightedLayer& layer, const Samples& samples, size_t scales);

// What error feedback needs is computed once, whatever number of scales is asked for.
class Rounding {
 public:
  // All are borrowed.
  Rounding(const passes::WeightedLayer& layer, const Samples& samples, Limits limits);
  ~Rounding();
  Rounding(const Rounding&) = delete;
  Rounding& operator=(const Rounding&) = delete;

  // No channel is further off than with round_plainly() on these samples.
  passes::WeightedLayer round(size_t scales) const;

 private:
  struct Curvature;
  const passes::WeightedLayer& layer_;
  const Samples& samples_;
  Limits limits_;
  std::vector<Curvature> curvatures_;  // by matrix of the samples
};

}  // namespace skillet::quantize
