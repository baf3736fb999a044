// Programs for graphs with two or three things changed: reports, bytes, decoded text, and what the simulated chips
// compute. Each number of limits_test.cpp's texts is varied as well, and random graphs are compiled. See
// graphs_test.cpp.
#include <regex>
#include <set>

#include "answers/draws.h"
#include "answers/forms.h"
#include "answers/known_graphs.h"
#include "answers/lines.h"
#include "answers/number_texts.h"
#include "answers/scene.h"
#include "base/bytes.h"
#include "base/log.h"
#include "compile/compile.h"
#include "compile/report.h"
#include "conformance/random_graph.h"
#include "graph/passes/testing/patterns.h"
#include "graph/passes/testing/texts.h"
#include "npu/driver.h"
#include "runtime/record_program.h"
#include "runtime/trial.h"

namespace skillet::answers {
namespace {

constexpr const char* kFile = "tests/expectations/answers_programs.txt";
constexpr const char* kChips[] = {"a311d",  "imx8mp",       "s905d3", "rk3588",
                                  "rk3576", "ethos-u55-64", "imx93",  "ethos-u85-256"};

constexpr size_t kProven = 1, kTuned = 2;  // numbers of graphs: see Emitted::add()

class Emitted {
 public:
  explicit Emitted(std::string_view name)
      : chip_(npu::find_chip(name).value()), driver_(*npu::driver_of(chip_).value()) {}

  void add(const ir::Graph& graph, size_t number, npu::Unproven unproven = npu::Unproven::take) {
    compile::Options options{.driver = {.unproven = unproven}};
    options.driver.tuning = number % 2 == 0 ? npu::Tuning::tuned : npu::Tuning::proven;
    options.driver.keep_intermediates = number % 3 == 0;
    options.rewrite = number % 5 != 0;
    if (number % 7 == 0) options.cores = 3, options.runs = compile::Runs::longest;
    auto compiled = compile::compile(graph, {&driver_, chip_}, options);
    reports_.add(compiled.ok() ? compile::print(*compiled) : compiled.error().message);
    if (!compiled.ok()) return;
    for (compile::Part& part : compiled->parts) {
      for (const compile::PartProgram& one : compile::programs(part)) {
        const auto bytes = npu::serialise(*one.program, false);
        programs_.add(bytes.ok() ? std::span<const uint8_t>(*bytes) : std::span<const uint8_t>());
      }
      if (part.program && is_small(part.partition.graph)) run(*part.program, part.partition.graph);
    }
  }
  std::string text() const {
    return fmt::format("{} reports {} programs {} {} decoded {} simulated {}", reports_.count(), reports_.text(),
                       programs_.count(), programs_.text(), decoded_.text(), simulated_.text());
  }

 private:
  void run(const npu::Program& program, const ir::Graph& graph) {
    auto sent = runtime::record_programs(chip_.name, {{program, &graph, runtime::trial_inputs(graph, 0)}});
    ASSERT_TRUE(sent.ok()) << sent.error().message;
    Scene scene(chip_.name);
    for (const capture::Submission& one : sent->capture.submissions) {
      const auto decoded = driver_.decode(chip_, one);
      decoded_.add(decoded.ok() ? decoded->text : decoded.error().message);
      scene.run(one, simulated_);
    }
  }

