// Checks that each open question of a specification has rows in the tables of assumptions, or a reason why it needs
// none.
// Called by tests of families; rows come from QUESTION and NO_ROW of an assumptions.def. Must not know: any family.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <string_view>

#include "npu/support.h"

namespace skillet::npu {

struct OpenQuestion {
  int number;
  std::string_view text;  // name of a row, or why there is none
  bool has_row;
};

// Checks `count` questions. `section`: "12." if rows name question 3 as 12.3; empty: rows name no questions.
inline void check_open_questions(std::span<const OpenQuestion> questions, std::span<const Assumption> rows, int count,
                                 std::string_view section = "") {
  std::set<int> with_row, without;
  for (const OpenQuestion& one : questions) {
    (one.has_row ? with_row : without).insert(one.number);
    EXPECT_FALSE(one.text.empty()) << one.number;
    if (!one.has_row) continue;
    const auto row = std::ranges::find(rows, one.text, &Assumption::name);
    ASSERT_NE(row, rows.end()) << one.text;
    EXPECT_TRUE(section.empty() ||
                fmt::format("{},", row->sections).find(fmt::format("{}{},", section, one.number)) != std::string::npos)
        << one.text << " does not name question " << one.number;
  }
  for (int number = 1; number <= count; ++number)
    EXPECT_NE(with_row.contains(number), without.contains(number)) << "question " << number;
}

}  // namespace skillet::npu
