// What is said of graphs of one operation with one thing changed: by the reader of their text, the rules of shapes, the
// verifier, the chips, the CPU's kernels; and what these compute, where it is not float. Other tests say whether that
// is right; this one says that nothing changed unnoticed. After a change that was meant,
// SKILLET_UPDATE=1 answers_test writes tests/expectations/answers.txt, and git diff says what it touched.
#include <algorithm>
#include <filesystem>

#include "answers/changes.h"
#include "answers/lines.h"
#include "answers/more_graphs.h"
#include "base/log.h"
#include "base/splitmix64.h"
#include "graph/import/import.h"
#include "graph/passes/passes.h"
#include "graph/ref/ref.h"
#include "npu/driver.h"

namespace skillet::answers {
namespace {

constexpr const char* kFile = "tests/expectations/answers.txt";
constexpr std::string_view kTypes[] = {"int8", "uint8", "int16", "int32", "int64", "float32", "boolean"};
constexpr std::string_view kPaddings[] = {"same", "valid", "explicit"};
constexpr std::string_view kActivations[] = {"none", "relu", "relu6", "relu_n1_to_1", "tanh"};
constexpr std::string_view kBools[] = {"true", "false"};
constexpr Words kWords[] = {kTypes, kPaddings, kActivations, kBools};
constexpr const char* kChips[] = {"a311d", "imx8mp", "rk3588", "rk3576", "imx93"};
constexpr int64_t kElemsMax = 1 << 12;  // of a tensor: larger ones take their time and show nothing more
constexpr size_t kOfKind = 6;           // graphs

struct Line {
  Hash parsed, shaped, chips, prepared, results;

