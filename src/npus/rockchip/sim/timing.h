// The part that both timing models of this family share: the units of a chip, from its parameters.
// Called by timing.cpp (tasks of the open programs), timing_layers.cpp (layers) and the tests.
// Must not know: registers.
#pragma once

#include "npus/rockchip/hw/timing.h"
#include "sim/timing.h"

namespace skillet::sim::rockchip {

using namespace skillet::rockchip::timing;  // NOLINT: the cost model, which drivers share

Rates rates_of(const TimingParameters& parameters);
Cost price(const Rates& rates, const Work& work, std::string what);
// The layers of a network, or of a table, as the vendor's compiler maps them.
Result<std::vector<Cost>> price_layers(const TimingParameters& parameters, std::span<const Layer> layers,
                                       Fusion fusion);

}  // namespace skillet::sim::rockchip
