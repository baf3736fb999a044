// What the shape rules, the chips and the CPU kernels say of graphs of one operation in many sizes: a number is
// replaced wherever it stands, so shapes stay consistent. See graphs_test.cpp.
#include <algorithm>

#include "answers/changes.h"
#include "answers/known_graphs.h"
#include "answers/lines.h"
#include "base/log.h"
#include "graph/ref/ref.h"
#include "npu/driver.h"

namespace skillet::answers {
namespace {

constexpr const char* kFile = "tests/expectations/answers.txt";
constexpr int64_t kElemsOfSizes = 1 << 17;    // of a graph
constexpr int64_t kElemsOfKernels = 1 << 18;  // of a tensor, with inferred shapes
constexpr const char* kChips[] = {"a311d",         "imx8mp",        "rk3588",       "rk3576",
                                  "ethos-u55-128", "ethos-u65-256", "ethos-u85-256"};

// Small values, and those around powers of two.
std::vector<int64_t> values() {
  std::vector<int64_t> out;
  for (int64_t value = 1; value <= 18; ++value) out.push_back(value);
  for (int64_t power = 32; power <= 65536; power *= 2)
    for (int64_t value = power - 1; value <= power + 2; ++value) out.push_back(value);
  return out;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
// Elements of all tensors of a graph's text, before its constants are made.
double elems_of(std::string_view text) {
  double all = 0;
  for (size_t at = 0; (at = text.find("\ntensor ", at)) != std::string_view::npos; ++at) {
    const size_t shape = text.find(' ', text.find("\" ", at) + 2) + 1;
    double elems = 1, dim = 0;
    for (size_t i = shape; i < text.size() && (text[i] == 'x' || is_digit(text[i])); ++i) {
      dim = is_digit(text[i]) ? dim * 10 + (text[i] - '0') : 0;
      if (i + 1 == text.size() || !is_digit(text[i + 1])) elems *= is_digit(text[i]) ? dim : 1;
    }
    all += elems;
  }
  return all;
}

class Line {
 public:
  void ask(const std::string& text) {
    auto graph = ir::parse(text);
    if (!graph.ok()) return;
    const auto shaped = ir::infer_shapes(*graph);
    const auto fine = shaped.ok() ? ir::verify(*graph) : shaped;
    rules_.add(fine.ok() ? "fine" : fine.error().message);
    if (!fine.ok()) return;
    for (const char* name : kChips) {
      const npu::Chip& chip = chip_of(name);
      const npu::Support one = npu::driver_of(chip).value()->supports(chip, *graph, 0);
      chips_.add(fmt::format("{} {} {}", one.ok, one.unproven, one.reason));
    }
    const auto is_small = [](const ir::Tensor& one) { return one.shape.elems() <= kElemsOfKernels; };
    if (!std::ranges::all_of(graph->tensors, is_small)) return;
    const auto made = ref::Interpreter::create(*graph);
    kernels_.add(made.ok() ? "fine" : made.error().message);
  }
  std::string text() const {
    return fmt::format("{} rules {} chips {} kernels {}", rules_.count(), rules_.text(), chips_.text(),
                       kernels_.text());
  }

 private:
  static const npu::Chip& chip_of(const std::string& name) {
    static std::map<std::string, npu::Chip> known;
    if (!known.contains(name)) known.emplace(name, npu::find_chip(name).value());
    return known.at(name);
  }
  Hash rules_, chips_, kernels_;
};

TEST(Answers, OfManySizes) {
  const log::ScopedLevel quiet(log::Level::error);
  const std::vector<int64_t> all = values();
  Lines now;
  for (const auto& [name, texts] : known_graphs()) {
    Line line;
    for (const std::string& text : texts)
      TextChanges(text, kWords).each_value(all, [&](const std::string& one) {
        if (elems_of(one) <= kElemsOfSizes) line.ask(one);
      });
    now["sizes " + name] = line.text();
  }
  expect_lines(kFile, "sizes ", now);
}

}  // namespace
}  // namespace skillet::answers
