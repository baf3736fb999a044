// Limits of untrusted JSON: the largest accepted value, and one more.
#include "compile/strict_json.h"

#include <gtest/gtest.h>

namespace skillet::compile {
namespace {

std::string list_of_ones(size_t count) {
  std::string text = "[1";
  for (size_t i = 1; i < count; ++i) text += ",1";
  return text + "]";
}
std::string nested(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }
std::string spaces(size_t length) { return "1" + std::string(length - 1, ' '); }
std::string list(size_t count) { return "{\"it\": " + list_of_ones(count) + "}"; }
std::string name(size_t length) { return "{\"it\": \"" + std::string(length, 'n') + "\"}"; }
std::string number(size_t value) { return "{\"it\": " + std::to_string(value) + "}"; }
std::string below_zero(size_t value) { return "{\"it\": -" + std::to_string(value) + "}"; }

Result<void> read(const std::string& text) {
  SK_TRY(parse_strictly(text));
  return {};
}
template <auto Read>
Result<void> field(const std::string& text) {
  SK_TRY_ASSIGN(const nlohmann::json json, parse_strictly(text));
  SK_TRY(Read(json, "here", "it"));
  return {};
}

TEST(StrictJson, ReadsUpToItsLimits) {
  const struct {
    Result<void> (*reader)(const std::string&);
    std::string (*text)(size_t);
    size_t most;
    const char* refused;
  } kRows[] = {
      {read, nested, 6, "too deep"},
      {read, spaces, size_t{1} << 24, "is too long"},
      {read, list_of_ones, size_t{1} << 19, "too many values"},  // each one behind a [ or a comma
      {field<list_of>, list, 1 << 16, "here.it is too long"},
      {field<text_of>, name, 4096, "here.it is too long"},
      {field<number_of>, number, INT32_MAX, "does not fit 32 bits"},
      {field<number_of>, below_zero, size_t{INT32_MAX} + 1, "does not fit 32 bits"},
  };
  for (const auto& row : kRows) {
    const auto taken = row.reader(row.text(row.most)), refused = row.reader(row.text(row.most + 1));
    EXPECT_TRUE(taken.ok()) << row.refused << ": " << taken.error().message;
    ASSERT_FALSE(refused.ok()) << row.refused;
    EXPECT_NE(refused.error().message.find(row.refused), std::string::npos) << refused.error().message;
  }
}

}  // namespace
}  // namespace skillet::compile