  const npu::Chip chip_;
  const npu::Driver& driver_;
  Hash reports_, programs_, decoded_, simulated_;
};

std::map<std::string, std::vector<std::string>> all_texts() {
  auto out = known_graphs();
  for (const passes::Row& row : passes::kRows)
    out[fmt::format("for {}", row.pass)].push_back(fmt::format("graph \"g\"\n{}", row.before));
  return out;
}

// Graphs of tests/answers/graphs_at_limits.txt, by the source file whose limits they are at.
std::map<std::string, std::vector<std::string>> graphs_at_limits() {
  const Bytes file = read_file(in_tree("tests/answers/graphs_at_limits.txt")).value();
  std::map<std::string, std::vector<std::string>> out;
  constexpr std::string_view kMark = "\n## ";
  const std::string_view all(reinterpret_cast<const char*>(file.data()), file.size());
  for (size_t at = all.find(kMark); at < all.size();) {
    at += kMark.size();
    const size_t end = all.find('\n', at), next = std::min(all.find(kMark, end), all.size());
    out[std::string(all.substr(at, end - at))].emplace_back(all.substr(end, next - end));
    at = next;
  }
  return out;
}

class ProgramsOfChips : public ::testing::TestWithParam<const char*> {};

TEST_P(ProgramsOfChips, WithTwoThingsChanged) {
  const log::ScopedLevel quiet(log::Level::error);
  constexpr size_t kDraws = 150;
  const std::string own = fmt::format("programs2 {} ", GetParam());
  Lines now;
  uint64_t seed = 0;
  for (const auto& [name, texts] : all_texts()) {
    Emitted emitted(GetParam());
    size_t number = 0;
    for (const std::string& text : texts) {
      TextDraws draws(text, kWords, ++seed);
      for (size_t i = 0; i < kDraws; ++i) {
        auto graph = ir::parse(draws.next());
        if (!graph.ok() || (!ir::verify(*graph).ok() && !ir::infer_shapes(*graph).ok())) continue;
        if (ir::verify(*graph).ok() && is_small(*graph)) emitted.add(*graph, ++number);
      }
    }
    now[own + name] = emitted.text();
  }
  expect_lines(kFile, own, now);
}
TEST_P(ProgramsOfChips, OfFormsOfGraphs) {
  const log::ScopedLevel quiet(log::Level::error);
  const std::string own = fmt::format("programs_forms {} ", GetParam());
  Lines now;
  for (const auto& [name, texts] : all_texts()) {
    Emitted emitted(GetParam());
    size_t number = 0;
    for (const std::string& text : texts)
      each_form(ir::parse(text).value(), [&](const ir::Graph& one) {
        if (ir::verify(one).ok() && is_small(one)) emitted.add(one, ++number);
      });
    now[own + name] = emitted.text();
  }
  expect_lines(kFile, own, now);
}
// Small values, and those next to powers of two.
std::vector<int64_t> values_of_numbers() {
  std::vector<int64_t> out;
  for (int64_t value = 0; value <= 17; ++value) out.push_back(value);
  for (int64_t power = 32; power <= 1024; power *= 2)
    for (const int64_t value : {power - 1, power, power + 1, power + power / 2}) out.push_back(value);
  return out;
}
// Each number of the texts with each of the values.
Lines programs_of_numbers(const std::string& own, std::string_view chip, std::span<const int64_t> values) {
  Lines now;
  for (size_t i = 0; i < std::size(kNumberTexts); ++i) {
    const std::string text = kNumberTexts[i];
    for (const std::string& form : forms_of(numbers_of(text))) {
      Emitted emitted(chip);
      size_t number = 0;
      for (const auto& [name, usual] : numbers_of(text)) {
        if (name == "op" || name == "bytes") continue;
        for (const int64_t value : values) {
          Numbers numbers = numbers_of(text);
          if (!form.empty()) numbers["op"] = form;
          numbers[name] = std::to_string(value);
          if (is_too_large(numbers)) continue;
          auto graph = ir::parse(sized(text, numbers));
          if (graph.ok() && ir::infer_shapes(*graph).ok() && ir::verify(*graph).ok()) emitted.add(*graph, ++number);
        }
      }
      now[fmt::format("{}{} {}", own, i, form)] = emitted.text();
    }
  }
  return now;
}
TEST_P(ProgramsOfChips, WithEachNumberVaried) {
  const log::ScopedLevel quiet(log::Level::error);
  const std::string own = fmt::format("programs_numbers {} ", GetParam());
  expect_lines(kFile, own, programs_of_numbers(own, GetParam(), values_of_numbers()));
}
// Where chips cut operations into jobs.
TEST_P(ProgramsOfChips, WithEachNumberLarge) {
  const log::ScopedLevel quiet(log::Level::error);
  constexpr std::array<int64_t, 14> kValues = {2047, 2048, 2049, 3071,  4095,  4096,  4097,
                                               8191, 8192, 8193, 16383, 16385, 65535, 65536};
  const std::string own = fmt::format("programs_large {} ", GetParam());
  expect_lines(kFile, own, programs_of_numbers(own, GetParam(), kValues));
}
// Large sizes, too: see the head of the file of graphs.
TEST_P(ProgramsOfChips, AtLimits) {
  const log::ScopedLevel quiet(log::Level::error);
  const std::string own = fmt::format("programs_limits {} ", GetParam());
  Lines now;
  for (const auto& [place, texts] : graphs_at_limits()) {
    Emitted emitted(GetParam());
    for (const std::string& text : texts) {
      const std::string drawn = std::regex_replace(text, std::regex(R"((int8 [^\n]*const=)zeros)"), "$1random:1");
      for (const std::string& one : std::set{text, drawn}) {
        auto graph = ir::parse(one);
        ASSERT_TRUE(graph.ok()) << one << graph.error().message;
        ASSERT_TRUE(ir::verify(*graph).ok() || ir::infer_shapes(*graph).ok()) << one;
        emitted.add(*graph, kProven);
        emitted.add(*graph, kTuned);
        emitted.add(*graph, kProven, npu::Unproven::refuse);
      }
    }
    now[own + place] = emitted.text();
  }
  expect_lines(kFile, own, now);
}
// Several operations: what chips join, and which data stays on the chip between them.
TEST_P(ProgramsOfChips, OfRandomGraphs) {
  const log::ScopedLevel quiet(log::Level::error);
  constexpr uint32_t kSeedsOfLine = 25, kLines = 24;
  const std::string own = fmt::format("programs_random {} ", GetParam());
  Lines now;
  for (uint32_t line = 0; line < kLines; ++line) {
    Emitted emitted(GetParam());
    for (uint32_t seed = kSeedsOfLine * line; seed < kSeedsOfLine * (line + 1); ++seed) {
      emitted.add(GraphMaker(seed + 1000).make(), seed);
      emitted.add(passes::Patterns(seed + 1000).make(), seed);
    }
    now[fmt::format("{}{:02}", own, line)] = emitted.text();
  }
  expect_lines(kFile, own, now);
}
INSTANTIATE_TEST_SUITE_P(Each, ProgramsOfChips, ::testing::ValuesIn(kChips), [](const auto& one) {
  std::string name = one.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace skillet::answers
