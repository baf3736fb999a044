// What passes make of graphs with one change, including constants: the whole pipeline of a chip on the known graphs of
// each kind and on the passes' own texts; each pass alone on its own texts. See graphs_test.cpp.
#include "graph/passes/passes.h"

#include <regex>

#include "answers/draws.h"
#include "answers/known_graphs.h"
#include "answers/lines.h"
#include "answers/many_sizes.h"
#include "base/log.h"
#include "compile/compile.h"
#include "compile/report.h"
#include "graph/passes/testing/letters.h"
#include "graph/passes/testing/plain_drivers.h"
#include "graph/passes/testing/texts.h"
#include "npu/driver.h"

namespace skillet::answers {
namespace {

constexpr const char* kFile = "tests/expectations/answers.txt";

// Infers the shapes again where a changed size makes them inconsistent.
std::optional<ir::Graph> small_graph(const std::string& text) {
  auto graph = ir::parse(text);
  if (!graph.ok() || (!ir::verify(*graph).ok() && !ir::infer_shapes(*graph).ok())) return std::nullopt;
  if (!ir::verify(*graph).ok() || !is_small(*graph)) return std::nullopt;
  return std::move(graph).value();
}

void rewrite(ir::Graph graph, const npu::Chip& chip, Hash& to) {
  std::vector<passes::Rewrite> rewrites;
  std::vector<passes::WeightChange> changes;
  std::vector<passes::Tried> tried;
  passes::Target target{.driver = npu::driver_of(chip).value(), .chip = chip};
  target.per_channel = npu::PerChannel::approximate;
  target.weight_changes = &changes;
  target.takes_unproven = true;
  target.rewrites = &rewrites;
  target.tried = &tried;
  const auto done = passes::run_pipeline(graph, target);
  to.add(done.ok() ? ir::print(graph) : done.error().message);
  for (const passes::Rewrite& one : rewrites) to.add(fmt::format("{} {} {}", one.pass, one.text, one.off));
  for (const passes::Tried& one : tried) to.add(fmt::format("{} {}", one.sources.size(), one.why));
}

// Compiles the graph in bands of rows for three cores.
void divide(const ir::Graph& graph, const npu::Chip& chip, Hash& to) {
  compile::Options options{.driver = {.tuning = npu::Tuning::tuned, .unproven = npu::Unproven::take}};
  options.cores = 3;
  options.runs = compile::Runs::longest;
  const auto compiled = compile::compile(graph, {npu::driver_of(chip).value(), chip}, options);
  to.add(compiled.ok() ? compile::print(*compiled) : compiled.error().message);
}

TEST(Answers, OfPassesOnGraphsWithOneThingChanged) {
  const log::ScopedLevel quiet(log::Level::error);
  Lines now;
  for (const auto& [name, texts] : known_graphs()) {
    std::string line;
    for (const char* chip_name : {"a311d", "rk3588"}) {
      const npu::Chip chip = npu::find_chip(chip_name).value();
      Hash hash;
      for (const std::string& text : texts) {
        TextChanges(text, kWords).each([&](const std::string& changed) {
          if (auto graph = small_graph(changed)) rewrite(std::move(*graph), chip, hash);
        });
      }
      line += fmt::format("{}{} {} {}", line.empty() ? "" : " ", chip_name, hash.count(), hash.text());
    }
    now["passes " + name] = line;
  }
  expect_lines(kFile, "passes ", now);
}

// Swaps rows and columns, in sizes and in attributes.
std::string turned(const std::string& text) {
  static const std::regex kShape(R"((\d+)x(\d+)x(\d+)x(\d+))"), kDown("_h="), kAlong("_w="), kMark("_d=");
  std::string out = std::regex_replace(text, kShape, "$1x$3x$2x$4");
  out = std::regex_replace(out, kDown, "_d=");
  out = std::regex_replace(out, kAlong, "_h=");
  return std::regex_replace(out, kMark, "_w=");
}

// Texts with several channels, in addition to those of passes/testing/texts.h.
constexpr std::pair<const char*, const char*> kMoreTexts[] = {
    {"lower_conv1d",
     "tensor 0 \"a\" int8 1x8x1x3 scale=0.5 zero=3\ntensor 1 \"w\" int8 2x3x1x3 scale=0.5 zero=7 const=random:1\n"
     "tensor 2 \"y\" int8 1x4x1x2 scale=0.5 zero=3\ninputs 0\noutputs 2\n"
     "op 0 CONV_2D in=[0 1] out=[2] stride_h=2 stride_w=1 dilation_h=2\n"},
    {"lower_conv1d",
     "tensor 0 \"a\" int8 1x12x1x3 scale=0.5 zero=3\ntensor 1 \"w\" int8 1x5x1x3 scale=0.5 zero=7 const=random:1\n"
     "tensor 2 \"y\" int8 1x4x1x3 scale=0.5 zero=3\ninputs 0\noutputs 2\n"
     "op 0 DEPTHWISE_CONV_2D in=[0 1] out=[2] stride_h=3 stride_w=1 depth_multiplier=1\n"},
};

TEST(Answers, OfPassesOnTheirTextsWithOneThingChanged) {
  const log::ScopedLevel quiet(log::Level::error);
  std::map<std::string, Hash> alone, for_chips;
  const auto ask = [&](std::string_view name, const std::string& text) {
    const auto graph = small_graph(text);
    if (!graph) return;
    const passes::Pass* const pass = passes::exact_pass(name);
    ir::Graph after = *graph;
    const auto rewrites = passes::rewrite(after, *pass);
    Hash& own = alone[std::string(name)];
    own.add(rewrites.ok() ? ir::print(after) : rewrites.error().message);
    for (size_t i = 0; rewrites.ok() && i < rewrites->size(); ++i) own.add((*rewrites)[i].text);
    for (const char* chip : {"a311d", "rk3588", "rk3576", "imx93"})
      rewrite(*graph, npu::find_chip(chip).value(), for_chips[std::string(name)]);
    divide(*graph, npu::find_chip("rk3588").value(), for_chips[std::string(name)]);
  };
  const auto ask_all = [&](std::string_view name, const std::string& rest) {
    const std::string text = "graph \"g\"\n" + rest;
    for (const std::string& one : {text, turned(text)}) {
      ask(name, one);
      TextChanges(one, kWords).each([&](const std::string& changed) { ask(name, changed); });
    }
  };
  for (const passes::Row& row : passes::kRows) ask_all(row.pass, std::string(row.before));
  for (const auto& [name, text] : kMoreTexts) ask_all(name, text);
  Lines now;
  for (const auto& [pass, hash] : alone)
    now["texts " + pass] = fmt::format("alone {} {} for chips {} {}", hash.count(), hash.text(),
                                       for_chips[pass].count(), for_chips[pass].text());
  expect_lines(kFile, "texts ", now);
}

// The same, of graphs with two or three changes at once: `count` of each text, those of a pass by it.
void rewrite_draws(const std::string& own, uint64_t seed, size_t count) {
  const log::ScopedLevel quiet(log::Level::error);
  std::map<std::string, Hash> hashes;
  const auto draw = [&](const std::string& name, const std::string& text) {
    TextDraws draws(text, kWords, ++seed);
    const passes::Pass* const pass = passes::exact_pass(name);
    for (size_t i = 0; i < count; ++i) {
      const auto graph = small_graph(draws.next());
      if (!graph) continue;
      Hash& to = hashes[name];
      if (pass != nullptr) {
        ir::Graph after = *graph;
        const auto rewrites = passes::rewrite(after, *pass);
        to.add(rewrites.ok() ? ir::print(after) : rewrites.error().message);
      }
      for (const char* chip : {"a311d", "imx8mp", "rk3588", "rk3576", "imx93"})
        rewrite(*graph, npu::find_chip(chip).value(), to);
      divide(*graph, npu::find_chip(i % 2 == 0 ? "rk3588" : "rk3576").value(), to);
    }
  };
  for (const passes::Row& row : passes::kRows) draw(std::string(row.pass), "graph \"g\"\n" + std::string(row.before));
  for (const auto& [name, text] : kMoreTexts) draw(name, fmt::format("graph \"g\"\n{}", text));
  for (const auto& [name, texts] : known_graphs())
    for (const std::string& text : texts) draw(name, text);
  expect_hashes(kFile, own, hashes);
}
// Each pass alone, and all of a chip, on the passes' texts in many sizes: where limits are, and what is made there.
TEST(Answers, OfManyRewritesInManySizes) {
  const log::ScopedLevel quiet(log::Level::error);
  const std::vector<int64_t> sizes = many_sizes(1 << 12);
  std::map<std::string, Hash> alone, for_chips;
  const auto ask_all = [&](const std::string& name, const std::string& text) {
    const passes::Pass* const pass = passes::exact_pass(name);
    TextChanges(text, kWords).each_value(sizes, [&](const std::string& one) {
      if (elems_of(one) > kElemsOfSizes) return;
      auto graph = ir::parse(one);
      if (!graph.ok() || !ir::infer_shapes(*graph).ok() || !ir::verify(*graph).ok()) return;
      for (const char* chip : {"a311d", "rk3588", "imx93"})
        rewrite(*graph, npu::find_chip(chip).value(), for_chips[name]);
      const auto rewrites = passes::rewrite(*graph, *pass);
      alone[name].add(rewrites.ok() ? ir::print(*graph) : rewrites.error().message);
    });
  };
  for (const passes::Row& row : passes::kRows)
    ask_all(std::string(row.pass), "graph \"g\"\n" + std::string(row.before));
  for (const auto& [name, text] : kMoreTexts) ask_all(name, fmt::format("graph \"g\"\n{}", text));
  Lines now;
  for (const auto& [name, hash] : alone)
    now["rewrite_sizes " + name] = fmt::format("{} {} for chips {}", hash.count(), hash.text(), for_chips[name].text());
  expect_lines(kFile, "rewrite_sizes ", now);
}

TEST(Answers, OfRewritesWithTwoThingsChanged) { rewrite_draws("passes2 ", 0, 20); }
TEST(Answers, OfManyRewritesWithTwoThingsChanged) { rewrite_draws("passes2_many ", 1000, 450); }

}  // namespace
}  // namespace skillet::answers
