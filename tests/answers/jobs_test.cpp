// Answers for recorded jobs with one word changed: from the decoder of jobs and from the simulated chip, with its
// results. Also answers for forged programs, from the checks of programs. See graphs_test.cpp.
#include <random>

#include "answers/lines.h"
#include "answers/scene.h"
#include "base/int_math.h"
#include "base/log.h"
#include "compile/compile.h"
#include "npu/driver.h"
#include "runtime/address_check.h"
#include "runtime/loaded_program.h"
#include "runtime/record_program.h"
#include "runtime/trial.h"
#include "runtime/trust.h"
#include "runtime/verify.h"
#include "sim/sim.h"
#include "soak/forge.h"

namespace skillet::answers {
namespace {

constexpr const char* kFile = "tests/expectations/answers.txt";
constexpr size_t kWordsOfBuffer = 160, kForged = 60;

constexpr const char* kGraphs[] = {
    R"(tensor 0 "x" uint8 1x6x7x3 scale=0.05 zero=120
tensor 1 "w" uint8 7x3x3x3 scale=0.02 zero=131 const=random:1
tensor 2 "y" uint8 1x3x4x7 scale=0.5 zero=110
inputs 0
outputs 2
op 0 CONV_2D in=[0 1 -] out=[2] padding=same stride_h=2 stride_w=2 activation=relu6
)",
    R"(tensor 0 "x" int8 1x24 scale=0.05 zero=3
tensor 1 "w" int8 10x24 scale=0.02 zero=0 const=random:1
tensor 2 "b" int32 10 scale=0.001 zero=0 const=random:2
tensor 3 "y" int8 1x10 scale=0.5 zero=4
inputs 0
outputs 3
op 0 FULLY_CONNECTED in=[0 1 2] out=[3]
)",
    R"(tensor 0 "x" int8 1x6x6x16 scale=0.05 zero=3
tensor 1 "y" int8 1x6x6x16 scale=0.05 zero=3
inputs 0
outputs 1
op 0 AVERAGE_POOL_2D in=[0] out=[1] padding=same filter_h=3 filter_w=3
)",
    R"(tensor 0 "a" int8 1x3x4x16 scale=0.05 zero=2
tensor 1 "b" int8 1x3x4x16 scale=0.07 zero=-9
tensor 2 "y" int8 1x3x4x16 scale=0.1 zero=1
inputs 0 1
outputs 2
op 0 MUL in=[0 1] out=[2]
)",
    R"(tensor 0 "x" uint8 1x6x7x5 scale=0.05 zero=120
tensor 1 "w" uint8 9x3x3x5 scale=0.02 zero=131 const=random:1
tensor 2 "b" int32 9 scale=0.001 zero=0 const=random:2
tensor 3 "y" uint8 1x6x7x9 scale=0.5 zero=110
inputs 0
outputs 3
op 0 CONV_2D in=[0 1 2] out=[3] padding=same
)",
    R"(tensor 0 "x" int8 1x5x6x8 scale=0.05 zero=3
tensor 1 "w" int8 1x3x3x8 scale=0.02 zero=0 const=random:1
tensor 2 "b" int32 8 scale=0.001 zero=0 const=random:2
tensor 3 "y" int8 1x5x6x8 scale=0.5 zero=-7
inputs 0
outputs 3
op 0 DEPTHWISE_CONV_2D in=[0 1 2] out=[3] padding=same depth_multiplier=1
)",
    R"(tensor 0 "a" uint8 1x4x5x16 scale=0.05 zero=120
tensor 1 "b" uint8 1x4x5x16 scale=0.07 zero=100
tensor 2 "y" uint8 1x4x5x16 scale=0.1 zero=110
inputs 0 1
outputs 2
op 0 ADD in=[0 1] out=[2]
)",
    R"(tensor 0 "x" int8 1x6x6x16 scale=0.05 zero=3
tensor 1 "y" int8 1x3x3x16 scale=0.05 zero=3
inputs 0
outputs 1
op 0 MAX_POOL_2D in=[0] out=[1] padding=valid filter_h=2 filter_w=2 stride_h=2 stride_w=2
)",
    R"(tensor 0 "x" int8 1x4x4x8 scale=0.05 zero=3
tensor 1 "y" int8 1x4x4x8 scale=0.00390625 zero=-128
inputs 0
outputs 1
op 0 LOGISTIC in=[0] out=[1]
)",
    R"(tensor 0 "x" uint8 1x8x6x4 scale=0.05 zero=120
tensor 1 "order" int32 4 const=[0 2 1 3]
tensor 2 "y" uint8 1x6x8x4 scale=0.05 zero=120
inputs 0
outputs 2
op 0 TRANSPOSE in=[0 1] out=[2]
)"};

struct Line {
  Hash decoded, simulated, checked;

  std::string text() const {
    return fmt::format("changes {} decoded {} simulated {} forged {} checked {}", decoded.count(), decoded.text(),
                       simulated.text(), checked.count(), checked.text());
  }
};

class Changer {
 public:
  Changer(const npu::Chip& chip, Line& line) : chip_(chip), driver_(*npu::driver_of(chip).value()), line_(line) {}

  void take(const ir::Graph& graph) {
    const compile::Options options{.driver = {.tuning = npu::Tuning::proven, .unproven = npu::Unproven::take}};
    auto compiled = compile::compile(graph, {&driver_, chip_}, options);
    if (!compiled.ok()) return;
    for (const compile::Part& part : compiled->parts) {
      if (!part.program) continue;
      forge(*part.program, part.partition.graph);
      const ir::Graph& own = part.partition.graph;
      auto sent = runtime::record_programs(chip_.name, {{*part.program, &own, runtime::trial_inputs(own, 0)}});
      ASSERT_TRUE(sent.ok()) << sent.error().message;
      change(sent->capture);
    }
  }

