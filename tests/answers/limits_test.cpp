// The sizes, strides, pads, scales and zero points up to which the shape rules and the chips accept an operation. Each
// number is varied over its whole range, and the values at which an answer changes are hashed. So a limit that moves by
// one is noticed. See graphs_test.cpp.
#include <functional>

#include "answers/lines.h"
#include "answers/number_texts.h"
#include "base/log.h"
#include "graph/ir/graph.h"
#include "npu/driver.h"

namespace skillet::answers {
namespace {

constexpr const char* kFile = "tests/expectations/answers.txt";
constexpr int64_t kFarthest = int64_t{1} << 20;  // values of a number
constexpr size_t kChangesMax = 12;               // that a line lists

// A text without its numbers: the kind of answer.
std::string without_numbers(std::string text) {
  std::erase_if(text, [](char c) { return (c >= '0' && c <= '9') || c == '-' || c == '.'; });
  return text;
}

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

// The values at which an answer changes, by who answers.
class Range {
 public:
  Range(const std::string& text, Numbers numbers, std::string name)
      : text_(text), numbers_(std::move(numbers)), name_(std::move(name)) {
    const int64_t usual = std::stoll(numbers_[name_]);
    for (const int64_t value : {usual - 1, usual, usual + 1}) at(value);
    for (const int64_t value : {-32769, -32768, -129, -128, -2, -1}) at(value);
    int64_t before = -1;
    for (int64_t power = 1; power <= kFarthest; power *= 2) {
      for (const int64_t value : {power - 1, power, power + 1, power + power / 2}) {
        if (value <= before || !at(value)) continue;
        if (before >= 0) between(before, value);
        before = value;
      }
    }
  }
  std::string of(size_t who) const {
    std::string out, last;
    size_t count = 0;
    Hash rest;
    for (const auto& [value, answers] : known_) {
      if (answers[who] == last) continue;
      last = answers[who];
      const std::string one = fmt::format(" {} {}", value, last.empty() ? "-" : last);
      ++count <= kChangesMax ? void(out += one) : rest.add(one);
    }
    return out + (count > kChangesMax ? fmt::format(" and {}", rest.text()) : "");
  }

 private:
  bool at(int64_t value) {
    if (known_.contains(value)) return true;
    numbers_[name_] = std::to_string(value);
    if (is_too_large(numbers_)) return false;
    known_[value] = answers_to(sized(text_, numbers_));
    return true;
  }
  void between(int64_t low, int64_t high) {
    if (high - low < 2 || known_[low] == known_[high]) return;
    const int64_t middle = low + (high - low) / 2;
    if (!at(middle)) return;
    between(low, middle);
    between(middle, high);
  }

  std::string text_;
  Numbers numbers_;
  std::string name_;
  std::map<int64_t, std::vector<std::string>> known_;
};

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
        const Range range(text, numbers, name);
        std::map<std::string, std::string> who;  // by what is said
        for (size_t i = 0; i <= std::size(kChips); ++i)
          who[range.of(i)] += fmt::format(" {}", i == 0 ? "rules" : kChips[i - 1]);
        for (const auto& [said, names] : who)
          now[fmt::format("limits {} {}{}", op, name, names)] = said.empty() ? "-" : said.substr(1);
      }
    }
  }
  expect_lines(kFile, "limits ", now);
}

}  // namespace
}  // namespace skillet::answers
