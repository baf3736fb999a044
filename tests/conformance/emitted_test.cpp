// Shows unintended changes of what the compilers report and emit for random operations and graphs: reports with
// reasons, program bytes, their decoded text, their predicted times, as a hash for each chip and kind of operation.
// Other tests check results. After an intended change, run SKILLET_UPDATE=1 emitted_test to write
// tests/expectations/emitted.txt; git diff then shows what it affected.
#include <gtest/gtest.h>

#include "answers/lines.h"
#include "compile/compile.h"
#include "compile/report.h"
#include "ethosu/random_cases.h"
#include "random_case.h"
#include "random_graph.h"
#include "runtime/cost_model.h"
#include "runtime/record_program.h"

namespace skillet {
namespace {

constexpr uint32_t kCasesOfKind = 34, kGraphs = 110, kCasesOfOperation = 6;
constexpr int64_t kMostDense = 1 << 20;  // weights of a depthwise layer as a dense one, which some chips need: slow

// Hashes over all cases of a kind on a chip.
struct Line {
  Hash answers, recorded, proven, tuned, switched, chosen, bands, decoded, priced;

  std::string text() const {
    return fmt::format("answers {} recorded {} proven {} tuned {} switched {} chosen {} bands {} decoded {} priced {}",
                       answers.text(), recorded.text(), proven.text(), tuned.text(), switched.text(), chosen.text(),
                       bands.text(), decoded.text(), priced.text());
  }
};

class Emitter {
 public:
  explicit Emitter(const std::string& chip)
      : chip_(npu::find_chip(chip).value()), driver_(*npu::driver_of(chip_).value()) {
    if (auto costs = runtime::timing_costs(chip_); costs.ok()) program_costs_ = std::move(costs).value();
    if (auto model = runtime::timing_cost_model(chip_); model.ok()) model_ = std::move(model).value();
  }

  const npu::Chip& chip() const { return chip_; }

  void add(const ir::Graph& graph, Line& line) {
    for (size_t i = 0; i < graph.ops.size(); ++i) {
      const auto id = static_cast<ir::OpId>(i);
      const npu::Support one = driver_.supports(chip_, graph, id);
      line.answers.add(
          fmt::format("{} {} {} {}", one.ok, one.unproven, one.reason, driver_.weight_scales_max(chip_, graph, id)));
    }
    using npu::Tuning;
    compile::Options options;
    options.driver.tuning = Tuning::recorded;
    add(graph, options, line.recorded, &line);
    options.driver = {.tuning = Tuning::proven, .keep_intermediates = true};
    add(graph, options, line.proven, &line);
    options.driver = {.tuning = Tuning::tuned, .unproven = npu::Unproven::take};
    for (const compile::Part& part : add(graph, options, line.tuned, &line)) {
      if (part.program) look_at(part, options.driver, line);
    }
    options.cores = 3;
    options.runs = compile::Runs::longest;
    add(graph, options, line.bands, nullptr);
    options.runs = compile::Runs::that_pay;
    options.cost_model = model_ ? &*model_ : nullptr;
    add(graph, options, line.bands, nullptr);
    add_switched(graph, line);
  }

  // Compiles with the two tunings that differ most.
  void add_few(const ir::Graph& graph, Line& line) {
    compile::Options options;
    options.driver.tuning = npu::Tuning::recorded;
    add(graph, options, line.recorded, &line);
    options.driver = {.tuning = npu::Tuning::tuned, .unproven = npu::Unproven::take};
    add(graph, options, line.tuned, &line);
  }

 private:
  std::vector<compile::Part> add(const ir::Graph& graph, const compile::Options& options, Hash& to, Line* line) {
    auto compiled = compile::compile(graph, {&driver_, chip_}, options);
    if (!compiled.ok()) {
      to.add(compiled.error().message);
      return {};
    }
    (line == nullptr ? to : line->answers).add(compile::print(*compiled));
    to.add(compile::print_offload(*compiled));
    for (compile::Part& part : compiled->parts) {
      to.add(part.note);
      for (const compile::PartProgram& one : compile::programs(part)) {
        const auto bytes = npu::serialise(*one.program, false);
        EXPECT_TRUE(bytes.ok()) << bytes.error().message;
        if (bytes.ok()) to.add(*bytes);
      }
    }
    return std::move(compiled->parts);
  }

