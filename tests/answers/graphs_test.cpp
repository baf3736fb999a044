// Answers for graphs of one operation with one change: messages of the text reader, the shape rules, the verifier, the
// chips and the CPU kernels; and the results of the CPU kernels; of float kernels in quarters. Other tests check that
// the answers are right; this test shows unnoticed changes. After an intended change, run SKILLET_UPDATE=1 answers_test
// to write tests/expectations/answers.txt; git diff then shows what it affected.
#include <algorithm>
#include <cmath>

#include "answers/draws.h"
#include "answers/forms.h"
#include "answers/known_graphs.h"
#include "answers/lines.h"
#include "base/bytes.h"
#include "base/is_any_of.h"
#include "base/log.h"
#include "base/splitmix64.h"
#include "graph/ref/ref.h"
#include "npu/driver.h"

namespace skillet::answers {
namespace {

constexpr const char* kFile = "tests/expectations/answers.txt";
constexpr const char* kChips[] = {"a311d", "imx8mp", "rk3588", "rk3576", "imx93"};
struct Line {
  Hash parsed, shaped, chips, prepared, results, floats;

  std::string text() const {
    return fmt::format("changes {} parsed {} shaped {} chips {} prepared {} results {}", parsed.count(), parsed.text(),
                       shaped.text(), chips.text(), prepared.text(), results.text());
  }
};

// Floats are small and have few bits.
void fill(std::span<uint8_t> bytes, ir::DType type, SplitMix64& random) {
  if (type != ir::DType::float32) {
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next() % (type == ir::DType::boolean ? 2 : 256));
    return;
  }
  for (size_t at = 0; at + 4 <= bytes.size(); at += 4)
    store_le(bytes.data() + at, static_cast<float>(static_cast<int>(random.next() % 64) - 32) / 8);
}

// Kinds whose results are the library's, not exact.
bool is_exact(const ir::Graph& graph) {
  using enum ir::OpKind;
  return std::ranges::none_of(graph.ops, [](const ir::Op& op) {
    return is_any_of(op.kind, {exp,
                               log,
                               tanh,
                               logistic,
                               softmax,
                               log_softmax,
                               gelu,
                               elu,
                               hard_swish,
                               sqrt,
                               rsqrt,
                               sin,
                               cos,
                               pow,
                               atan2,
                               lstm,
                               unidirectional_sequence_lstm,
                               svdf,
                               l2_normalization,
                               l2_pool_2d,
                               local_response_normalization,
                               detection_post_process});
  });
}

// In quarters, far from the border between two, so that the order of a sum does not matter.
void add_floats(std::span<const uint8_t> bytes, Hash& to) {
  std::vector<uint8_t> quarters(bytes.begin(), bytes.end());
  for (size_t at = 0; at + 4 <= bytes.size(); at += 4) {
    const float value = load_le<float>(bytes.data() + at);
    const float quarter = std::floor(std::clamp(value, -1e6F, 1e6F) * 4 + 0.37F);
    store_le(quarters.data() + at, std::isnan(value) ? INT32_MAX : static_cast<int32_t>(quarter));
  }
  to.add(std::span<const uint8_t>(quarters));
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
    if (graph.tensor(id).dtype != ir::DType::float32)
      line.results.add(std::span<const uint8_t>(made->tensor(id)));
    else if (is_exact(graph))
      add_floats(made->tensor(id), line.floats);
}

void ask(ir::Graph graph, Line& line) {
  const auto fine = ir::verify(graph);
  line.shaped.add(fine.ok() ? "fine" : fine.error().message);
  if (!fine.ok()) {
    const auto inferred = ir::infer_shapes(graph);
    line.shaped.add(inferred.ok() ? ir::print_without_constants(graph) : inferred.error().message);
    if (!inferred.ok() || !ir::verify(graph).ok()) return;
  }
  for (const char* name : kChips) {
    const npu::Chip chip = npu::find_chip(name).value();
    for (size_t op = 0; op < graph.ops.size(); ++op) {
      const npu::Support one = npu::driver_of(chip).value()->supports(chip, graph, static_cast<ir::OpId>(op));
      line.chips.add(fmt::format("{} {} {}", one.ok, one.unproven, one.reason));
    }
  }
  run(graph, line);
}
void ask(const std::string& text, Line& line) {
  auto graph = ir::parse(text);
  line.parsed.add(graph.ok() ? "fine" : graph.error().message);
  if (graph.ok()) ask(std::move(*graph), line);
}

TEST(Answers, OfGraphsWithOneThingChanged) {
  const log::ScopedLevel quiet(log::Level::error);
  Lines now;
  for (const auto& [name, texts] : known_graphs()) {
    Line line;
    for (const std::string& text : texts) {
      ASSERT_TRUE(ir::parse(text).ok()) << text;
      ask(text, line);
      TextChanges(text, kWords).each([&](const std::string& changed) { ask(changed, line); });
    }
    now["graph " + name] = line.text();
    if (line.floats.count() != 0) now["graph " + name + " floats"] = line.floats.text();
  }
  expect_lines(kFile, "graph ", now);
}

// Graphs of one element, with operands that are computed instead of constant, twice the same, or missing.
TEST(Answers, OfGraphsInOtherForms) {
  const log::ScopedLevel quiet(log::Level::error);
  Lines now;
  for (const auto& [name, texts] : known_graphs()) {
    Line line;
    for (const std::string& text : texts)
      each_form(ir::parse(text).value(), [&](const ir::Graph& one) { ask(one, line); });
    now["forms " + name] = line.text();
    if (line.floats.count() != 0) now["forms " + name + " floats"] = line.floats.text();
  }
  expect_lines(kFile, "forms ", now);
}

// Graphs with two or three changes at once: `count` of each text.
void ask_draws(const std::string& own, uint64_t seed, size_t count) {
  const log::ScopedLevel quiet(log::Level::error);
  Lines now;
  for (const auto& [name, texts] : known_graphs()) {
    Line line;
    for (const std::string& text : texts) {
      TextDraws draws(text, kWords, ++seed);
      for (size_t i = 0; i < count; ++i) ask(draws.next(), line);
    }
    now[own + name] = line.text();
    if (line.floats.count() != 0) now[own + name + " floats"] = line.floats.text();
  }
  expect_lines(kFile, own, now);
}
TEST(Answers, OfGraphsWithTwoThingsChanged) { ask_draws("graph2 ", 0, 50); }
TEST(Answers, OfManyGraphsWithTwoThingsChanged) { ask_draws("graph2_many ", 1000, 1400); }

}  // namespace
}  // namespace skillet::answers
