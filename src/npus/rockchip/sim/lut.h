// The DPU's two look-up tables: loading them, and one look-up (hardware specification A.3). Measured there with 16-bit
// floats, whose stages pass integers to the tables; that a byte is passed as an integer in the same way is derived. Not
// known: how the RK3588 rounds between two entries, and its results outside the tables.
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

// Entries loaded by commands. Not part of the register groups: a table belongs to the core.
class Tables {
 public:
  // Handle writes to the registers that load entries, after Registers::write().
  Result<void> select(uint32_t access_cfg);
  Result<void> load(uint32_t access_data);
  // Error: no command of the job has loaded it.
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
  int both = 0;          // the table for values that are in both
  bool halved = false;   // a quirk: returns half of an entry
  bool between = false;  // RK3576: linear between two entries; `beyond` for values outside both tables
  // From the end of the tables on: `value`, plus `slope` for each step, shifted right.
  struct Beyond {
    int32_t value = 0, slope = 0;
    unsigned shift = 0;
  };
  std::array<Beyond, kTables> beyond;
};
// `on`: whether the DPU looks up; if not, the unused registers must be 0.
Result<Lookup> read_lookup(Registers& registers, bool on);
Result<int32_t> look_up(const Lookup& lookup, const Tables& tables, int64_t value);

}  // namespace skillet::sim::rockchip
