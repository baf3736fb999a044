#include "expectations.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <sstream>

#include "base/bytes.h"
#include "base/testing/in_tree.h"
#include "base/testing/own_folder.h"

namespace skillet::golden {
namespace {

Result<Expectations> parse(std::string_view text) {
  const std::string path = own_path("expectations.txt");
  EXPECT_TRUE(write_file(path, std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size())).ok());
  auto out = Expectations::read(path, "identical");
  std::filesystem::remove(path);
  return out;
}

constexpr std::string_view kFile =
    "# a fault\n"
    "ops/a    differs   the reason of a\n"
    "\n"
    "many/*   refused   none of them yet\n"
    "many/b   differs   but this one\n";

TEST(Expectations, BothDirectionsCount) {
  const auto e = parse(kFile);
  ASSERT_TRUE(e.ok()) << e.error().message;
  struct Row {
    const char *name, *outcome;
    bool fine;
  };
  for (const Row& row :
       {Row{"ops/a", "differs", true}, Row{"ops/a", "identical", false}, Row{"ops/c", "identical", true},
        Row{"ops/c", "differs", false}, Row{"many/x", "refused", true}, Row{"many/x", "identical", false},
        Row{"many/b", "differs", true}, Row{"many/b", "refused", false}, Row{"other/x", "refused", false}})
    EXPECT_EQ(e->check({{row.name, row.outcome, {}}}).empty(), row.fine) << row.name << " " << row.outcome;
}

TEST(Expectations, AnotherSummaryIsSeenAndUpdated) {
  const auto e =
      parse("ops/a differs [2 bytes, 1f] (3) the reason\nops/b differs (3) without\nmany/* refused [no] why\n");
  ASSERT_TRUE(e.ok()) << e.error().message;
  const Outcome same{"ops/a", "differs", {}, "2 bytes, 1f"}, other{"ops/a", "differs", {}, "2 bytes, 2f"};
  EXPECT_TRUE(e->check({same}).empty());
  EXPECT_EQ(e->check({other}).size(), 1U);
  EXPECT_EQ(e->check({{"ops/b", "differs", {}, "1 byte"}}).size(), 1U) << "a line of one case must have it";
  EXPECT_TRUE(e->check({{"many/x", "refused", {}, "whatever"}}).empty()) << "a line of many cannot";
  const auto updated = parse(e->updated({other, {"ops/b", "differs", {}, "1 byte"}}));
  ASSERT_TRUE(updated.ok());
  EXPECT_TRUE(updated->check({other, {"ops/b", "differs", {}, "1 byte"}}).empty());
  EXPECT_NE(e->updated({other}).find("[2 bytes, 2f] (3) the reason\n"), std::string::npos);
}

TEST(Expectations, AnUpdateKeepsWhatHoldsAndThenHolds) {
  const auto e = parse(kFile);
  ASSERT_TRUE(e.ok());
  const std::vector<Outcome> now{{"ops/a", "refused", {}},
                                 {"ops/new", "differs", {"word 3", "word 4"}},
                                 {"many/b", "identical", {}},
                                 {"many/x", "refused", {}}};
  const std::string text = e->updated(now);
  EXPECT_NE(text.find("# a fault\n"), std::string::npos) << text;
  EXPECT_NE(text.find("the reason of a"), std::string::npos) << text;
  EXPECT_NE(text.find("word 3"), std::string::npos) << text;
  EXPECT_NE(text.find("many/*   refused   none of them yet\n"), std::string::npos) << text;
  const auto again = parse(text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->updated(now), text);
}

// A difference from recorded jobs is a known fault of the recorded driver: its reason names a row of the hardware
// specification's list, "(9)", or the section that describes it, "(10.2)".
TEST(Expectations, EveryDifferenceNamesItsRow) {
  const std::regex row(R"((\[[^\]]*\] )?\((1?\d|2\d|\d+\.\d+(\.\d+)?)\).*)");
  int lines = 0;
  for (const char* chip : {"a311d", "imx8mp", "s905d3"}) {
    const auto bytes = read_file(skillet::in_tree(fmt::format("tests/expectations/golden-{}.txt", chip)));
    ASSERT_TRUE(bytes.ok());
    std::istringstream file(std::string(bytes->begin(), bytes->end()));
    for (std::string line, name, outcome, reason; std::getline(file, line);) {
      std::istringstream words(line);
      if (!(words >> name >> outcome >> std::ws) || name[0] == '#' || !std::getline(words, reason)) continue;
      if (outcome == "no_job") continue;
      ++lines;
      EXPECT_TRUE(std::regex_match(reason, row)) << chip << ": " << line;
    }
  }
  EXPECT_GT(lines, 100);
}

TEST(Expectations, ALineWithoutReasonIsRefused) {
  for (const char* text : {"ops/a differs\n", "ops/a\n", "ops/a differs x\nops/a differs y\n"})
    EXPECT_FALSE(parse(text).ok()) << text;
}

}  // namespace
}  // namespace skillet::golden
