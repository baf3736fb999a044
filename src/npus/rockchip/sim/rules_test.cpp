// Rules that programs can break, and the sources of options.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "base/testing/in_tree.h"
#include "npus/rockchip/sim/device.h"
#include "npus/rockchip/sim/test_support.h"
#include "sim/timing.h"

namespace skillet::sim::rockchip {
namespace {

using testing::Conv;
using testing::conv_program;
using testing::Program;
using testing::Scene;

std::unique_ptr<Npu> make_npu(const Options& options = {}) { return std::move(Npu::create("rk3588", options)).value(); }

Result<TaskResult> run(Scene& scene, const Program& program, const Options& options = {}) {
  return make_npu(options)->run_task(0, scene.load(program.stream()), scene.memory);
}

template <typename T, typename Change>
Program with(Change change, Program program = conv_program({})) {
  program.change<T>(change);
  return program;
}

// Programs that break exactly one rule. With the rule off, the task ends; at fault, it stops with the rule's variable.
struct Breach {
  const char* rule;
  Program program;
  Task task;  // only the next task's fields are used
  const char* message;
};

std::vector<Breach> breaches() {
  Program no_pointer = conv_program({}), one_group = conv_program({}), late = conv_program({});
  no_pointer.registers.erase(hw::DpuRdmaSPointer::kAddress);
  one_group.registers[hw::DpuSPointer::kAddress] = 0;
  Program of_kernel = conv_program({});
  of_kernel.registers[hw::CnaSPointer::kAddress] = hw::kPointerPingPong;
  late.before_start.insert(late.before_start.begin(),
                           testing::command_word(hw::Target::dpu, hw::kPointerPingPong, hw::DpuSPointer::kAddress));
  late.registers.erase(hw::DpuSPointer::kAddress);
  Program amount = conv_program({}), elsewhere = conv_program({}), too_few = conv_program({});
  amount.before_start = {0, testing::command_word(hw::Target::pc, 1, hw::PcRegisterAmounts::kAddress)};
  const auto next = [](uint32_t address, uint32_t fetches) {
    return std::vector{testing::command_word(hw::Target::pc, address, hw::PcBaseAddress::kAddress),
                       testing::command_word(hw::Target::pc, fetches, hw::PcRegisterAmounts::kAddress)};
  };
  elsewhere.before_start = next(0x2000, 64);
  too_few.before_start = next(0x3000, 63);
  const Task followed{.next_regcmd = 0x3000, .next_regcmd_count = 130};
  // Each row of one atom takes a unit; a bank has 512.
  Program column = conv_program({.in_h = 500, .in_w = 1, .out_h = 500, .out_w = 1, .kernel_w = 1, .pad_left = 0});
  column.set(hw::CnaCbufCon0{.data_bank = 1, .weight_bank = 11});
  Program large = conv_program({.in_h = 27,
                                .in_w = 27,
                                .in_c = 48,
                                .out_h = 1,
                                .out_w = 1,
                                .kernel_h = 27,
                                .kernel_w = 27,
                                .pad_top = 0,
                                .pad_left = 0});
  large.set(hw::CnaCbufCon0{.data_bank = 11, .weight_bank = 1});
  return {
      {"pointers", no_pointer, {}, "s_pointer of block 16"},
      {"pointers", one_group, {}, "s_pointer of block 8"},
      {"pointers", of_kernel, {}, "register 0x1004: the kernel writes"},
      {"pointers", late, {}, "s_pointer of block 8"},
      {"stream_end", amount, {}, "4 commands of a next task without an address"},
      {"next_task", elsewhere, followed, "130 commands at 0x2000, the job's next task has 130 at 0x3000"},
      {"next_task", too_few, followed, "128 commands at 0x3000, the job's next task has 130"},
      {"feature_grains", with<hw::CnaConvCon2>([](auto& f) { f.feature_grains = 1; }), {}, "needs 2 rows"},
      {"operand_surfaces", conv_program({.in_h = 3, .in_w = 3, .out_h = 3, .out_w = 3, .add = true}), {}, "9 pixels"},
      {"spare_bank", column, {}, "500 units of one column"},
      {"streamed_kernel", large, {}, "34992 bytes of one kernel, a bank has 32768"}};
}

TEST(RockchipRules, EachCanBeBroken) {
  for (const Breach& breach : breaches()) {
    const auto rows = option_rows();
    const auto row = std::ranges::find(rows, std::string_view(breach.rule), &OptionRow::member);
    ASSERT_NE(row, rows.end()) << breach.rule;
    for (const size_t how : {0, 1, 2}) {
      Options options;
      row->set(options, how);
      Scene scene(1, 0x40000);
      scene.memory.unmap(testing::kWeights);
      scene.buffers[testing::kWeights].resize(0x180000);
      ASSERT_TRUE(scene.memory.map(testing::kWeights, scene.buffers[testing::kWeights], "weights").ok());
      Task task = scene.load(breach.program.stream());
      task.next_regcmd = breach.task.next_regcmd;
      task.next_regcmd_count = breach.task.next_regcmd_count;
      const auto result = make_npu(options)->run_task(0, task, scene.memory);
      if (how < 2) {
        ASSERT_TRUE(result.ok()) << breach.rule << ": " << result.error().message;
        EXPECT_TRUE(result->completes()) << breach.rule << ": " << result->stall;
        continue;
      }
      ASSERT_FALSE(result.ok()) << breach.rule;
      EXPECT_NE(result.error().message.find(breach.message), std::string::npos) << result.error().message;
      EXPECT_NE(result.error().message.find(row->variable), std::string::npos) << result.error().message;
    }
  }
}

// Fillers after the start are counted in the stream's length; one more filler, which only the fetch includes, is not.
TEST(RockchipRules, TheStartIsTheLastCommand) {
  Scene scene;
  std::vector<uint64_t> words = conv_program({}).stream();
  words.resize(words.size() + 2, 0);
  const Task longer = scene.load(words);
  const auto refused = make_npu()->run_task(0, longer, scene.memory);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("follows the start"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(make_npu({.stream_end = Enforce::off})->run_task(0, longer, scene.memory)->completes());
  words.insert(words.begin(), 0);
  Task odd = scene.load(words);
  odd.regcmd_count -= 2;
  const auto taken = make_npu()->run_task(0, odd, scene.memory);
  EXPECT_TRUE(taken.ok() && taken->completes()) << taken.error().message;
}

// Reused weights that the job has not fetched; weights that leave no bank free.
TEST(RockchipRules, ReusedWeights) {
  const Conv conv{.in_c = 32, .out_c = 32};  // 9216 bytes
  const auto second = [&](const Options& options, uint64_t address, uint32_t banks) {
    Program first = with<hw::CnaCbufCon0>([&](auto& f) { f.weight_bank = banks; }, conv_program(conv));
    Program reuse = with<hw::CnaCbufCon0>([](auto& f) { f.weight_reuse = true; }, first);
    reuse.set(hw::CnaDcompAddr0{.decompress_addr0 = {{bits::Address::kAbsolute, address}}});
    Scene scene;
    const auto npu = make_npu(options);
    EXPECT_TRUE(npu->run_task(0, scene.load(first.stream()), scene.memory)->completes());
    Task task = scene.load(reuse.stream());
    task.first_of_job = false;
    const auto result = npu->run_task(0, task, scene.memory);
    return result.ok() ? "" : result.error().message;
  };
  EXPECT_EQ(second({}, testing::kWeights, 2), "");
  EXPECT_NE(second({}, testing::kWeights + 9216, 2).find("SKILLET_SIM_REUSED_WEIGHTS"), std::string::npos);
  EXPECT_EQ(second({.reused_weights = Enforce::off}, testing::kWeights + 9216, 2), "");
  EXPECT_EQ(second({}, testing::kWeights, 1), "") << "recorded jobs do this: a warning";
  EXPECT_NE(second({.free_weight_bank = Enforce::fault}, testing::kWeights, 1).find("none of them is free"),
            std::string::npos);
}

TEST(RockchipRules, AColumnHasASpareBankWhereItsLastIsNearlyFull) {
  for (const auto& [rows, banks, fits] : {std::tuple{496, 1U, true},
                                          {497, 1U, false},
                                          {512, 1U, false},
                                          {512, 2U, true},
                                          {513, 2U, true},
                                          {1009, 2U, false},
                                          {1009, 3U, true}}) {
    Program program = conv_program({.in_h = rows, .in_w = 1, .out_h = rows, .out_w = 1, .kernel_w = 1, .pad_left = 0});
    program.set(hw::CnaCbufCon0{.data_bank = banks, .weight_bank = 9});
    Scene scene(1, 0x20000);
    const auto result = run(scene, program);
    EXPECT_EQ(result.ok(), fits) << rows << " rows in " << banks << (result.ok() ? "" : result.error().message);
  }
}

// The tasks of a job in order, until together they exceed the kernel's time limit.
TEST(RockchipRules, TheKernelGivesUpLongJobs) {
  const Conv conv{.in_h = 64, .in_w = 64, .in_c = 16, .out_h = 64, .out_w = 64, .out_c = 32};
  constexpr double kTaskMs = 64 * 64 * 9 / 200e3;
  Scene scene(1, 0x40000);
  const Task task = scene.load(conv_program(conv).stream());
  EXPECT_EQ(make_npu()->run_task(0, task, scene.memory)->cycles, 64 * 64 * 9);
  const Commands commands{.bytes = {}, .address = task.regcmd, .size_bytes = task.regcmd_count * uint64_t{8}};
  const std::vector<Commands> tasks(4, commands);
  const auto run_job = [&](const Options& options) {
    const auto device = create_device("rk3588", options);
    return (*device)->run({.commands = tasks}, scene.memory);
  };
  EXPECT_TRUE(run_job({}).ok());
  EXPECT_TRUE(run_job({.job_time = Enforce::off, .max_job_ms = kTaskMs}).ok());
  const auto late = run_job({.max_job_ms = 2.5 * kTaskMs});
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, ErrorCode::timeout);
  EXPECT_NE(late.error().message.find("task 2: the job"), std::string::npos) << late.error().message;
}

// Timers and readers of weights accept programs that break rules.
TEST(RockchipRules, AreNotForThoseWhoReadJobs) {
  for (const Breach& breach : breaches()) {
    Scene scene(1, 0x40000);
    const Task task = scene.load(breach.program.stream());
    const Commands commands{.bytes = {}, .address = task.regcmd, .size_bytes = task.regcmd_count * uint64_t{8}};
    const auto timed = create_timer("rk3588", Jobs::open).value()->time_job({.commands = {&commands, 1}}, scene.memory);
    EXPECT_TRUE(timed.ok()) << breach.rule << ": " << timed.error().message;
  }
}

TEST(RockchipOptions, ComeFromTheEnvironment) {
  const auto with_variable = [](const char* variable, const char* value) {
    EXPECT_EQ(setenv(variable, value, 1), 0);
    auto options = options_from_environment();
    EXPECT_EQ(unsetenv(variable), 0);
    return options;
  };
  const Options defaults;
  std::set<std::string_view> variables;
  for (const OptionRow& row : option_rows()) {
    EXPECT_TRUE(variables.insert(row.variable).second) << row.variable;
    for (size_t value = 0; value < row.names.size(); ++value) {
      const auto options = with_variable(row.variable, std::string(row.names[value]).c_str());
      ASSERT_TRUE(options.ok()) << options.error().message;
      for (const OptionRow& other : option_rows())
        EXPECT_EQ(other.get(*options), other.member == row.member ? value : other.get(defaults))
            << row.variable << " changes " << other.member;
    }
    const auto wrong = with_variable(row.variable, "foo");
    ASSERT_FALSE(wrong.ok());
    EXPECT_NE(wrong.error().message.find(fmt::format("{}=foo: must be one of {}", row.variable, row.names[0])),
              std::string::npos);
    EXPECT_EQ(row.get(*with_variable(row.variable, "")), row.get(defaults)) << "empty is not set";
  }
}

// The page of options lists each variable with its values and their meanings.
TEST(RockchipOptions, AreOnTheirPage) {
  std::ifstream file(in_tree("docs/hw/rockchip.md"));
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ASSERT_FALSE(page.empty());
  for (const OptionRow& row : option_rows()) {
    std::string names;
    for (size_t i = 0; i < row.names.size(); ++i)
      names += fmt::format("{}`{}`{}", i == 0 ? "" : ", ", row.names[i], i == row.get({}) ? " (default)" : "");
    const std::string line = fmt::format("| `{}` | {} | {} |", row.variable, names, row.what);
    EXPECT_NE(page.find(line), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace skillet::sim::rockchip
