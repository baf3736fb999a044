// What every replayed operation must satisfy.
// Called by the tests of this folder.
// Must not know: the list of cases.
#pragma once

#include <gtest/gtest.h>

#include "known_faults.h"
#include "replay.h"

namespace skillet::rockchip_replay {

inline bool is_good(const Row& row) { return row.result == ReplayClass::exact || row.result == ReplayClass::within_1; }

// Checks that an operation is right unless a known fault applies; after a lost clamp, unclamped elements must be right.
inline void check_operations(const CaseRows& rows) {
  for (const Row& row : rows.each) {
    if (row.reason.empty()) {
      EXPECT_TRUE(is_good(row)) << row.name << ": at most by " << row.max_difference;
    }
    if (row.reason == kLostClamp) {
      EXPECT_LE(row.max_unclamped_difference, 1) << row.name;
    }
  }
}

}  // namespace skillet::rockchip_replay
