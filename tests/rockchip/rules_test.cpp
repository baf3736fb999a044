// Programs of `proven` and `tuned` follow every rule of the simulator, including rules that recorded jobs break. Each
// graph needs a precaution that no other graph here needs. Jobs run in a random order.
#include <gtest/gtest.h>

#include <cstdlib>

#include "graph_judge.h"
#include "runtime/record_program.h"
#include "sim/timing.h"

namespace skillet::rockchip_graphs {
namespace {

using npu::Tuning;

// Must run before the first device is opened.
class StrictRules : public ::testing::Environment {
 public:
  void SetUp() override {
    for (const char* rule : {"SKILLET_SIM_OVER_READ", "SKILLET_SIM_FREE_WEIGHT_BANK"})
      ASSERT_EQ(setenv(rule, "fault", 1), 0);
    ASSERT_EQ(setenv("SKILLET_SIM_SEED", "7", 1), 0);
  }
};
const auto* const kStrict = ::testing::AddGlobalTestEnvironment(new StrictRules);

std::string conv(int id, int from, const char* filter, const char* out, const char* attributes = "") {
  return weights(id, filter) + tensor(id + 1, out, 0.05F, 99) +
         fmt::format("op {} CONV_2D in=[{} {} -] out=[{}] {}\n", (id - 1) / 2, from, id, id + 1, attributes);
}
std::string one_conv(const char* in, const char* filter, const char* out, const char* attributes = "") {
  return tensor(0, in, 0.02F, 110) + "inputs 0\noutputs 2\n" + conv(1, 0, filter, out, attributes);
}

// A chain one longer than the number of steps within which the addition may be fused.
std::string sum_after_chain(const char* operands) {
  std::string text = tensor(0, "1x6x6x32", 0.02F, 110) + "inputs 0\noutputs 9\n";
  for (int i = 0; i < 4; ++i) text += conv(2 * i + 1, 2 * i, "32x3x3x32", "1x6x6x32");
  return text + tensor(9, "1x6x6x32", 0.05F, 99) + fmt::format("op 4 ADD in=[{}] out=[9]\n", operands);
}

std::vector<Row> rows() {
  const std::string chain = tensor(0, "1x6x6x16", 0.02F, 110) + "inputs 0\noutputs 6\n" +
                            conv(1, 0, "32x3x3x16", "1x6x6x32") + conv(3, 2, "16x3x3x32", "1x6x6x16") +
                            conv(5, 4, "8x3x3x16", "1x6x6x8");
  return {
      {"rows before the first output row", one_conv("1x9x9x16", "8x5x5x16", "1x5x5x8", "padding=valid"), 1},
      {"dilated rows", one_conv("1x30x9x16", "8x3x3x16", "1x10x5x8", "padding=valid dilation_h=10 dilation_w=2"), 1},
      {"one column, a full bank", one_conv("1x32x1x1024", "32x1x1x1024", "1x32x1x32"), 1},
      {"one column, nearly a full bank", one_conv("1x125x1x256", "32x1x1x256", "1x125x1x32"), 1},
      {"one column in parts", one_conv("1x600x1x1024", "32x1x1x1024", "1x600x1x32"), 1},
      {"rows past streamed weights", one_conv("1x20x16x1024", "512x1x1x1024", "1x20x16x512"), 1},
      {"rows past weights that stay, in parts", one_conv("1x4x1024x80", "256x3x3x80", "1x4x1024x256"), 1},
      {"weights that nearly fill their banks", one_conv("1x40x100x64", "100x3x3x64", "1x40x100x100"), 1},
      {"depthwise in parts",
       tensor(0, "1x40x100x256", 0.02F, 110) + weights(1, "1x3x3x256") + tensor(2, "1x40x100x256", 0.05F, 99) +
           "inputs 0\noutputs 2\nop 0 DEPTHWISE_CONV_2D in=[0 1 -] out=[2]\n",
       1},
      {"small surfaces added",
       tensor(0, "1x3x3x64", 0.02F, 110) + tensor(1, "1x3x3x64", 0.03F, 120) + tensor(2, "1x3x3x64", 0.05F, 99) +
           "inputs 0 1\noutputs 2\nop 0 ADD in=[0 1] out=[2]\n",
       0},
      {"one pixel added",
       tensor(0, "1x1x1x32", 0.02F, 110) + tensor(1, "1x1x1x32", 0.03F, 120) + tensor(2, "1x1x1x32", 0.05F, 99) +
           "inputs 0 1\noutputs 2\nop 0 ADD in=[0 1] out=[2]\n",
       0},
      {"a chain in shared memory", chain, 3},
      {"a sum of what is new and old", sum_after_chain("8 2"), 0},
      {"a sum of what is old and new", sum_after_chain("2 8"), 0},
      {"a table",
       tensor(0, "1x6x6x32", 0.02F, 110) + tensor(1, "1x6x6x32", 0.00390625F, 0) +
           "inputs 0\noutputs 1\nop 0 LOGISTIC in=[0] out=[1]\n",
       1},
      {"the largest of a window",
       tensor(0, "1x9x9x32", 0.02F, 110) + tensor(1, "1x4x4x32", 0.02F, 110) +
           "inputs 0\noutputs 1\nop 0 MAX_POOL_2D in=[0] out=[1] stride_h=2 stride_w=2 "
           "filter_h=3 filter_w=3 padding=valid\n",
       0},
  };
}

void judge_all(Tuning tuning) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.what);
    judge(row, 1, {.tuning = tuning, .unproven = npu::Unproven::take});
  }
}
TEST(RockchipRules, ProvenProgramsKeepThem) { judge_all(Tuning::proven); }
TEST(RockchipRules, TunedProgramsKeepThem) { judge_all(Tuning::tuned); }

