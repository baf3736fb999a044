// What the shape rules, the chips and the CPU kernels say of graphs of one operation in many sizes: a number is
// replaced wherever it stands, so shapes stay consistent. See graphs_test.cpp.
#include <algorithm>

#include "answers/changes.h"
#include "answers/known_graphs.h"
#include "answers/lines.h"
#include "answers/many_sizes.h"
#include "base/log.h"
#include "graph/ref/ref.h"
#include "npu/driver.h"

namespace skillet::answers {
namespace {

constexpr const char* kFile = "tests/expectations/answers.txt";
constexpr int64_t kElemsOfKernels = 1 << 18;  // of a tensor, with inferred shapes
constexpr const char* kChips[] = {"a311d",         "imx8mp",        "rk3588",       "rk3576",
                                  "ethos-u55-128", "ethos-u65-256", "ethos-u85-256"};

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
  const std::vector<int64_t> all = many_sizes(1 << 16);
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
