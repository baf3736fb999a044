#include "expectations.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/bytes.h"

namespace skillet::golden {
namespace {

Result<Expectations> parse(std::string_view text) {
  const std::string path = testing::TempDir() + "expectations.txt";
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

TEST(Expectations, ALineWithoutReasonIsRefused) {
  for (const char* text : {"ops/a differs\n", "ops/a\n", "ops/a differs x\nops/a differs y\n"})
    EXPECT_FALSE(parse(text).ok()) << text;
}

}  // namespace
}  // namespace skillet::golden
