// What the two ways to time this family share: the units of a chip, as its parameters have them.
// Called by timing.cpp (tasks of the open programs), timing_layers.cpp (layers) and the tests.
// Must not know: registers.
#pragma once

#include "npus/rockchip/sim/timing_formulas.h"
#include "sim/timing.h"

namespace skillet::sim::rockchip {

// Work of one task or layer, before it becomes time.
struct Work {
  double conv_cycles = 0;     // by conv_cycles()
  double table_elements = 0;  // through the look-up table
  double pooled_bytes = 0, transposed_bytes = 0;
  double read_bytes = 0, written_bytes = 0;
  double loaded_bytes = 0;  // of what is read, features of convolutions, which wait for room in the CBUF
};

Lanes lanes_of(const TimingParameters& parameters);
Cost price(const TimingParameters& parameters, const Work& work, std::string what);
// The layers of a network, or of a table, as the vendor's compiler maps them.
Result<std::vector<Cost>> price_layers(const TimingParameters& parameters, std::span<const Layer> layers,
                                       Fusion fusion);

}  // namespace skillet::sim::rockchip
