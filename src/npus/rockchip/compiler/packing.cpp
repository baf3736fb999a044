#include "npus/rockchip/compiler/packing.h"

#include "npus/rockchip/compiler/rk3576.h"

namespace skillet::npus::rockchip {
namespace {

constexpr Packing kRk3576{.geometry = rk3576::geometry,
                          .split = rk3576::split,
                          .write_commands = rk3576::write_commands,
                          .write_pool = rk3576::write_pool,
                          .pack_weights = rk3576::pack_weights,
                          .weights_offset = rk3576::weights_offset,
                          .pack_operands = rk3576::pack_operands,
                          .operands_offset = rk3576::operands_offset,
                          .set_scales = rk3576::set_scales,
                          .ends_of_parts = rk3576::ends_of_parts,
                          .set_fine_scale = rk3576::set_fine_scale,
                          .write_table = rk3576::write_table,
                          .surface_pitch = rk3576::in_fours,
                          .takes = rk3576::takes,
                          .assumptions = rk3576::assumptions,
                          .assumptions_of = rk3576::assumptions_of,
                          .refuses = rk3576::refuses,
                          .shifts_offset = rk3576::shifts_offset};

}  // namespace

const Packing* packing_of(const hw::ChipRow& chip) { return chip.has(hw::kRegisters3576) ? &kRk3576 : nullptr; }

// A chip with a packing has recorded programs of its vendor. The recorded rows about another driver's faults do not
// apply to them, except how kernels are stored and that operations share nothing.
Result<Tuning> tuning_for(const hw::ChipRow& chip, const npu::CompileOptions& options) {
  const Packing* const packing = packing_of(chip);
  npu::CompileOptions taken = options;
  const bool recorded = options.tuning == npu::Tuning::recorded;
  if (chip.has(hw::kVendorRecorded) && recorded) taken.tuning = npu::Tuning::proven;
  SK_TRY_ASSIGN(Tuning tuning, tuning_of(taken));
  tuning.traits = chip.flags;
  if (packing == nullptr) {
    const bool tries = options.takes_unproven() && !recorded;
    tuning.packed_pixels = (tuning.packed_pixels || tries) && options.may_have("packed_pixels");
    tuning.fused_additions = (tuning.fused_additions || tries) && options.may_have("fused_additions");
    return tuning;
  }
  tuning.packing = packing;
  if (recorded)
    tuning.whole_groups = tuning.shared_memory = tuning.joined_jobs = tuning.summed_averages = tuning.own_slopes =
        tuning.saturated_limits = tuning.parts_by_scale = false;
  return tuning;
}

}  // namespace skillet::npus::rockchip
