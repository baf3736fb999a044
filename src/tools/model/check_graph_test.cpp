// Tests the text in the boxes of the page's graph.
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

// Shows both ends of text that is too long.
TEST(CheckGraph, TextIsCutInOnePlace) {
  const std::string name = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (size_t length = 34; length < name.size(); ++length) {
    ChipsReport report;
    report.ops = {{.kind = name.substr(0, length), .output = "out", .macs = 0, .from = {}}};
    const std::string whole = "0 " + report.ops[0].kind, svg = graph_svg(report), begin = "<text class=\"kind\"";
    const size_t at = svg.find('>', svg.find(begin)) + 1, cut = svg.find("\u2026", at), end = svg.find("</text>", at);
    ASSERT_LT(cut, end) << svg;
    EXPECT_TRUE(whole.starts_with(svg.substr(at, cut - at))) << svg.substr(at, end - at);
    EXPECT_TRUE(whole.ends_with(svg.substr(cut + 3, end - cut - 3))) << svg.substr(at, end - at);
  }
}

}  // namespace
}  // namespace skillet::tools
