#include "npus/vivante/sim/tp.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "npus/vivante/sim/field_check.h"
#include "npus/vivante/sim/job_quirks.h"

namespace skillet::sim::vivante {
namespace {

namespace hw = ::skillet::vivante::hw;
using Table = std::array<uint32_t, kPwlEntriesUsed>;
static_assert(kPwlEntriesUsed == hw::kPwlEntries);

constexpr uint32_t kEntryBits = 21;

Result<hw::TpInstruction> read_instruction(uint64_t address, const Memory& memory) {
  SK_TRY_ASSIGN(const auto words, descriptor_words(memory, address, hw::kTpInstructionWords, "tp_instruction"));
  const auto typed = bits::unpack<hw::TpInstruction>(words);
  SK_TRY(check_fields(bits::descriptor_of<hw::TpInstruction>(), typed.raw));
  return typed.fields;
}

Result<void> check_walk(const hw::TpInstruction& d) {
  const std::pair<const char*, uint32_t> sizes[] = {
      {"tp_instruction.in_tile_x_size", d.in_tile_x_size},
      {"tp_instruction.in_tile_y_size", d.in_tile_y_size},
      {"tp_instruction.in_tile_x_inc", d.in_tile_x_inc},
      {"tp_instruction.in_tile_y_inc", d.in_tile_y_inc},
  };
  for (const auto& [name, size] : sizes) {
    if (size == 0) return field_error(name, 0, "must be at least 1");
  }
  if (d.in_window_x_end < d.in_window_x_start)
    return field_error("tp_instruction.in_window_x_end", d.in_window_x_end, "before in_window_x_start {}",
                       d.in_window_x_start);
  if (d.in_window_y_end < d.in_window_y_start)
    return field_error("tp_instruction.in_window_y_end", d.in_window_y_end, "before in_window_y_start {}",
                       d.in_window_y_start);
  if (d.in_z_size + d.in_window_z_start_overfetch + d.in_window_z_end_overfetch == 0)
    return field_error("tp_instruction.in_z_size", 0, "no plane to read");
  return {};
}

// The job that uses the table must load it; a table left over from an earlier job is not modelled.
Result<void> check_table_fields(const hw::TpInstruction& d) {
  const std::pair<const char*, bool> flags[] = {
      {"tp_instruction.load_pwl_lut", d.load_pwl_lut},
      {"tp_instruction.load_pwl_lut_global_mem", d.load_pwl_lut_global_mem},
      {"tp_instruction.pwl_sign_support", d.pwl_sign_support},
  };
  for (const auto& [name, set] : flags) {
    if (set != d.pwl_enable) return field_error(name, set, "must equal pwl_enable");
  }
  if (!d.pwl_enable && d.pwl_lut_address.offset != 0)
    return field_error("tp_instruction.pwl_lut_address", static_cast<int64_t>(d.pwl_lut_address.offset),
                       "set without pwl_enable");
  return {};
}

Result<Table> read_table(const hw::TpInstruction& d, const Memory& memory) {
  Table table{};
  SK_TRY_ASSIGN(const std::span<uint8_t> bytes,
                memory.at(d.pwl_lut_address.offset, sizeof table, "tp_instruction.pwl_lut_address"));
  std::memcpy(table.data(), bytes.data(), sizeof table);
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i] >> kEntryBits != 0)
      return error(ErrorCode::device, "tp_instruction.pwl_lut_address: entry {} = 0x{:08x} has more than {} bits", i,
                   table[i], kEntryBits);
  }
  return table;
}

Result<void> fill_values(const hw::TpInstruction& d, const Options& options, const Memory& memory, TpJob& job) {
  TpArithmetic arithmetic{.in_zero_point = static_cast<int>(d.in_zp),
                          .out_zero_point = static_cast<int>(d.out_zp),
                          .multiplier = d.output_post_multiplier,
                          .shift = d.output_postshift,
                          .rule = options.tie_rule};
  Table table{};
  if (d.pwl_enable) {
    SK_TRY_ASSIGN(table, read_table(d, memory));
    change_table(options.quirks, table);
    arithmetic.table = &table;
  }
  for (int byte = 0; byte < 256; ++byte)
    job.value[static_cast<size_t>(byte)] = arithmetic.apply(byte - arithmetic.in_zero_point);
  job.border = arithmetic.apply(0);
  return {};
}

}  // namespace

Result<Accesses> TpUnit::run(uint64_t descriptor_address, const Memory& memory) {
  SK_TRY_ASSIGN(const hw::TpInstruction d, read_instruction(descriptor_address, memory));
  SK_TRY(check_walk(d));
  SK_TRY(check_table_fields(d));
  SK_TRY(check_ends(options_.quirks, d));
  TpJob job = walk_of(d);
  change(options_.quirks, d, job);
  if (const uint64_t elements = job.elements(); elements > options_.max_elements_per_job)
    return error(ErrorCode::device, "{} elements in one job: the simulator's limit is {}", elements,
                 options_.max_elements_per_job);
  SK_TRY(fill_values(d, options_, memory, job));
  std::span<const uint8_t> in;
  if (const int64_t extent = job.in_extent(); extent > 0)
    SK_TRY_INTO(in,
                memory.at(d.in_base_address.offset, static_cast<uint64_t>(extent), "tp_instruction.in_base_address"));
  SK_TRY_ASSIGN(const std::span<uint8_t> out,
                memory.from(d.out_base_address.offset, "tp_instruction.out_base_address"));
  SK_TRY(memory.check_written(d.out_base_address.offset, "tp_instruction.out_base_address"));
  // `out` extends to the end of its buffer, so input later in the same buffer also counts as overlap, which only costs
  // time.
  const bool overlap = !in.empty() && in.data() < out.data() + out.size() && out.data() < in.data() + in.size();
  const auto rearrange = options_.reference_only || overlap ? rearrange_plain : rearrange_fast;
  SK_TRY_ASSIGN(const uint64_t extent, rearrange(job, in, out));
  return Accesses{.read = {d.in_base_address.offset, in.size(), "tp_instruction.in_base_address"},
                  .written = {d.out_base_address.offset, extent, "tp_instruction.out_base_address"},
                  .flushes = !d.no_flush,
                  .is_a_part = d.no_flush};
}

}  // namespace skillet::sim::vivante