  // Compiles with one switch on top of the default tuning: the next one for each graph.
  void add_switched(const ir::Graph& graph, Line& line) {
    const auto switches = driver_.switches();
    if (switches.empty()) return;
    compile::Options options;
    options.driver = {.switches = {std::string(switches[next_switch_++ % switches.size()].name)},
                      .unproven = npu::Unproven::take};
    options.rewrite = next_switch_ % 2 == 0;
    add(graph, options, line.switched, nullptr);
  }

  // Hashes what else the driver reports about a program.
  void look_at(const compile::Part& part, npu::CompileOptions options, Line& line) {
    const npu::Program& program = *part.program;
    const ir::Graph& graph = part.partition.graph;
    const auto choices = driver_.choices(chip_, graph, options);
    ASSERT_TRUE(choices.ok()) << choices.error().message;
    for (const npu::Choice& choice : *choices) {
      options.choices = {choice};
      const auto chosen = driver_.compile(chip_, graph, options);
      line.chosen.add(fmt::format("{} {} {}", choice.op, choice.name, choice.value));
      line.chosen.add(chosen.ok() ? npu::serialise(*chosen, false).value() : to_bytes(chosen.error().message));
    }
    if (const auto costs = driver_.costs(chip_, {})) {
      for (const npu::Cost& one : costs->of_ops(chip_, graph, options, 1))
        line.priced.add(fmt::format("{:.4g} {:.4g}", one.start_us, one.device_us));
    }
    if (program_costs_) {
      const auto costs = program_costs_(program);
      if (!costs.ok()) line.priced.add(costs.error().message);
      for (size_t i = 0; costs.ok() && i < costs->size(); ++i)
        line.priced.add(fmt::format("{:.4g} {:.4g}", (*costs)[i].device_us, (*costs)[i].wall_us()));
    }
    auto sent = runtime::record_programs(chip_.name, {{program, &graph, {}}});
    ASSERT_TRUE(sent.ok()) << sent.error().message;
    for (const capture::Submission& submission : sent->capture.submissions) {
      const auto decoded = driver_.decode(chip_, submission);
      line.decoded.add(decoded.ok() ? decoded->text : decoded.error().message);
    }
  }

  static Bytes to_bytes(std::string_view text) { return {text.begin(), text.end()}; }

