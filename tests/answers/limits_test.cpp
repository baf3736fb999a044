// The sizes, strides, pads, scales and zero points up to which the shape rules and the chips accept an operation. Each
// number is varied over its whole range, and the values at which an answer changes are hashed. So a limit that moves by
// one is noticed. See graphs_test.cpp.
#include "answers/lines.h"
#include "answers/number_texts.h"
#include "answers/ranges.h"
#include "base/log.h"
#include "graph/ir/graph.h"
#include "npu/driver.h"

namespace skillet::answers {
namespace {

constexpr const char* kFile = "tests/expectations/answers.txt";
constexpr int64_t kFarthest = int64_t{1} << 20;  // values of a number
constexpr const char* kChips[] = {"a311d",         "imx8mp",        "rk3588",       "rk3576",
                                  "ethos-u55-128", "ethos-u65-256", "ethos-u85-256"};
// The answers of the rules and all chips to a graph's first operation, as hashes; for an invalid graph the rules'
// alone.
std::vector<std::string> answers_to(const std::string& text) {
  std::vector<std::string> out(std::size(kChips) + 1);
  const auto say = [](Hash hash, const std::string& said) {
    hash.add(without_numbers(said));
    return hash.text();
  };
  auto graph = ir::parse(text);
  if (!graph.ok()) return out[0] = say({}, graph.error().message), out;
  const auto shaped = ir::infer_shapes(*graph);
  const auto fine = shaped.ok() ? ir::verify(*graph) : shaped;
  if (!fine.ok()) return out[0] = say({}, fine.error().message), out;
  out[0] = "yes";
  for (size_t i = 0; i < std::size(kChips); ++i) {
    static const std::array<npu::Chip, std::size(kChips)> chips = [] {
      std::array<npu::Chip, std::size(kChips)> all;
      for (size_t one = 0; one < all.size(); ++one) all[one] = npu::find_chip(kChips[one]).value();
      return all;
    }();
    const npu::Support one = npu::driver_of(chips[i]).value()->supports(chips[i], *graph, 0);
    out[i + 1] = one.ok && !one.unproven ? "yes" : (one.ok ? "yes:" : "no:") + say({}, one.reason);
  }
  return out;
}

// The answers to a text with another value of one of its numbers.
Ranges::Ask asks(const std::string& text, const Numbers& numbers, const std::string& name) {
  return [=](int64_t value) -> std::optional<std::vector<std::string>> {
    Numbers changed = numbers;
    changed[name] = std::to_string(value);
    if (is_too_large(changed)) return std::nullopt;
    return answers_to(sized(text, changed));
  };
}

// By what is said: who says it.
std::map<std::string, std::string> said_by(const Ranges& range) {
  std::map<std::string, std::string> who;
  for (size_t i = 0; i <= std::size(kChips); ++i)
    who[range.of(i)] += fmt::format(" {}", i == 0 ? "rules" : kChips[i - 1]);
  return who;
}

TEST(Answers, OfNumbersAtTheirLimits) {
  const log::ScopedLevel quiet(log::Level::error);
  Lines now;
  std::map<std::string, size_t> times;  // that an operation is among the texts
  for (const std::string text : kNumberTexts) {
    Numbers numbers = numbers_of(text);
    for (const std::string& form : forms_of(numbers)) {
      if (!form.empty()) numbers["op"] = form;
      const auto graph = ir::parse(sized(text, numbers));
      ASSERT_TRUE(graph.ok()) << graph.error().message << text;
      std::string op(ir::op_name(graph->ops[0]));
      if (const size_t before = times[op]++; before != 0) op += fmt::format(" {}", before + 1);
      for (const auto& [name, value] : numbers) {
        if (name == "op" || name == "bytes") continue;
        const int64_t usual = std::stoll(numbers.at(name));
        const Ranges range(asks(text, numbers, name), {usual - 1, usual, usual + 1, -32769, -32768, -129, -128, -2, -1},
                           kFarthest);
        for (const auto& [said, names] : said_by(range))
          now[fmt::format("limits {} {}{}", op, name, names)] = said.empty() ? "-" : said.substr(1);
      }
    }
  }
  expect_lines(kFile, "limits ", now);
}

// Two sizes at once: limits of products and sums.
TEST(Answers, OfPairsOfNumbersAtTheirLimits) {
  const log::ScopedLevel quiet(log::Level::error);
  std::map<std::string, Hash> hashes;
  for (size_t i = 0; i < std::size(kNumberTexts); ++i) {
    const std::string text = kNumberTexts[i];
    for (const std::string& form : forms_of(numbers_of(text))) {
      Numbers numbers = numbers_of(text);
      if (!form.empty()) numbers["op"] = form;
      Hash& all = hashes[fmt::format("{} {}", i, form)];
      for_each_pair(numbers, [&](const Numbers& changed, const std::string& second) {
        const Ranges range(asks(text, changed, second), {}, kFarthest, false);
        for (const auto& [said, names] : said_by(range)) all.add(fmt::format("{}:{}", names, said));
      });
    }
  }
  expect_hashes(kFile, "limits_of_pairs ", hashes);
}

}  // namespace
}  // namespace skillet::answers
