// Where passes stop: the values of a size, or of two sizes, at which a pass does something else. See limits_test.cpp.
#include <regex>

#include "answers/changes.h"
#include "answers/known_graphs.h"
#include "answers/many_sizes.h"
#include "answers/number_texts.h"
#include "answers/ranges.h"
#include "base/log.h"
#include "graph/passes/testing/letters.h"
#include "graph/passes/testing/plain_drivers.h"
#include "graph/passes/testing/texts.h"

namespace skillet::answers {
namespace {

constexpr const char* kFile = "tests/expectations/answers.txt";
constexpr int64_t kFarthest = int64_t{1} << 26;
constexpr double kElemsOfPairs = (1 << 23) + (1 << 16);  // of a graph

// What each pass does with the graph, without numbers; for an invalid graph why it is none.
std::optional<std::vector<std::string>> answers_of(std::span<const passes::Pass> asked, const std::string& text) {
  if (elems_of(text) > kElemsOfPairs) return std::nullopt;
  std::vector<std::string> out(asked.size());
  auto graph = ir::parse(text);
  if (!graph.ok()) return out[0] = without_numbers(graph.error().message), out;
  const auto shaped = ir::infer_shapes(*graph);
  const auto fine = shaped.ok() ? ir::verify(*graph) : shaped;
  if (!fine.ok()) return out[0] = without_numbers(fine.error().message), out;
  for (size_t i = 0; i < asked.size(); ++i) {
    ir::Graph after = *graph;
    const auto rewrites = passes::rewrite(after, asked[i]);
    if (!rewrites.ok()) out[i] = without_numbers(rewrites.error().message);
    if (!rewrites.ok()) continue;
    for (const passes::Rewrite& one : *rewrites) out[i] += without_numbers(one.text);
  }
  return out;
}

// Weights and biases have as many values as their shape says.
std::string with_any_constants(const std::string& text) {
  static const std::regex kBytes(R"((u?int8 \S+ [^\n]*const=)\[[^\]]*\])"),
      kBiases(R"((int32 \S+ scale=[^\n]*const=)\[[^\]]*\])");
  return std::regex_replace(std::regex_replace(text, kBytes, "$1zeros"), kBiases, "$1zeros");
}

TEST(Answers, OfPassesAtTheirLimits) {
  const log::ScopedLevel quiet(log::Level::error);
  std::map<std::string, Hash> hashes;
  for (const passes::Row& row : passes::kRows) {
    const TextChanges text(with_any_constants("graph \"g\"\n" + std::string(row.before)), kWords);
    const passes::Pass* const pass = passes::exact_pass(row.pass);
    ASSERT_NE(pass, nullptr) << row.pass;
    for (const std::string& one : text.with_blanks()) {
      const auto ask = [&](int64_t value) {
        return answers_of(std::span(pass, 1), fmt::format(fmt::runtime(one), value));
      };
      hashes[row.pass].add(Ranges(ask, {}, kFarthest).of(0));
    }
  }
  expect_hashes(kFile, "limits_of_pass ", hashes);
}

// Two numbers of a pass's text at once: limits of products and sums, and conditions of two sizes.
TEST(Answers, OfPassesAtTheirLimitsOfTwoNumbers) {
  constexpr int64_t kFirst[] = {1, 2, 5, 8, 17}, kFarthestSecond = int64_t{1} << 16;
  const log::ScopedLevel quiet(log::Level::error);
  std::map<std::string, Hash> hashes;
  for (const passes::Row& row : passes::kRows) {
    const TextChanges text(with_any_constants("graph \"g\"\n" + std::string(row.before)), kWords);
    const passes::Pass* const pass = passes::exact_pass(row.pass);
    ASSERT_NE(pass, nullptr) << row.pass;
    text.each_value(kFirst, [&](const std::string& changed) {
      for (const std::string& one : TextChanges(changed, kWords).with_blanks()) {
        const auto ask = [&](int64_t value) {
          return answers_of(std::span(pass, 1), fmt::format(fmt::runtime(one), value));
        };
        hashes[row.pass].add(Ranges(ask, {}, kFarthestSecond, false).of(0));
      }
    });
  }
  expect_hashes(kFile, "limits_of_pass_two ", hashes);
}

// Two sizes at once, as in limits_test.cpp.
TEST(Answers, OfPassesAtTheirLimitsOfPairs) {
  const log::ScopedLevel quiet(log::Level::error);
  const auto asked = passes::exact_passes();
  std::map<std::string, Hash> hashes;
  for (const std::string text : kNumberTexts) {
    for (const std::string& form : forms_of(numbers_of(text))) {
      Numbers numbers = numbers_of(text);
      if (!form.empty()) numbers["op"] = form;
      for_each_pair(numbers, [&](const Numbers& changed, const std::string& second) {
        const auto ask = [&](int64_t value) -> std::optional<std::vector<std::string>> {
          Numbers both = changed;
          both[second] = std::to_string(value);
          if (is_too_large(both)) return std::nullopt;
          return answers_of(asked, sized(text, both));
        };
        const Ranges range(ask, {}, kFarthest, false);
        for (size_t i = 0; i < asked.size(); ++i)
          if (const std::string said = range.of(i); !said.empty()) hashes[std::string(asked[i].name)].add(said);
      });
    }
  }
  expect_hashes(kFile, "limits_of_pass_pairs ", hashes);
}

}  // namespace
}  // namespace skillet::answers