 private:
  void ask(const capture::Capture& capture) {
    Scene scene(chip_.name);
    for (const capture::Submission& one : capture.submissions) {
      const auto decoded = driver_.decode(chip_, one);
      line_.decoded.add(decoded.ok() ? decoded->text : decoded.error().message);
      scene.run(one, line_.simulated);
    }
  }

  // Changes the words of command lists, and the words of buffers.
  void change(const capture::Capture& capture) {
    ask(capture);
    for (size_t at = 0; at < capture.submissions.size(); ++at) {
      for (size_t job = 0; job < capture.submissions[at].jobs.size(); ++job) {
        for (size_t list = 0; list < capture.submissions[at].jobs[job].commands.size(); ++list) {
          capture::Capture changed = capture;
          std::vector<uint32_t>& words = changed.submissions[at].jobs[job].commands[list].words;
          each_word(words, [&] { ask(changed); });
        }
      }
      for (size_t i = 0; i < capture.submissions[at].buffers.size(); ++i) change_buffer(capture, at, i);
    }
  }
  void change_buffer(const capture::Capture& capture, size_t at, size_t index) {
    const capture::BufferSnapshot& buffer = capture.submissions[at].buffers[index];
    if (buffer.content != capture::Content::bytes || buffer.bytes.size() == 0 || buffer.holds_input) return;
    std::vector<uint32_t> words(ceil_div<size_t>(buffer.bytes.size(), 4));
    std::memcpy(words.data(), buffer.bytes.data(), buffer.bytes.size());
    capture::Capture changed = capture;
    each_word(words, [&] {
      const auto* const bytes = reinterpret_cast<const uint8_t*>(words.data());
      capture::set_contents(changed.submissions[at].buffers[index], {bytes, buffer.bytes.size()});
      ask(changed);
    });
  }
  // Flips one bit of each word (a different one each time), adds one, and flips another bit.
  template <typename Take>
  void each_word(std::vector<uint32_t>& words, const Take& take) {
    const size_t step = ceil_div(words.size(), kWordsOfBuffer);
    for (size_t i = 0; i < words.size(); i += step) {
      const uint32_t old = words[i];
      for (const uint32_t other : {old ^ 1U << next_bit_++ % 32, old + 1, old ^ 1U << (next_bit_ * 7) % 32}) {
        words[i] = other;
        take();
      }
      words[i] = old;
    }
  }

  void forge(const npu::Program& program, const ir::Graph& graph) {
    for (size_t i = 0; i < kForged; ++i) {
      const npu::Program forged = soak::forge(program, random_);
      const auto verified = npu::verify(forged);
      line_.checked.add(verified.ok() ? "fine" : verified.error().message);
      if (!verified.ok()) continue;
      const auto known = runtime::check_program(forged, chip_.name, graph);
      line_.checked.add(known.ok() ? "fine" : known.error().message);
      const auto checked = runtime::check_addresses(driver_, chip_, forged);
      line_.checked.add(checked.ok() ? "fine" : checked.error().message);
    }
  }

  const npu::Chip& chip_;
  const npu::Driver& driver_;
  Line& line_;
  std::mt19937 random_{1};
  uint32_t next_bit_ = 0;
};

class AnswersOfJobs : public testing::TestWithParam<const char*> {};  // a chip

TEST_P(AnswersOfJobs, WithOneWordChanged) {
  const log::ScopedLevel quiet(log::Level::error);
  const npu::Chip chip = npu::find_chip(GetParam()).value();
  Lines now;
  for (const char* text : kGraphs) {
    const auto graph = ir::parse(fmt::format("graph \"g\"\n{}", text));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    Line line;
    Changer(chip, line).take(*graph);
    std::string& known = now[fmt::format("jobs {} {}", GetParam(), ir::op_name(graph->ops[0]))];
    known += known.empty() ? line.text() : " " + line.text();
  }
  expect_lines(kFile, fmt::format("jobs {} ", GetParam()), now);
}
// The results of each quirk: a chip that has it runs the probe of its assumption.
TEST_P(AnswersOfJobs, OfEachQuirk) {
  const log::ScopedLevel quiet(log::Level::error);
  const runtime::Trust nothing({}, "");
  std::map<std::string, Hash> hashes;
  for (const sim::Quirk& quirk : sim::quirks(GetParam())) {
    const auto target = runtime::open_target(fmt::format("sim:{},quirk={}", GetParam(), quirk.name));
    ASSERT_TRUE(target.ok()) << target.error().message;
    for (const npu::Assumption& row : target->driver->assumptions(target->chip)) {
      if (row.name != quirk.assumption || row.probe.empty()) continue;
      const auto trial = runtime::try_probe(*target, nothing, row, {});
      Hash& hash = hashes[std::string(quirk.name)] = {};
      hash.add(trial.ok() ? fmt::format("{} {}", static_cast<int>(trial->outcome), trial->what)
                          : trial.error().message);
      for (const std::vector<Bytes>& run : trial.ok() ? trial->outputs : std::vector<std::vector<Bytes>>())
        for (const Bytes& one : run) hash.add(std::span<const uint8_t>(one));
    }
  }
  expect_hashes(kFile, fmt::format("quirks {} ", GetParam()), hashes);
}
INSTANTIATE_TEST_SUITE_P(Chips, AnswersOfJobs, testing::Values("a311d", "imx8mp", "rk3588", "rk3576", "imx93"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace skillet::answers
