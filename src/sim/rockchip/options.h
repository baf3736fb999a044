// Named switches of the simulator: what the hardware specification leaves open (its section 11), with the recommended
// answer as the default, and limits. Called by whoever creates an Npu.
// Must not know: registers.
#pragma once

#include <cstdint>

namespace skillet::sim::rockchip {

// A register that the stream of this task did not write keeps what the task two before left there.
enum class StaleRegisters : uint8_t {
  keep,   // as the chip does
  fault,  // a program must not rely on it: stop and name the register
};

// Domain of pad bytes when packed pixels go through the input converter (question 9).
enum class PackedPad : uint8_t { converted, stored };

// Tie rule of the accumulator's shift (question 2).
enum class TruncateTie : uint8_t { by_register, half_up, floor };

struct Options {
  bool offset_before_rounding = false;  // question 1: output offset added before the shift, as on RV1103
  TruncateTie truncate_tie = TruncateTie::by_register;
  PackedPad packed_pad = PackedPad::converted;
  bool depthwise_stops_at_true_channels = false;  // question 9: no surface beyond orig_channel is written
  bool cpend_plus_one_with_multiplier = false;    // question 13
  bool element_wise_narrows_to_8_bits = false;    // question 18: before the output converter, memory-fed only
  bool accumulator_wraps = false;                 // question 11: to 32 bits towards the DPU, instead of saturating
  // The feature DMA may read up to a bank beyond the end of its cube (seen for planes one pixel wide); true: it does,
  // so that a driver which leaves nothing mapped there is found.
  bool features_over_read = false;
  StaleRegisters stale_registers = StaleRegisters::keep;

  bool reference_only = false;  // plain loops only; for tests
  // A task above these is a fault: hostile registers must not keep the simulator busy for hours.
  uint64_t max_macs_per_task = uint64_t{1} << 40;
  uint64_t max_elements_per_task = uint64_t{1} << 28;
};

}  // namespace skillet::sim::rockchip
