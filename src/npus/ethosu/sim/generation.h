// Rules of outputs and operands from registers, where Ethos-U85 has other registers than U55 and U65 (hardware
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
  bool is_clamped = true;  // false for 32-bit results without a table
  HardwareFunction function{};
  bool has_table = false;
  bool is_index = false;  // the result is the index of the largest value
  uint32_t table = 0;
  hw::ClipRange index_type{};  // of the table
};
// Error: a field has a value that is unknown or not modelled.
Result<OutputRules> output_rules(const Context& context, const FeatureMap& output);

// Conversion of an operand of a function of two operands.
struct OperandRule {
  bool is_scaled = false;  // false: multiplied by `factor`
  int64_t factor = 1;
  Scale scale;
  hw::Rounding rounding{};
  uint32_t bits = 0;  // left shift

  int64_t of(int64_t value) const {
    return is_scaled ? rescale(value, scale, rounding, bits) : limited(__int128{value} * factor);
  }
};
struct Operand {
  FeatureMap map;
  bool is_constant = false;
  int64_t constant = 0;  // minus its zero point
  OperandRule rule;
};
struct Operands {
  Operand first, second;  // for unary functions only the rule of `second` is used
  bool is_swapped = false;
};
bool is_unary(hw::ElementwiseMode mode);
Result<Operands> operands_of(const Context& context, hw::ElementwiseMode mode, const FeatureMap& output);

}  // namespace skillet::sim::ethosu