// Each choice that the driver offers for a graph's operations.
TEST(RockchipRules, EachChoiceKeepsThem) {
  const npu::Chip chip = npu::find_chip("rk3588").value();
  size_t tried = 0;
  for (const Row& row : rows()) {
    const auto graph = ir::parse("graph \"\"\n" + row.text);
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const npu::CompileOptions tuned{.tuning = Tuning::tuned, .unproven = npu::Unproven::take};
    const auto choices = npu::driver_of(chip).value()->choices(chip, *graph, tuned);
    ASSERT_TRUE(choices.ok()) << choices.error().message;
    for (const npu::Choice& choice : *choices) {
      SCOPED_TRACE(fmt::format("{}: {} {}", row.what, choice.name, choice.value));
      npu::CompileOptions options = tuned;
      options.choices = {choice};
      judge({row.what, row.text, 0}, 1, options);
      ++tried;
    }
  }
  EXPECT_GT(tried, 10U);
}

// A filter with kernels larger than a bank: refused, or computed as the rules demand.
TEST(RockchipRules, OfKernelsLargerThanABank) {
  const auto graph = ir::parse("graph \"\"\n" + one_conv("1x3x3x3664", "32x3x3x3664", "1x1x1x32", "padding=valid"));
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto target = runtime::open_target("sim:rk3588");
  for (const Tuning tuning : {Tuning::proven, Tuning::tuned}) {
    // Without verification: the session would find errors itself and move the operation to the CPU.
    const auto session = runtime::Session::create(
        *graph, *target, {.compile = {.tuning = tuning, .unproven = npu::Unproven::take}, .allow_fallback = false});
    ASSERT_TRUE(session.ok()) << session.error().message;
    run(**session, 3);
  }
}

// At the clock of the stock kernel each job takes far less than its time limit.
void jobs_end_in_time(const std::string& text) {
  const auto graph = ir::parse("graph \"\"\n" + text);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const npu::Chip chip = npu::find_chip("rk3588").value();
  for (const Tuning tuning : {Tuning::proven, Tuning::tuned}) {
    auto program = npu::driver_of(chip).value()->compile(chip, *graph, {.tuning = tuning});
    ASSERT_TRUE(program.ok()) << program.error().message;
    std::vector<runtime::ProgramToRecord> programs(1);
    programs[0].program = std::move(program).value();
    const auto recorded = runtime::record_programs("rk3588", std::move(programs));
    ASSERT_TRUE(recorded.ok()) << recorded.error().message;
    const sim::ParameterValue stock[] = {{"clock_ghz", 0.2}};
    const auto timer = sim::create_timer("rk3588", sim::Jobs::open, stock).value();
    size_t jobs = 0;
    double total_ms = 0;
    for (const capture::Submission& submission : recorded->capture.submissions) {
      sim::Memory memory;
      std::vector<Bytes> bytes;
      bytes.reserve(submission.buffers.size());
      for (const capture::BufferSnapshot& buffer : submission.buffers) {
        bytes.emplace_back(buffer.bytes.begin(), buffer.bytes.end()).resize(buffer.size_bytes);
        ASSERT_TRUE(memory.map(buffer.address, bytes.back(), "buffer").ok());
      }
      for (const capture::Job& job : submission.jobs) {
        std::vector<sim::Commands> tasks;
        for (const capture::Commands& one : job.commands)
          tasks.push_back({.bytes = {}, .address = one.address, .size_bytes = one.size_bytes});
        const auto costs = timer->time_job({.commands = tasks}, memory);
        ASSERT_TRUE(costs.ok()) << costs.error().message;
        const double ms = sim::total(*costs).us / 1e3;
        EXPECT_LT(ms, 250) << "job " << jobs;
        total_ms += ms;
        ++jobs;
      }
    }
    EXPECT_GT(jobs, 1U);
    EXPECT_GT(total_ms, 300) << "says nothing";
  }
}

// Operations of one task each, and tasks that need the weights of the one before.
TEST(RockchipRules, JobsEndInTime) {
  std::string text =
      tensor(0, "1x48x48x64", 0.02F, 110) + weights(1, "2048x7x7x64") + "inputs 0\noutputs 2 3 4 5 6 7 8 9\n";
  for (int i = 0; i < 8; ++i)
    text += tensor(2 + i, "1x48x48x2048", 0.05F, 99) + fmt::format("op {} CONV_2D in=[0 1 -] out=[{}]\n", i, 2 + i);
  jobs_end_in_time(text);
  jobs_end_in_time(one_conv("1x2560x128x128", "32x7x7x128", "1x2560x128x32"));
}

}  // namespace
}  // namespace skillet::rockchip_graphs
