// DpuJob: the DPU and DPU_RDMA registers of a task as plain stages, after all checks; and running them.
// Called by dpu.cpp (reads the registers), core.cpp and the tests.
// Must not know: commands, how sums are computed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "npus/rockchip/sim/arithmetic.h"
#include "npus/rockchip/sim/conv_job.h"
#include "npus/rockchip/sim/dma.h"
#include "npus/rockchip/sim/lut.h"
#include "npus/rockchip/sim/options.h"

namespace skillet::sim::rockchip {

// BS or BN: (v + operand) * operand >> shift, then ReLU. Bypassed steps are left out.
struct Stage {
  bool alu = false, subtract = false, alu_from_memory = false;
  int32_t alu_operand = 0;
  bool multiply = false, prelu = false, multiplier_from_memory = false;
  int32_t multiplier = 0;
  unsigned shift = 0, shift_negative = 0;
  bool relu = false;
  std::optional<int32_t> clamp;  // upper end, with relu
  // Quirks: the limit applies before the multiplication; products have 32 bits.
  std::optional<int32_t> clamp_first;
  bool narrow_products = false;
  Tie tie = Tie::even;  // of products
};

enum class EwOp : uint8_t { none, add, minus, max, min, multiply };
struct ElementWise {
  EwOp op = EwOp::none;
  // Converter of the second operand.
  bool convert = false, add_first = false;
  int32_t offset = 0, scale = 1;
  unsigned shift = 0;
  Tie tie = Tie::even;
  bool relu = false;
  std::optional<int32_t> clamp;
  unsigned bits = 32;           // of the result
  bool unsigned_order = false;  // a quirk: max and min compare unsigned bytes
};

// The value of the second operand that EW uses.
int64_t convert_operand(const ElementWise& ew, int8_t byte);

// A cube that a reader of DPU_RDMA fetches: surface after surface of dense rows, then `notch` atoms are skipped.
struct OperandCube {
  int64_t address = 0, notch_atoms = 0;
};

struct DpuJob {
  bool from_memory = false;  // main operand: MRDMA, else the CORE
  bool depthwise = false;
  int64_t width = 0, height = 0, lanes = 0, true_lanes = 0;
  // Correction by the window's sum.
  bool correct = false, correction_from_memory = false;
  int32_t correction = 0;
  Stage bs, bn;
  ElementWise ew;
  Lookup lookup;  // after ew
  // Operands per channel: 0 none, 1 dense int32, 7 groups of 8: int32 A[8], int16 B[8], int16 C[8].
  uint32_t channel_operands = 0;
  int64_t channel_address = 0;
  int64_t operand_group = 8;                                           // channels in a group
  int64_t operand_bytes = 64, correction_at = 32, multiplier_at = 48;  // bytes of a group, and offsets within it
  int64_t shift_address = 0;  // address of the word with bs.shift and bs.shift_negative; 0: none
  // Address of 64 bytes with the stage's alu_operand, multiplier and shifts; 0: none.
  int64_t bs_tensor = 0, bn_tensor = 0;
  // Lanes with operands; then a multiplier of 0 spoils its group. 0: all lanes have operands, and it does not.
  int64_t multiplied_lanes = 0;
  // Second operand of EW (and the main one if from_memory). `shared`: MRDMA reads the even surfaces, ERDMA the odd
  // ones.
  OperandCube main, second;
  bool shared = false;
  // Output converter.
  int32_t out_scale = 1, out_offset = 0;
  unsigned out_shift = 0;
  Tie out_tie = Tie::even;
  // Output.
  int64_t address = 0, surface_bytes = 0, group_bytes = 0, surfaces_per_group = 1, notch_pixels = 0;

  int64_t pixels() const { return width * height; }
};

// Per channel: addend, factor of the window's sum, multiplier.
struct ChannelOperands {
  std::vector<int32_t> a, b, c;
};

// The outputs of all stages, [pixels][lanes], computed fast; none if the job uses rarer stages.
// `second`: the cube of EW's second operand.
std::optional<std::vector<uint8_t>> run_stages_fast(const DpuJob& job, const ConvJob& conv, const ConvSums& sums,
                                                    const ChannelOperands& channels, std::span<const uint8_t> second,
                                                    const Options& options);

// Runs the stages on the CORE's sums (null: from_memory) and writes the output, which must not overlap `read`, the
// bytes that the task reads elsewhere.
Result<void> run_dpu(const DpuJob& job, const ConvJob* conv, const ConvSums* sums, const Tables& tables,
                     const Options& options, const Dma& dma, const Extent& read);

}  // namespace skillet::sim::rockchip
