// Random graphs, compiled for a simulated chip and run there, compared op by op with the CPU kernels. Covers what no
// recorded model contains: odd sizes, images and filters that are not square, multipliers, chains that share tensors,
// constants among the operands, outputs that are inputs or listed twice, parts of several jobs, extreme sizes and
// scales, and a device that fails at some job. SKILLET_RANDOM_GRAPHS: number of graphs (default 24 per tuning);
// SKILLET_RANDOM_GRAPHS_FIRST: first seed.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/int_math.h"
#include "base/log.h"
#include "judge_session.h"
#include "random_graph.h"
#include "runtime/session.h"

namespace skillet {
namespace {

// Without verification: the session would find errors itself and move the operation to the CPU.
constexpr auto kUnproven = npu::Unproven::take;

std::string run_and_check(runtime::Session& session, const npu::Chip& chip, const std::vector<Bytes>& inputs,
                          Tally& tally) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (auto set = session.set_input(i, inputs[i]); !set.ok()) return set.error().message;
  }
  if (auto ran = session.run(); !ran.ok()) return ran.error().message;
  for (std::string problem : {check_chip(session, chip, tally), check_cpu(session, tally)}) {
    if (!problem.empty()) return problem;
  }
  const ir::Graph& graph = session.graph();
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const auto input = std::find(graph.inputs.begin(), graph.inputs.end(), graph.outputs[i]);
    if (input == graph.inputs.end()) continue;
    if (!std::ranges::equal(session.output(i).value(), inputs[static_cast<size_t>(input - graph.inputs.begin())]))
      return fmt::format("output {} is an input, but has other bytes", i);
  }
  return "";
}

// Runs without tensors kept for comparison, so that tensors share memory: equal results in both of two runs.
std::string check_shared_memory(runtime::Session& kept, ir::Graph graph, npu::Tuning tuning,
                                const runtime::Target& target, const std::vector<Bytes>& inputs) {
  auto session = runtime::Session::create(
      std::move(graph), target, {.compile = {.tuning = tuning, .unproven = kUnproven}, .allow_fallback = false});
  if (!session.ok()) return session.error().message;
  for (int run = 0; run < 2; ++run) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (auto set = (*session)->set_input(i, inputs[i]); !set.ok()) return set.error().message;
    }
    if (auto ran = (*session)->run(); !ran.ok()) return ran.error().message;
    for (size_t i = 0; i < kept.graph().outputs.size(); ++i) {
      if (!std::ranges::equal((*session)->output(i).value(), kept.output(i).value()))
        return fmt::format("output {} has other bytes where intermediate tensors are not kept", i);
    }
  }
  return "";
}