  std::string text() const {
    return fmt::format("changes {} parsed {} shaped {} chips {} prepared {} results {}", parsed.count(), parsed.text(),
                       shaped.text(), chips.text(), prepared.text(), results.text());
  }
};

bool is_small(const ir::Graph& graph) {
  return std::ranges::all_of(graph.tensors, [](const ir::Tensor& one) { return one.shape.elems() <= kElemsMax; });
}

// Constants that the text shortens are drawn instead, where they can be.
std::string text_of(const ir::Graph& graph) {
  std::string text = ir::print(graph);
  for (size_t at = 0; (at = text.find("const=xxh3:", at)) != std::string::npos; ++at) {
    const std::string_view line = std::string_view(text).substr(text.rfind('\n', at), at - text.rfind('\n', at));
    const bool is_drawn =
        std::ranges::any_of(std::array{" int8 ", " uint8 ", " int16 ", " int32 ", " float32 "},
                            [&](const char* type) { return line.find(type) != std::string_view::npos; });
    if (is_drawn) text.replace(at, text.find_first_of(" \n", at) - at, "const=random:1");
  }
  return text;
}

// Floats are small and of few bits.
void fill(std::span<uint8_t> bytes, ir::DType type, SplitMix64& random) {
  if (type != ir::DType::float32) {
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next() % (type == ir::DType::boolean ? 2 : 256));
    return;
  }
  for (size_t at = 0; at + 4 <= bytes.size(); at += 4)
    store_le(bytes.data() + at, static_cast<float>(static_cast<int>(random.next() % 64) - 32) / 8);
}

void run(const ir::Graph& graph, Line& line) {
  auto made = ref::Interpreter::create(graph);
  line.prepared.add(made.ok() ? "fine" : made.error().message);
  if (!made.ok() || !is_small(graph)) return;
  SplitMix64 random(1);
  for (const ir::TensorId id : graph.inputs) fill(made->tensor(id), graph.tensor(id).dtype, random);
  const auto ran = made->run();
  line.results.add(ran.ok() ? "fine" : ran.error().message);
  if (!ran.ok()) return;
  for (const ir::TensorId id : graph.outputs)
    if (graph.tensor(id).dtype != ir::DType::float32) line.results.add(std::span<const uint8_t>(made->tensor(id)));
}

void ask(const std::string& text, Line& line) {
  auto graph = ir::parse(text);
  line.parsed.add(graph.ok() ? "fine" : graph.error().message);
  if (!graph.ok()) return;
  const auto fine = ir::verify(*graph);
  line.shaped.add(fine.ok() ? "fine" : fine.error().message);
  if (!fine.ok()) {
    const auto inferred = ir::infer_shapes(*graph);
    line.shaped.add(inferred.ok() ? ir::print_without_constants(*graph) : inferred.error().message);
    return;
  }
  for (const char* name : kChips) {
    const npu::Chip chip = npu::find_chip(name).value();
    for (size_t op = 0; op < graph->ops.size(); ++op) {
      const npu::Support one = npu::driver_of(chip).value()->supports(chip, *graph, static_cast<ir::OpId>(op));
      line.chips.add(fmt::format("{} {} {}", one.ok, one.unproven, one.reason));
    }
  }
  run(*graph, line);
}

// What the pipeline makes of a graph for a chip, constants and all.
void rewrite(const std::string& text, const npu::Chip& chip, Hash& to) {
  auto graph = ir::parse(text);
  if (!graph.ok() || !ir::verify(*graph).ok() || !is_small(*graph)) return;
  std::vector<passes::Rewrite> rewrites;
  std::vector<passes::WeightChange> changes;
  passes::Target target{.driver = npu::driver_of(chip).value(), .chip = chip};
  target.per_channel = npu::PerChannel::approximate;
  target.weight_changes = &changes;
  target.takes_unproven = true;
  target.rewrites = &rewrites;
  const auto done = passes::run_pipeline(*graph, target);
  to.add(done.ok() ? ir::print(*graph) : done.error().message);
  for (const passes::Rewrite& one : rewrites) to.add(fmt::format("{} {} {}", one.pass, one.text, one.off));
}

// Models of one operation each, by its name.
std::map<std::string, std::vector<std::string>> graphs() {
  std::vector<std::string> files;
  for (const char* folder : {"tests/conformance/models/kernels"}) {
    for (const auto& entry : std::filesystem::directory_iterator(in_tree(folder))) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::map<std::string, std::vector<std::string>> out;
  for (const std::string& file : files) {
    const auto graph = tflite::import_file(file);
    if (!graph.ok() || graph->ops.size() != 1 || !is_small(*graph)) continue;
    std::vector<std::string>& of_kind = out[std::string(ir::op_name(graph->ops[0]))];
    if (of_kind.size() < kOfKind) of_kind.push_back(text_of(*graph));
  }
  for (const std::string& text : more_graphs()) {
    const auto graph = ir::parse(text);
    EXPECT_EQ(graph.ok() ? ir::verify(*graph).ok() ? "" : ir::verify(*graph).error().message : graph.error().message,
              "")
        << text;
    if (graph.ok()) out[std::string(ir::op_name(graph->ops[0]))].push_back(text);
  }
  return out;
}

TEST(Answers, OfGraphsWithOneThingChanged) {
  const log::ScopedLevel quiet(log::Level::error);
  Lines now;
  for (const auto& [name, texts] : graphs()) {
    Line line;
    for (const std::string& text : texts) {
      ASSERT_TRUE(ir::parse(text).ok()) << text;
      ask(text, line);
      TextChanges(text, kWords).each([&](const std::string& changed) { ask(changed, line); });
    }
    now["graph " + name] = line.text();
  }
  expect_lines(kFile, "graph ", now);
}

TEST(Answers, OfPassesOnGraphsWithOneThingChanged) {
  const log::ScopedLevel quiet(log::Level::error);
  Lines now;
  for (const auto& [name, texts] : graphs()) {
    std::string line;
    for (const char* chip_name : {"a311d", "rk3588"}) {
      const npu::Chip chip = npu::find_chip(chip_name).value();
      Hash hash;
      for (const std::string& text : texts) {
        TextChanges(text, kWords).each([&](const std::string& changed) { rewrite(changed, chip, hash); });
      }
      line += fmt::format("{}{} {} {}", line.empty() ? "" : " ", chip_name, hash.count(), hash.text());
    }
    now["passes " + name] = line;
  }
  expect_lines(kFile, "passes ", now);
}

}  // namespace
}  // namespace skillet::answers
