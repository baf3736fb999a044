// Limits of the rules of operations, as rows: a graph in which one text is replaced by a refused value, then by an
// accepted one. Called by the tests of the rules. Must not know: single rules.
#pragma once

#include <gtest/gtest.h>

#include <utility>

#include "graph/ir/graph.h"

namespace skillet::ir {

// In `graph` the first `find` becomes `refused`, with `reason`, or `taken`.
struct RuleRow {
  const char *graph, *find, *refused, *taken, *reason;
};

inline Graph parsed(const RuleRow& row, std::string_view by) {
  std::string text = row.graph;
  const size_t at = text.find(row.find);
  EXPECT_NE(at, std::string::npos) << row.find << " in\n" << text;
  if (at == std::string::npos) return {};
  text.replace(at, std::string_view(row.find).size(), by);
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.error().message << " in\n" << text;
  return graph.ok() ? std::move(*graph) : Graph();
}

inline Result<void> inferred(const RuleRow& row, std::string_view by) {
  Graph graph = parsed(row, by);
  return infer_shapes(graph);
}

// Checks the accepted graph with each constant known only at run time: shapes are as declared, or as with the constant.
// Then checks it without each operand: it is refused or has a meaning.
inline void check_unknown(const RuleRow& row) {
  const Graph declared = parsed(row, row.taken);
  Graph known = declared;
  if (!infer_shapes(known).ok()) return;
  for (size_t t = 0; t < declared.tensors.size(); ++t) {
    if (!declared.tensors[t].is_constant()) continue;
    Graph graph = declared;
    graph.tensors[t].data = {};
    graph.inputs.push_back(static_cast<TensorId>(t));
    if (!infer_shapes(graph).ok()) continue;
    for (const Op& op : graph.ops) {
      for (const TensorId out : op.outputs) {
        const Shape& shape = graph.tensor(out).shape;
        EXPECT_TRUE(shape == declared.tensor(out).shape || shape == known.tensor(out).shape)
            << "tensor " << t << " unknown: " << describe_tensor(graph, out);
      }
    }
  }
  for (size_t o = 0; o < declared.ops.size(); ++o) {
    for (TensorId& input : known.ops[o].inputs) {
      const TensorId there = std::exchange(input, kNoTensor);
      const auto result = infer_shapes(known);
      EXPECT_TRUE(result.ok() || !result.error().message.empty());
      input = there;
    }
  }
}

inline void check(std::initializer_list<RuleRow> rows) {
  for (const RuleRow& row : rows) {
    SCOPED_TRACE(fmt::format("{}'{}' for '{}'", row.graph, row.refused, row.find));
    const auto taken = inferred(row, row.taken), refused = inferred(row, row.refused);
    EXPECT_TRUE(taken.ok()) << taken.error().message;
    EXPECT_FALSE(refused.ok());
    check_unknown(row);
    if (!refused.ok()) {
      EXPECT_NE(refused.error().message.find(row.reason), std::string::npos) << refused.error().message;
    }
  }
}

}  // namespace skillet::ir
