// Limits of the rules of operations, as rows: a graph with one text that is replaced by what is just refused, and by
// what is just taken. Called by the tests of the rules. Must not know: single rules.
#pragma once

#include <gtest/gtest.h>

#include "ir/graph.h"

namespace skillet::ir {

// In `graph` the first `find` becomes `refused`, with `reason`, or `taken`.
struct RuleRow {
  const char *graph, *find, *refused, *taken, *reason;
};

inline Result<void> inferred(const RuleRow& row, std::string_view by) {
  std::string text = row.graph;
  const size_t at = text.find(row.find);
  EXPECT_NE(at, std::string::npos) << row.find << " in\n" << text;
  if (at == std::string::npos) return {};
  text.replace(at, std::string_view(row.find).size(), by);
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.error().message << " in\n" << text;
  if (!graph.ok()) return {};
  return infer_shapes(*graph);
}

inline void check(std::initializer_list<RuleRow> rows) {
  for (const RuleRow& row : rows) {
    SCOPED_TRACE(fmt::format("{}'{}' for '{}'", row.graph, row.refused, row.find));
    const auto taken = inferred(row, row.taken), refused = inferred(row, row.refused);
    EXPECT_TRUE(taken.ok()) << taken.error().message;
    EXPECT_FALSE(refused.ok());
    if (!refused.ok()) {
      EXPECT_NE(refused.error().message.find(row.reason), std::string::npos) << refused.error().message;
    }
  }
}

}  // namespace skillet::ir
