#include "npus/rockchip/sim/lut.h"

#include <algorithm>

#include "npus/rockchip/sim/arithmetic.h"
#include "npus/rockchip/sim/fault.h"

namespace skillet::sim::rockchip {
namespace {

constexpr unsigned kStepMax = 22;    // 513 entries within 32 bits
constexpr uint32_t kBothTables = 2;  // lut_lo_le_mux of the only known program

int32_t go_on(const Lookup::Beyond& beyond, int64_t steps) {
  return saturate32(beyond.value + round_shift(steps * beyond.slope, beyond.shift, Tie::even));
}

}  // namespace

Result<void> Tables::select(uint32_t access_cfg) {
  const auto cfg = bits::read<hw::DpuLutAccessCfg>({&access_cfg, 1});
  writes_ = cfg.lut_access_type == 1;
  table_ = cfg.lut_table_id;
  next_ = cfg.lut_addr;
  if (!writes_ && (table_ != 0 || next_ != 0))
    return not_modelled("dpu.lut_access_cfg <- 0x{:x}: reading a table is not modelled", access_cfg);
  return {};
}

Result<void> Tables::load(uint32_t access_data) {
  const auto entry = static_cast<int32_t>(access_data);  // sign-extended or not
  if (!writes_ && entry == 0) return {};
  if (!writes_) return not_modelled("dpu.lut_access_data <- {}: dpu.lut_access_cfg does not write", entry);
  if (entry < INT16_MIN || entry > UINT16_MAX)
    return not_modelled("dpu.lut_access_data <- 0x{:x}: an entry has 16 bits", access_data);
  if (next_ >= kTableEntries) return not_modelled("dpu.lut_access_data: a table has {} entries", kTableEntries);
  entries_[table_][next_] = static_cast<int16_t>(entry);
  loaded_[table_][next_++] = true;
  return {};
}

Result<int32_t> Tables::entry(int table, int64_t index) const {
  const auto t = static_cast<size_t>(table), i = static_cast<size_t>(index);
  if (!loaded_[t][i])
    return not_modelled("entry {} of look-up table {}: no command of the job loaded it", index, table);
  return entries_[t][i];
}

Result<Lookup> read_lookup(Registers& r, bool on) {
  const auto cfg = r.get<hw::DpuLutCfg>();
  const auto info = r.get<hw::DpuLutInfo>();
  Lookup lookup{.on = on};
  lookup.ranges[0] = {r.get<hw::DpuLutLeStart>().lut_le_start, r.get<hw::DpuLutLeEnd>().lut_le_end,
                      info.lut_le_index_select};
  lookup.ranges[1] = {r.get<hw::DpuLutLoStart>().lut_lo_start, r.get<hw::DpuLutLoEnd>().lut_lo_end,
                      info.lut_lo_index_select};
  lookup.both = static_cast<int>(cfg.lut_hybrid_priority);
  if (r.get<hw::DpuLutAccessCfg>().lut_access_type != 0)
    return not_modelled("dpu.lut_access_cfg.lut_access_type = 1 when the task starts");
  if (!on) {
    const bool used = cfg.lut_lo_le_mux != 0 || cfg.lut_oflow_priority != 0 || cfg.lut_hybrid_priority != 0;
    const auto set = [](const Lookup::Range& range) {
      return range.start != 0 || range.end != 0 || range.step_log2 != 0;
    };
    if (used || set(lookup.ranges[0]) || set(lookup.ranges[1]))
      return not_modelled("dpu.lut_cfg: look-up tables are set up, but dpu.ew_cfg.ew_lut_bypass is set");
    return lookup;
  }
  if (cfg.lut_lo_le_mux != kBothTables || cfg.lut_oflow_priority != 1)
    return not_modelled("dpu.lut_cfg: lut_lo_le_mux {}, lut_oflow_priority {}: only 2 and 1 are known to be used",
                        cfg.lut_lo_le_mux, cfg.lut_oflow_priority);
  for (const Lookup::Range& range : lookup.ranges) {
    if (range.step_log2 > kStepMax || range.end - range.start != int64_t{kTableEntries - 1} << range.step_log2)
      return not_modelled("dpu.lut_info: {} entries of 2^{} do not reach from {} to {}", kTableEntries, range.step_log2,
                          range.start, range.end);
  }
  return lookup;
}

Result<int32_t> look_up(const Lookup& lookup, const Tables& tables, int64_t value) {
  if (lookup.between && value < lookup.ranges[0].start) return go_on(lookup.beyond[0], value - lookup.ranges[0].start);
  if (lookup.between && value >= lookup.ranges[1].end) return go_on(lookup.beyond[1], value - lookup.ranges[1].end);
  const auto in = [&](int table) {
    const Lookup::Range& range = lookup.ranges[static_cast<size_t>(table)];
    return value >= range.start && value <= range.end;
  };
  if (!in(0) && !in(1)) return not_modelled("a look-up of {}: what is beyond both tables is not modelled", value);
  const int table = in(0) && in(1) ? lookup.both : in(0) ? 0 : 1;
  const Lookup::Range& range = lookup.ranges[static_cast<size_t>(table)];
  const int64_t offset = value - range.start, index = offset >> range.step_log2;
  const int64_t rest = offset - (index << range.step_log2);
  if (rest != 0 && !lookup.between)
    return not_modelled("a look-up of {}: how the chip rounds between two entries is not known", value);
  SK_TRY_ASSIGN(const int32_t entry, tables.entry(table, index));
  if (rest != 0) {
    SK_TRY_ASSIGN(const int32_t next, tables.entry(table, index + 1));
    return static_cast<int32_t>(entry + round_shift((int64_t{next} - entry) * rest, range.step_log2, Tie::even));
  }
  return lookup.halved ? entry / 2 : entry;
}

}  // namespace skillet::sim::rockchip
