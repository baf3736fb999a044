// The DPU's two look-up tables: loading them, and one look-up (hardware specification A.3). What is measured there is
// the use with 16-bit floats, whose stages hand integers to the tables; that a byte gets there in the same way, as the
// integer it is, is derived. How the RK3588 rounds between two entries and goes on beyond a table is not known.
// Called by core.cpp (commands), dpu.cpp (registers), dpu_run.cpp.
// Must not know: the other stages.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "npus/rockchip/sim/registers.h"

namespace skillet::sim::rockchip {

constexpr int kTables = 2, kTableEntries = 513;

// Entries as commands have loaded them. Not part of the register groups: a table is the core's.
class Tables {
 public:
  // Writes of the registers that load entries, after Registers::write().
  Result<void> select(uint32_t access_cfg);
  Result<void> load(uint32_t access_data);
  // Error: no command of the job loaded it.
  Result<int32_t> entry(int table, int64_t index) const;

 private:
  std::array<std::array<int16_t, kTableEntries>, kTables> entries_{};
  std::array<std::array<bool, kTableEntries>, kTables> loaded_{};
  bool writes_ = false;
  uint32_t table_ = 0, next_ = 0;
};

struct Lookup {
  bool on = false;
  struct Range {
    int64_t start = 0, end = 0;
    unsigned step_log2 = 0;
  };
  std::array<Range, kTables> ranges;
  int both = 0;          // the table for what is in both
  bool halved = false;   // a quirk: half of an entry
  bool between = false;  // RK3576: linear between two entries; beyond both tables `beyond` says
  // From the end of the tables on: `value`, and `slope` more for each step, shifted to the right.
  struct Beyond {
    int32_t value = 0, slope = 0;
    unsigned shift = 0;
  };
  std::array<Beyond, kTables> beyond;
};
// `on`: whether the DPU looks up; registers that do nothing then must be 0.
Result<Lookup> read_lookup(Registers& registers, bool on);
Result<int32_t> look_up(const Lookup& lookup, const Tables& tables, int64_t value);

}  // namespace skillet::sim::rockchip