// Returns "" if all results are right, else the fault. The device fails from submission `fail_from` of the first run
// on.
std::string judge(uint32_t seed, npu::Tuning tuning, const runtime::Target& target, FailingDevice& device,
                  int fail_from, Tally& tally) {
  ir::Graph graph = GraphMaker(seed).make();
  const std::string text = "\n" + ir::print(graph).substr(0, 10'000);
  if (auto fine = ir::verify(graph); !fine.ok()) return "the test made a bad graph: " + fine.error().message + text;
  const bool fails = fail_from >= 0;
  const auto inputs = random_inputs(graph, seed);
  const ir::Graph copy = graph;
  device.fail_from = 1 << 30;
  auto session = runtime::Session::create(
      std::move(graph), target,
      {.compile = {.tuning = tuning, .unproven = kUnproven}, .allow_fallback = fails, .keep_intermediates = true});
  if (!session.ok()) return session.error().message + text;
  for (size_t part = 0; part < (*session)->report().parts.size(); ++part) {
    for (const npu::Program* program : (*session)->programs(part))
      tally.jobs_max = std::max(tally.jobs_max, static_cast<int>(program->jobs.size()));
  }
  device.submits = 0;
  if (fails) device.fail_from = fail_from;
  for (int run = 0; run < (fails ? 3 : 1); ++run) {
    const std::string problem = run_and_check(**session, target.chip, inputs, tally);
    if (!problem.empty()) return fmt::format("run {}: {}{}", run, problem, text);
  }
  for (const runtime::PartReport& part : (*session)->report().parts) tally.fallbacks += !part.fallback.empty();
  if (fails) return "";
  const std::string problem = check_shared_memory(**session, copy, tuning, target, inputs);
  return problem.empty() ? "" : problem + text;
}

// A simulated chip and a tuning.
class RandomGraphs : public testing::TestWithParam<std::tuple<const char*, npu::Tuning>> {
 protected:
  void SetUp() override {
    auto target = runtime::open_target(fmt::format("sim:{}", std::get<0>(GetParam())));
    ASSERT_TRUE(target.ok()) << target.error().message;
    target_ = *target;
    auto device = std::make_unique<FailingDevice>(std::move(target_.context->device));
    device_ = device.get();
    target_.context->device = std::move(device);
  }
  // `fail_from(seed)`: negative if the device works.
  template <typename FailFrom>
  Tally judge_all(uint32_t count, FailFrom fail_from) {
    Tally tally;
    const uint32_t first = from_environment("SKILLET_RANDOM_GRAPHS_FIRST", 1);
    int failures = 0;
    for (uint32_t seed = first; seed < first + count && failures < 5; ++seed) {
      const std::string problem = judge(seed, std::get<1>(GetParam()), target_, *device_, fail_from(seed), tally);
      if (problem.empty()) continue;
      ++failures;
      ADD_FAILURE() << "seed " << seed << ": " << problem;
    }
    std::printf("%u graphs: %d ops compared on the chip, %d on the CPU, up to %d jobs in a part, %d parts fell back\n",
                count, tally.compared, tally.on_cpu, tally.jobs_max, tally.fallbacks);
    return tally;
  }

  runtime::Target target_;
  FailingDevice* device_ = nullptr;
};

constexpr uint32_t kGraphs = 24;  // per tuning; soaks draw more

TEST_P(RandomGraphs, AgreeWithTheCpuKernels) {
  const uint32_t count = from_environment("SKILLET_RANDOM_GRAPHS", kGraphs);
  const Tally tally = judge_all(count, [](uint32_t) { return -1; });
  if (count < kGraphs) return;
  // With fewer, most of the test would not run on the chip, or would not cover the cases listed at the top.
  EXPECT_GT(tally.compared, static_cast<int>(count));
  const bool takes_nearly_all = std::string_view(std::get<0>(GetParam())).starts_with("ethos");
  if (!takes_nearly_all) {
    EXPECT_GT(tally.on_cpu, static_cast<int>(count) / 5);
  }
  // With four TP cores a reshuffle has enough words to fill several jobs; few networks contain one.
  if (count >= 120 && std::string_view(std::get<0>(GetParam())) == "a311d") {
    EXPECT_GT(tally.jobs_max, 1);
  }
}

TEST_P(RandomGraphs, AreRightWithoutTheDevice) {
  const uint32_t count = from_environment("SKILLET_RANDOM_GRAPHS", kGraphs) / 3;
  const log::ScopedLevel quiet(log::Level::error);  // each fallback is a warning
  const Tally tally = judge_all(count, [](uint32_t seed) { return static_cast<int>(seed % 4); });
  if (count < kGraphs / 3) return;
  EXPECT_GT(tally.fallbacks, static_cast<int>(count) / 4);
}

// Rows of chips with nothing known but ids and parameters compile and compute too.
TEST(OtherChips, AgreeWithTheCpuKernels) {
  const log::ScopedLevel quiet(log::Level::error);
  int chips = 0;
  for (const npu::Chip& chip : (*npu::driver_of(*npu::find_chip("a311d")))->chips()) {
    if (chip.unproven.empty()) continue;
    auto target = runtime::open_target("sim:" + chip.name);
    ASSERT_TRUE(target.ok()) << target.error().message;
    auto failing = std::make_unique<FailingDevice>(std::move(target->context->device));
    FailingDevice& device = *failing;
    target->context->device = std::move(failing);
    Tally tally;
    for (uint32_t seed = 1; seed <= 16; ++seed) {
      const std::string problem = judge(seed, npu::Tuning::proven, *target, device, -1, tally);
      ASSERT_TRUE(problem.empty()) << chip.name << ", seed " << seed << ": " << problem;
    }
    EXPECT_GT(tally.compared, 50) << chip.name;
    ++chips;
  }
  EXPECT_GE(chips, 10);
}

// Checks a graph of one operation on the chip.
void expect_agrees(const std::string& text, const char* chip, npu::Tuning tuning) {
  SCOPED_TRACE(fmt::format("{}, {}: {}", chip, npu::tuning_name(tuning), text));
  const auto graph = ir::parse(text);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto target = runtime::open_target(fmt::format("sim:{}", chip));
  ASSERT_TRUE(target.ok()) << target.error().message;
  auto session = runtime::Session::create(
      *graph, *target,
      {.compile = {.tuning = tuning, .unproven = kUnproven}, .allow_fallback = false, .keep_intermediates = true});
  ASSERT_TRUE(session.ok()) << session.error().message;
  Tally tally;
  EXPECT_EQ(run_and_check(**session, target->chip, random_inputs(*graph, 1), tally), "");
  EXPECT_EQ(tally.compared, 1);
}

// Kernels that do not fit on-chip memory, for each number of other kernels that stay there; and kernels that fit beside
// a tile of the image.
TEST(Convolutions, OfLargeKernelsAgreeWithTheCpuKernels) {
  struct Row {
    int outputs, size, inputs, px = 4;
  };
  for (const Row& row : {Row{64, 3, 1024}, Row{160, 3, 512}, Row{256, 3, 256}, Row{512, 3, 128}, Row{1024, 1, 1024},
                         Row{256, 3, 32, 16}}) {
    const std::string text = fmt::format(
        "tensor 0 \"in\" uint8 1x{3}x{3}x{2} scale=0.02 zero=110\n"
        "tensor 1 \"filter\" uint8 {0}x{1}x{1}x{2} scale=0.01 zero=120 const=random:1\n"
        "tensor 2 \"out\" uint8 1x{3}x{3}x{0} scale=0.5 zero=99\ninputs 0\noutputs 2\nop 0 CONV_2D in=[0 1 -] "
        "out=[2]\n",
        row.outputs, row.size, row.inputs, row.px);
    for (const npu::Tuning tuning : {npu::Tuning::proven, npu::Tuning::tuned}) expect_agrees(text, "a311d", tuning);
  }
}

// Sizes for which the recorded driver makes filters of hundreds of megabytes, or none.
TEST(Additions, OfOddSizesAgreeWithTheCpuKernels) {
  const log::ScopedLevel quiet(log::Level::error);
  for (const char* chip : {"a311d", "imx8mp"}) {
    for (const char* shape : {"1x1x1x16382", "1x7x8193x5", "1x1x3x8000", "1x8191x1x3"}) {
      expect_agrees(
          fmt::format("tensor 0 \"a\" uint8 {0} scale=0.5 zero=3\ntensor 1 \"b\" uint8 {0} scale=0.25 zero=200\n"
                      "tensor 2 \"sum\" uint8 {0} scale=0.75 zero=100\n"
                      "op 0 ADD in=[0 1] out=[2]\ninputs 0 1\noutputs 2\n",
                      shape),
          chip, npu::Tuning::proven);
    }
  }
}

// A chain of windows over tensors that are too large for memory on the chip, so that it is divided into stripes.
ir::Graph chain_of_windows(uint32_t seed) {
  std::mt19937 random(seed);
  const auto draw = [&](int from, int to) { return std::uniform_int_distribution(from, to)(random); };
  const int channels = draw(0, 1) == 0 ? 16 : 23;
  int height = draw(100, 140), width = draw(150, 170), inputs = draw(1, 4);
  const char* const quant = "scale=0.05 zero=120";
  std::string tensors = fmt::format("tensor 0 \"t0\" uint8 1x{}x{}x{} {}\n", height, width, inputs, quant), ops;
  int last = 0, next = 1;
  const int count = draw(3, 6);
  for (int i = 0; i < count; ++i) {
    const int kind = i == 0 ? 0 : draw(0, 3), kernel = draw(1, 5), dilation = kind < 2 ? draw(1, 2) : 1;
    const int stride = i + 1 == count ? 2 : draw(1, 4) == 4 ? 2 : 1, reach = (kernel - 1) * dilation + 1;
    const bool is_same = kind != 3 && draw(0, 1) == 0;  // an average with padding is not divided
    const auto out = [&](int size) { return is_same ? (size + stride - 1) / stride : (size - reach) / stride + 1; };
    height = out(height), width = out(width);
    if (kind < 2) {
      const std::string filter = kind == 0 ? fmt::format("{}x{}x{}x{}", channels, kernel, kernel, inputs)
                                           : fmt::format("1x{}x{}x{}", kernel, kernel, channels);
      tensors += fmt::format(
          "tensor {} \"f{}\" uint8 {} scale=0.01 zero=128 const=random:{}\n"
          "tensor {} \"b{}\" int32 {} scale=0.0005 zero=0 const=random:{}\n",
          next, i, filter, seed + static_cast<uint32_t>(i), next + 1, i, channels, seed);
      ops += fmt::format(
          "op {} {} in=[{} {} {}] out=[{}] padding={} stride_h={} stride_w={} dilation_h={} dilation_w={}{}\n", i,
          kind == 0 ? "CONV_2D" : "DEPTHWISE_CONV_2D", last, next, next + 1, next + 2, is_same ? "same" : "valid",
          stride, stride, dilation, dilation, kind == 0 ? "" : " depth_multiplier=1");
      next += 2;
    } else {
      ops += fmt::format("op {} {} in=[{}] out=[{}] padding={} stride_h={} stride_w={} filter_h={} filter_w={}\n", i,
                         kind == 2 ? "MAX_POOL_2D" : "AVERAGE_POOL_2D", last, next, is_same ? "same" : "valid", stride,
                         stride, kernel, kernel);
    }
    tensors += fmt::format("tensor {} \"t{}\" uint8 1x{}x{}x{} {}\n", next, next, height, width, channels, quant);
    last = next++, inputs = channels;
  }
  return ir::parse(fmt::format("{}inputs 0\noutputs {}\n{}", tensors, last, ops)).value();
}

TEST(Stripes, AgreeWithWholeTensors) {
  const uint32_t count = from_environment("SKILLET_STRIPES", 6), first = from_environment("SKILLET_STRIPES_FIRST", 1);
  size_t cut = 0;
  for (const char* chip : {"ethos-u65-256", "ethos-u65-512"}) {
    const auto target = runtime::open_target(fmt::format("sim:{}", chip));
    ASSERT_TRUE(target.ok()) << target.error().message;
    for (uint32_t seed = first; seed < first + count; ++seed) {
      const ir::Graph graph = chain_of_windows(seed);
      ASSERT_TRUE(ir::verify(graph).ok()) << ir::verify(graph).error().message;
      const auto inputs = random_inputs(graph, seed);
      auto session = runtime::Session::create(
          graph, *target,
          {.compile = {.unproven = npu::Unproven::take}, .allow_fallback = false, .keep_intermediates = true});
      ASSERT_TRUE(session.ok()) << session.error().message;
      Tally tally;
      EXPECT_EQ(run_and_check(**session, target->chip, inputs, tally), "") << chip << ", seed " << seed;
      EXPECT_EQ(check_shared_memory(**session, graph, npu::Tuning::proven, *target, inputs), "")
          << chip << ", seed " << seed << "\n"
          << ir::print(graph).substr(0, 4000);
      const auto program = target->driver->compile(target->chip, graph, {});
      ASSERT_TRUE(program.ok()) << program.error().message;
      cut += program->operations.size() > graph.ops.size() ? 1 : 0;
    }
  }
  EXPECT_GT(cut, count);
}

// Softmax as 32-bit operations: bit-exact, whether one value is far above the others or all are equal.
TEST(Softmax, OfEthosUHasTheBitsOfTheCpuKernel) {
  for (const char* chip : {"ethos-u55-32", "ethos-u65-512"}) {
    const auto target = runtime::open_target(fmt::format("sim:{}", chip));
    ASSERT_TRUE(target.ok()) << target.error().message;
    uint32_t seed = 0;
    for (const char* shape : {"1x1", "1x10", "3x1001", "1x4x5x3", "2x3x2x21"}) {
      for (const char* type : {"int8", "uint8"}) {
        for (const char* scale : {"0.0001", "0.004", "0.1", "3"}) {
          const bool is_signed = type[0] == 'i';
          const auto graph = ir::parse(fmt::format(
              "tensor 0 \"in\" {0} {1} scale={2} zero={3}\n"
              "tensor 1 \"out\" {0} {1} scale=0.00390625 zero={4}\n"
              "op 0 SOFTMAX in=[0] out=[1] beta={5}\ninputs 0\noutputs 1\n",
              type, shape, scale, is_signed ? 3 : 100, is_signed ? -128 : 0, ++seed % 2 == 0 ? "1" : "0.7"));
          ASSERT_TRUE(graph.ok()) << graph.error().message;
          auto session = runtime::Session::create(
              *graph, *target,
              {.compile = {.unproven = npu::Unproven::take}, .allow_fallback = false, .keep_intermediates = true});
          ASSERT_TRUE(session.ok()) << session.error().message;
          Tally tally;
          EXPECT_EQ(run_and_check(**session, target->chip, random_inputs(*graph, seed), tally), "")
              << chip << " " << type << " " << shape << " " << scale;
          EXPECT_EQ(tally.compared, 1) << chip << " " << type << " " << shape << " " << scale;
        }
      }
    }
  }
}

std::string name_of(const testing::TestParamInfo<std::tuple<const char*, npu::Tuning>>& test) {
  const bool proven = std::get<1>(test.param) == npu::Tuning::proven;
  std::string name = fmt::format("{}_{}", std::get<0>(test.param), proven ? "proven" : "tuned");
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Chips, RandomGraphs,
                         testing::Combine(testing::Values("a311d", "imx8mp", "s905d3", "rk3588"),
                                          testing::Values(npu::Tuning::proven, npu::Tuning::tuned)),
                         name_of);
// Chips with one tuning.
INSTANTIATE_TEST_SUITE_P(OfOneTuning, RandomGraphs,
                         testing::Combine(testing::Values("rk3576", "ethos-u65-256", "ethos-u65-512", "ethos-u55-256",
                                                          "ethos-u55-128", "ethos-u55-64", "ethos-u55-32"),
                                          testing::Values(npu::Tuning::proven)),
                         name_of);

}  // namespace
}  // namespace skillet
