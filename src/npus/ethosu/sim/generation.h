// What registers say of an output and of operands, where Ethos-U85 says it in others than U55 and U65 (hardware
// specification, section 3 and appendix E).
// Called by the operations of npus/ethosu/sim.
// Must not know: what is computed.
#pragma once

#include "npus/ethosu/sim/feature_map.h"

namespace skillet::sim::ethosu {

enum class HardwareFunction : uint8_t { none, tanh, sigmoid };

// How sums become results.
struct OutputRules {
  hw::Rounding rounding{};
  bool is_global = false;  // one scale, not one for each channel
  bool is_clamped = true;  // results that no table is read by
  HardwareFunction function{};
  bool has_table = false;
  bool is_index = false;  // not of sums, but where the largest value is
  uint32_t table = 0;
  hw::ClipRange index_type{};  // of the table
};
// Error: a field holds what is not known, or not modelled.
Result<OutputRules> output_rules(const Context& context, const FeatureMap& output);

// What an operand is before a function of two takes it.
struct OperandRule {
  bool is_scaled = false;  // else times `factor`
  int64_t factor = 1;
  Scale scale;
  hw::Rounding rounding{};
  uint32_t bits = 0;  // that it stands to the left

  int64_t of(int64_t value) const {
    return is_scaled ? rescale(value, scale, rounding, bits) : limited(__int128{value} * factor);
  }
};
struct Operand {
  FeatureMap map;
  bool is_constant = false;
  int64_t constant = 0;  // its zero point taken off
  OperandRule rule;
};
struct Operands {
  Operand first, second;  // of a function of one operand only the rule of the second counts
  bool is_swapped = false;
};
bool is_unary(hw::ElementwiseMode mode);
Result<Operands> operands_of(const Context& context, hw::ElementwiseMode mode, const FeatureMap& output);

}  // namespace skillet::sim::ethosu
