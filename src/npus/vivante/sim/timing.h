// The part that both timing models of this family share: the units of a chip, from its parameters.
// Called by timing.cpp (jobs of the open programs), timing_layers.cpp (layers) and the tests.
// Must not know: descriptors.
#pragma once

#include "npus/vivante/hw/vivante.h"
#include "npus/vivante/sim/timing_formulas.h"
#include "sim/timing.h"

namespace skillet::sim::vivante {

// Work of one job or layer, before its conversion to time.
struct Work {
  double nn_cycles = 0;
  double moved_bytes = 0;  // by the TP cores, read and written
  double read_bytes = 0, written_bytes = 0, on_chip_bytes = 0;
};

Multipliers multipliers_of(const ::skillet::vivante::hw::ChipRow& chip, const TimingParameters& parameters);
// Share of the cycles that remain if `density` of the weights are not zero.
double zero_factor(const TimingParameters& parameters, double density);
Cost price(const TimingParameters& parameters, const Work& work, std::string what);
// The layers of a network, or of a table, as the vendor's compiler maps them.
Result<std::vector<Cost>> price_layers(const ::skillet::vivante::hw::ChipRow& chip, const TimingParameters& parameters,
                                       std::span<const Layer> layers, Fusion fusion);

}  // namespace skillet::sim::vivante
