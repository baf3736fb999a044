// The functions of an encoder that differ for a chip with other registers than the RK3588's. The functions of tile.h,
// registers.h and weights.h call this table first (Tuning::packing).
// Called by tile.cpp, registers.cpp, weights.cpp, conv.cpp, support.cpp.
// Must not know: graphs.
#pragma once

#include "npus/rockchip/compiler/registers.h"
#include "npus/rockchip/compiler/tile.h"
#include "npus/rockchip/compiler/weights.h"

namespace skillet::npus::rockchip {

struct PoolPlaces {
  bits::Address input, output;
};

struct Packing {
  Geometry (*geometry)(const Conv&, const Tuning&);
  Result<Split> (*split)(const hw::ChipRow&, const Conv&, const Geometry&, const Tuning&);
  Result<Commands> (*write_commands)(const Conv&, const Geometry&, const Task&, const TaskPlaces&, const Tuning&,
                                     const NextTask*, bool chained);
  Result<Commands> (*write_pool)(const Pool&, const PoolPlaces&);
  void (*pack_weights)(const Conv&, const Geometry&, const Tuning&, Bytes&);
  uint64_t (*weights_offset)(const Conv&, const Geometry&, const Task&);
  void (*pack_operands)(const Conv&, const Geometry&, const Tuning&, Bytes&);
  uint64_t (*operands_offset)(const Conv&, const Task&);
  // Sets scales, shifts and limits; needs conv.out_offset. `first_units`, as recorded: the limit is in units of the
  // first kernel's products.
  Result<void> (*set_scales)(std::span<const float> products, float out_scale, std::optional<double> limit,
                             bool first_units, Conv&);
  // Ends of the channel ranges that can share a program's shift; needs conv.out_offset and conv.clamp.on.
  std::vector<int32_t> (*ends_of_parts)(std::span<const float> products, float out_scale, const Conv&);
  // Sets one scale for all sums of a convolution, in steps of the output, rounded once. The limit is a real value.
  Result<void> (*set_fine_scale)(double gain, std::optional<double> limit, double out_scale, Conv&);
  // Loads the table of a convolution: a task of its own before the tasks that look up.
  Result<Commands> (*write_table)(const Conv&, const TaskPlaces&);
  // Pixels from one surface of a tensor to the next.
  int64_t (*surface_pitch)(int64_t pixels);
  // Whether the chip takes an operation, given `otherwise`, the answer for the RK3588.
  npu::Support (*takes)(const ir::Graph&, ir::OpId, const npu::Support& otherwise);
  // The chip's own table of assumptions, and those that an operation that it takes stands on.
  std::span<const npu::Assumption> (*assumptions)();
  std::vector<const npu::Assumption*> (*assumptions_of)(const hw::ChipRow&, const ir::Graph&, ir::OpId);
  // Why the convolution does not fit the registers; empty: it fits.
  std::string (*refuses)(const Conv&);
  uint64_t (*shifts_offset)(const Conv&, const Geometry&);  // of the shift word after the operands
};
// Null: the RK3588's packing.
const Packing* packing_of(const hw::ChipRow& chip);

}  // namespace skillet::npus::rockchip
