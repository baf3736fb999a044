// Simulator of the Vivante NPU family (V7: Amlogic A311D, V8: NXP i.MX 8M Plus): input is a command stream and
// descriptors, output is bytes in memory. Called by sim::create() and the golden tests. Must not know: drivers beyond
// npus/vivante/hw, graphs, programs. Written from the hardware specification.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "npus/vivante/sim/order.h"
#include "npus/vivante/sim/quirks.h"
#include "npus/vivante/sim/requant.h"
#include "sim/sim.h"

namespace skillet::sim::vivante {

// Order of the weights of two filter shapes that no descriptor field distinguishes (specification 6.2.3).
enum class WeightOrder : uint8_t {
  patch,       // 3x2 patches, as for every other filter
  row_wise,    // row after row within a plane
  linear,      // kernel after kernel, each [z][y][x]
  well_formed  // patch, otherwise linear: the order in which all output offsets and stream sizes are right
};

// Order of the weights of 1x1 filters, which is in no field of descriptor or stream either.
enum class PointwiseOrder : uint8_t {
  well_formed,  // six or dense: the one in which all output offsets are right and all streams end at their sizes; where
                // both are, by_relu_bit
  by_relu_bit,  // dense with the relu bit, else six
  six,          // groups of six channels, kernel, channel
  dense,        // channel, kernel
};

// Format of the coefficients of V7 chips with enhanced coefficients (S905D3): not known.
enum class CoefficientAssumption : uint8_t {
  v7,
  v8,
  v8_raw  // V8's, with unchanged weight bytes; V8 subtracts their zero point
};

struct Options {
  TieRule tie_rule = TieRule::half_up;
  PointwiseOrder order_1x1 = PointwiseOrder::well_formed;  // SKILLET_DEBUG=sim prints the result for each job
  CoefficientAssumption enhanced_coefficients = CoefficientAssumption::v7;
  // V7. The recorded driver has special orders for these filters; docs/hw/vivante.md lists the evidence.
  WeightOrder order_5x5_ic1 = WeightOrder::patch;  // 5x5, one input channel, at most 64 px wide
  // Filter as large as the image, one output pixel.
  WeightOrder order_fully_connected = WeightOrder::well_formed;
  // Called with the name of an option above if another value of it would give a job other weights, or none.
  std::function<void(std::string_view assumption)> on_assumption;
  OrderOptions order;
  QuirkSet quirks;
  bool reference_only = false;  // plain loops only; for tests
  // A job above these limits is a fault: hostile descriptors must not keep the simulator busy for hours.
  uint64_t max_macs_per_job = uint64_t{1} << 42;
  uint64_t max_elements_per_job = uint64_t{1} << 30;
};

// Defaults, changed by the environment: SKILLET_SIM_TIE_RULE (half_up, half_even, half_away, half_down), the order of
// 1x1 filters SKILLET_SIM_1X1_ORDER (well_formed, by_relu_bit, six, dense), of two more kinds SKILLET_SIM_5X5_ORDER and
// SKILLET_SIM_FC_ORDER (patch, row_wise, linear, well_formed), the format of enhanced V7 coefficients
// SKILLET_SIM_COEFFICIENTS (v7, v8, v8_raw), the order of jobs SKILLET_SIM_SEED, and rules of rules.def that only warn,
// SKILLET_SIM_WARN (separated by commas).
Result<Options> options_from_environment();

// The error lists all chips. The first form uses options_from_environment(), and names of quirks().
Result<std::unique_ptr<Device>> simulator_of(std::string_view chip, std::span<const std::string_view> quirks);
Result<std::unique_ptr<Device>> create(std::string_view chip, const Options& options);

}  // namespace skillet::sim::vivante
