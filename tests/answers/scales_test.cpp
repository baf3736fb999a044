// The scales at which passes and chips change their answer: each scale of a graph is made larger and smaller, in steps
// of 0.07 %. See limits_test.cpp, which varies sizes.
#include <cmath>

#include "answers/known_graphs.h"
#include "answers/lines.h"
#include "answers/number_texts.h"
#include "answers/ranges.h"
#include "base/log.h"
#include "graph/passes/passes.h"
#include "graph/passes/testing/letters.h"
#include "graph/passes/testing/plain_drivers.h"
#include "graph/passes/testing/texts.h"
#include "npu/driver.h"

namespace skillet::answers {
namespace {

constexpr const char* kFile = "tests/expectations/answers.txt";
constexpr const char* kChips[] = {"a311d", "imx8mp", "rk3588", "rk3576", "imx93"};
constexpr double kSteps = 1024;                  // of a factor of 2
constexpr int64_t kFarthest = int64_t{1} << 14;  // steps
constexpr std::string_view kScale = "scale=";

// A graph's text, and where its scales are. Scales with the same digits are one, or each is one.
class ScaledText {
 public:
  explicit ScaledText(std::string text) : text_(std::move(text)) {
    std::map<std::string, std::vector<size_t>> by_digits;
    for (size_t at = 0; (at = text_.find(kScale, at)) != std::string::npos;) {
      at += kScale.size();
      if (text_[at] == '[') ++at;
      by_digits[digits_at(at)].push_back(at);
    }
    for (const auto& [digits, places] : by_digits) {
      groups_.push_back(places);
      for (const size_t one : places)
        if (places.size() > 1) groups_.push_back({one});
    }
  }

  size_t groups() const { return groups_.size(); }
  std::string with(size_t group, double factor) const {
    std::string out = text_;
    const std::vector<size_t>& places = groups_[group];
    for (size_t i = places.size(); i-- > 0;) {  // from the last one, so that places before it stay where they are
      const std::string digits = digits_at(places[i]);
      out.replace(places[i], digits.size(), fmt::format("{:.9g}", std::stod(digits) * factor));
    }
    return out;
  }

 private:
  std::string digits_at(size_t at) const {
    return text_.substr(at, text_.find_first_not_of("0123456789.e-+", at) - at);
  }
  std::string text_;
  std::vector<std::vector<size_t>> groups_;
};

using Answers = std::vector<std::string>;  // of the pass or passes, then of each chip

Answers answers_of(std::span<const passes::Pass> asked, const std::string& text) {
  static const std::vector<npu::Chip> chips = [] {
    std::vector<npu::Chip> all;
    for (const char* name : kChips) all.push_back(npu::find_chip(name).value());
    return all;
  }();
  Answers out(1 + chips.size());
  const auto graph = ir::parse(text);
  const auto fine = graph.ok() ? ir::verify(*graph) : Result<void>(graph.error());
  if (!fine.ok()) return out[0] = without_numbers(fine.error().message), out;
  for (const passes::Pass& pass : asked) {
    ir::Graph after = *graph;
    const auto rewrites = passes::rewrite(after, pass);
    if (!rewrites.ok()) out[0] += without_numbers(rewrites.error().message);
    for (size_t i = 0; rewrites.ok() && i < rewrites->size(); ++i) out[0] += without_numbers((*rewrites)[i].text);
  }
  for (size_t i = 0; i < chips.size(); ++i) {
    const npu::Driver& driver = *npu::driver_of(chips[i]).value();
    for (size_t op = 0; op < graph->ops.size(); ++op) {
      const npu::Support one = driver.supports(chips[i], *graph, static_cast<ir::OpId>(op));
      out[1 + i] += fmt::format("{}{}{} ", one.ok, one.unproven, without_numbers(one.reason));
    }
  }
  return out;
}

void ask(std::span<const passes::Pass> asked, const std::string& text, Hash& of_passes, Hash& of_chips) {
  const ScaledText scales(text);
  for (size_t group = 0; group < scales.groups(); ++group) {
    for (const double sign : {1.0, -1.0}) {
      const Ranges range(
          [&](int64_t steps) {
            const double factor = std::exp2(sign * static_cast<double>(steps) / kSteps);
            return std::optional(answers_of(asked, scales.with(group, factor)));
          },
          {}, kFarthest, false);
      of_passes.add(range.of(0));
      for (size_t i = 0; i < std::size(kChips); ++i) of_chips.add(range.of(1 + i));
    }
  }
}

TEST(Answers, OfPassesAtTheLimitsOfTheirScales) {
  const log::ScopedLevel quiet(log::Level::error);
  std::map<std::string, Hash> of_passes, of_chips;
  for (const passes::Row& row : passes::kRows) {
    const passes::Pass* const pass = passes::exact_pass(row.pass);
    ASSERT_NE(pass, nullptr) << row.pass;
    ask(std::span(pass, 1), "graph \"g\"\n" + std::string(row.before), of_passes[row.pass], of_chips[row.pass]);
  }
  expect_hashes(kFile, "scales_of_pass ", of_passes);
  expect_hashes(kFile, "scales_of_texts ", of_chips);
}

// Of graphs of one operation: recorded models of each kind, and those of number_texts.h.
TEST(Answers, OfNumbersAtTheLimitsOfTheirScales) {
  const log::ScopedLevel quiet(log::Level::error);
  std::map<std::string, Hash> of_passes, of_chips;
  const auto take = [&](const std::string& name, const std::string& text) {
    ask(passes::exact_passes(), text, of_passes["all"], of_chips[name]);
  };
  for (const auto& [name, texts] : known_graphs())
    for (size_t i = 0; i < texts.size(); i += 3) take(name, texts[i]);
  for (const std::string text : kNumberTexts) {
    Numbers numbers = numbers_of(text);
    for (const std::string& form : forms_of(numbers)) {
      if (!form.empty()) numbers["op"] = form;
      const std::string one = sized(text, numbers);
      const auto graph = ir::parse(one);
      ASSERT_TRUE(graph.ok()) << graph.error().message << one;
      take(std::string(ir::op_name(graph->ops[0])), one);
    }
  }
  expect_hashes(kFile, "scales_by_pass ", of_passes);
  expect_hashes(kFile, "scales_of ", of_chips);
}

}  // namespace
}  // namespace skillet::answers
