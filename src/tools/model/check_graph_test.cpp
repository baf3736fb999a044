// Text in the boxes of the page's graph.
#include "tools/model/check_graph.h"

#include <gtest/gtest.h>

namespace skillet::tools {
namespace {

// A box has 33 columns, two of them for "0 ".
TEST(CheckGraph, TextUsesAllColumnsOfABox) {
  const auto svg = [](const std::string& kind) {
    ChipsReport report;
    report.ops = {{.kind = kind, .output = "out", .macs = 0, .from = {}}};
    return graph_svg(report);
  };
  const std::string full(31, 'K');
  EXPECT_NE(svg(full).find(">0 " + full + "</text>"), std::string::npos) << svg(full);
  EXPECT_NE(svg(full + "K").find("\u2026"), std::string::npos);
}

}  // namespace
}  // namespace skillet::tools