  npu::Chip chip_;
  const npu::Driver& driver_;
  compile::ProgramCosts program_costs_;  // none for chips without a timing model
  std::optional<compile::CostModel> model_;
  size_t next_switch_ = 0;
};

// Graphs of one operation on images with a dimension, or a product of two, at and next to the limits of fields, banks
// and tables of these chips. Constants are zeros: only the image's shape matters.
std::vector<ir::Shape> shapes_at_limits() {
  std::vector<ir::Shape> shapes = {{1, 2, 8191, 1}, {1, 2, 8192, 1}, {1, 2, 2730, 3},  {1, 2, 2731, 3},
                                   {1, 3, 2730, 3}, {1, 3, 2731, 3}, {1, 2050, 4, 1},  {1, 1, 3, 2046},
                                   {1, 1, 3, 2049}, {1, 3, 5, 2049}, {1, 64, 128, 16}, {1, 91, 90, 3},
                                   {1, 40, 40, 40}, {1, 39, 40, 40}, {1, 8, 8, 16},    {1, 128, 128, 1}};
  for (const int32_t limit : {5, 8, 16, 32, 37, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}) {
    for (const int32_t size : {limit - 1, limit, limit + 1}) {
      shapes.push_back({1, size, 3, 2});
      shapes.push_back({1, 3, size, 2});
      if (size <= 2049) shapes.push_back({1, 3, 2, size});
    }
  }
  return shapes;
}
std::vector<ir::Graph> graphs_at_limits() {
  constexpr std::string_view kX = "graph \"limits\"\ntensor 0 \"x\" uint8 {0}x{1}x{2}x{3} scale=0.02 zero=128\n";
  constexpr std::string_view kTexts[] = {
      "tensor 1 \"w\" uint8 2x1x1x{3} scale=0.01 zero=128 const=xxh3:0:{4}\ntensor 2 \"b\" int32 2 scale=0.0002 zero=0 "
      "const=[5 -7]\ntensor 3 \"y\" uint8 1x{1}x{2}x2 scale=0.05 zero=128\ninputs 0\noutputs 3\n"
      "op 0 CONV_2D in=[0 1 2] out=[3]\n",
      "tensor 1 \"w\" uint8 2x3x3x{3} scale=0.01 zero=128 const=xxh3:0:{5}\ntensor 2 \"b\" int32 2 scale=0.0002 zero=0 "
      "const=[5 -7]\ntensor 3 \"y\" uint8 1x{1}x{2}x2 scale=0.05 zero=128\ninputs 0\noutputs 3\n"
      "op 0 CONV_2D in=[0 1 2] out=[3]\n",
      "tensor 1 \"z\" uint8 {0}x{1}x{2}x{3} scale=0.03 zero=128\ntensor 2 \"y\" uint8 {0}x{1}x{2}x{3} scale=0.05 "
      "zero=128\ninputs 0 1\noutputs 2\nop 0 ADD in=[0 1] out=[2]\n",
      "tensor 1 \"y\" uint8 {0}x{1}x{2}x{3} scale=0.02 zero=128\ninputs 0\noutputs 1\nop 0 RELU in=[0] out=[1]\n"};
  std::vector<ir::Graph> graphs;
  for (const ir::Shape& s : shapes_at_limits()) {
    for (const std::string_view text : kTexts) {
      const std::string whole = std::string(kX) + std::string(text);
      auto graph = ir::parse(fmt::format(fmt::runtime(whole), s[0], s[1], s[2], s[3], 2 * s[3], 18 * s[3]));
      EXPECT_TRUE(graph.ok()) << graph.error().message << "\n" << whole;
      if (graph.ok()) graphs.push_back(std::move(graph).value());
    }
  }
  return graphs;
}

bool is_quick(const Case& one) {
  const ir::Op& op = one.graph.op(one.op);
  if (op.kind != ir::OpKind::depthwise_conv_2d) return true;
  const ir::Shape& filter = one.graph.tensor(op.inputs[1]).shape;
  return filter.elems() * filter[3] <= kMostDense;
}

// Further operations that only Ethos-U takes.
std::string ethosu_operations(Emitter& emitter) {
  Line line;
  for (const ethosu_cases::Kind& kind : ethosu_cases::kKinds) {
    for (uint32_t seed = 1; seed <= kCasesOfOperation / kind.share; ++seed) {
      const auto graph = ir::parse(ethosu_cases::text_of(kind, seed));
      EXPECT_TRUE(graph.ok()) << kind.name << " " << seed;
      if (graph.ok()) emitter.add(*graph, line);
    }
  }
  return line.text();
}

Lines emit(const std::string& chip) {
  Emitter emitter(chip);
  Lines lines;
  const std::vector<ir::OpKind> kinds = kinds_of(emitter.chip());
  for (const ir::OpKind kind : kinds) {
    Line line;
    for (uint32_t seed = 1; seed <= kCasesOfKind; ++seed) {
      const Case one = CaseMaker(seed).make(kind);
      if (is_quick(one) && ir::verify(one.graph).ok()) emitter.add(one.graph, line);
    }
    lines[fmt::format("{} {}", chip, ir::op_kind_name(kind))] = line.text();
  }
  Line line;
  for (uint32_t seed = 1; seed <= kGraphs; ++seed) emitter.add(GraphMaker(seed).make(), line);
  lines[chip + " graphs"] = line.text();
  Line limits;
  for (const ir::Graph& graph : graphs_at_limits()) emitter.add_few(graph, limits);
  lines[chip + " limits"] = limits.text();
  if (emitter.chip().family == "ethosu") lines[chip + " operations"] = ethosu_operations(emitter);
  return lines;
}

class Emitted : public ::testing::TestWithParam<const char*> {};  // a chip

TEST_P(Emitted, IsWhatItWas) {
  expect_lines("tests/expectations/emitted.txt", fmt::format("{} ", GetParam()), emit(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Chips, Emitted,
                         ::testing::Values("a311d", "s905d3", "imx8mp", "rk3588", "rk3576", "ethos-u55-64",
                                           "ethos-u55-128", "ethos-u65-512"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace skillet
