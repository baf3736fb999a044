// Commands, register groups, cores, completion, faults and stalls.
#include "npus/rockchip/sim/npu.h"

#include <gtest/gtest.h>

#include "npus/rockchip/sim/test_support.h"

namespace skillet::sim::rockchip {
namespace {

using testing::Conv;
using testing::conv_program;
using testing::Program;
using testing::Scene;

std::unique_ptr<Npu> make_npu(const Options& options = {}) { return std::move(Npu::create("rk3588", options)).value(); }

Result<TaskResult> run(Scene& scene, const Program& program, const Options& options = {}, int core = 0) {
  return make_npu(options)->run_task(core, scene.load(program.stream()), scene.memory);
}

TEST(RockchipNpu, KnowsItsChips) {
  EXPECT_EQ(make_npu()->cores(), 3);
  EXPECT_EQ(Npu::create("rk3576").value()->cores(), 2);
  EXPECT_NE(Npu::create("rk3568").error().message.find("not modelled"), std::string::npos);
  EXPECT_NE(Npu::create("a311d").error().message.find("there are rk3588, rk3576"), std::string::npos);
  Scene scene;
  EXPECT_FALSE(make_npu()->run_task(3, {}, scene.memory).ok());
}

TEST(RockchipNpu, CompletionBitsFollowTheGroup) {
  Scene scene;
  const auto npu = make_npu();
  const Task task = scene.load(conv_program({}).stream());
  for (const uint32_t dpu : {0x100U, 0x200U, 0x100U}) {
    const auto result = npu->run_task(0, task, scene.memory);
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(result->raw_status & 0x300, dpu);
    EXPECT_EQ(result->raw_status & 0xff, dpu == 0x100 ? 0x55U : 0xAAU);
    EXPECT_TRUE(result->completes());
  }
}

TEST(RockchipNpu, CoresComputeTheSame) {
  Bytes first;
  for (int core = 0; core < 3; ++core) {
    Scene scene;
    const auto result = run(scene, conv_program({}), {}, core);
    ASSERT_TRUE(result.ok() && result->completes()) << core;
    if (core == 0) first = scene.output();
    EXPECT_EQ(scene.output(), first) << core;
  }
  EXPECT_NE(first[0], 0xEE);
}

// A group keeps what was written two tasks before.
TEST(RockchipNpu, RegistersAreStalePerGroup) {
  Conv even, odd;
  odd.zero_out = 20;
  Bytes results[2];
  for (int i = 0; i < 2; ++i) {
    Scene scene;
    ASSERT_TRUE(run(scene, conv_program(i == 0 ? even : odd))->completes());
    results[i] = scene.output();
  }
  ASSERT_NE(results[0], results[1]);
  Scene scene;
  const auto npu = make_npu({.stale_registers = Enforce::off, .pointers = Enforce::off});
  ASSERT_TRUE(npu->run_task(0, scene.load(conv_program(even).stream()), scene.memory)->completes());
  ASSERT_TRUE(npu->run_task(0, scene.load(conv_program(odd).stream()), scene.memory)->completes());
  Program nothing{.blocks = 0x1D};
  for (int task = 2; task < 6; ++task) {
    const auto result = npu->run_task(0, scene.load(nothing.stream()), scene.memory);
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(scene.output(), results[task % 2]) << task;
  }
  npu->reset(0);
  EXPECT_FALSE(npu->run_task(0, scene.load(nothing.stream()), scene.memory).ok()) << "registers are 0 after a reset";
}

TEST(RockchipNpu, StaleRegistersAreAFault) {
  Scene scene;
  const auto npu = make_npu();
  const Task whole = scene.load(conv_program({}).stream());
  for (int i = 0; i < 3; ++i) {
    const auto result = npu->run_task(0, whole, scene.memory);
    ASSERT_TRUE(result.ok()) << result.error().message;
  }
  Program partial = conv_program({});
  partial.registers.erase(hw::DpuOutCvtShift::kAddress);
  const auto result = npu->run_task(0, scene.load(partial.stream()), scene.memory);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("dpu.out_cvt_shift is used, but no command"), std::string::npos);
}

// The second task of a chain reads what the first wrote; without task_number 2 the redirection does nothing.
TEST(RockchipNpu, TasksChain) {
  Conv first{.in_c = 32, .out_c = 32, .pad_top = 1, .pad_left = 1};
  Program a = conv_program(first), b = a;
  b.set(hw::CnaFeatureDataAddr{.feature_base_addr = {bits::Address::kAbsolute, testing::kOutput}});
  b.set(hw::DpuDstBaseAddr{.dst_base_addr = {bits::Address::kAbsolute, testing::kOutput + 0x8000}});
  const auto second_words = b.stream();
  constexpr uint64_t kSecondStream = 0x2000;
  const auto half = static_cast<uint32_t>(ceil_div(second_words.size(), size_t{2}) - 1);
  a.before_start = {testing::command_word(hw::Target::pc, testing::kStream + kSecondStream, 0x10),
                    testing::command_word(hw::Target::pc, half, 0x14)};
  for (const uint32_t number : {1U, 2U}) {
    Scene scene;
    scene.load(second_words, kSecondStream);
    Task task = scene.load(a.stream());
    task.task_number = number;
    const auto result = make_npu()->run_task(0, task, scene.memory);
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(result->tasks, number);
    EXPECT_EQ(scene.output()[0x8000] != 0xEE, number == 2);
    EXPECT_EQ(result->raw_status & 0x300, number == 2 ? 0x200U : 0x100U);
  }
}

TEST(RockchipNpu, WeightsAreReusedWithinAJob) {
  const Conv conv{.in_c = 32, .out_c = 32};
  Program reuse = conv_program(conv);
  reuse.change<hw::CnaCbufCon0>([](hw::CnaCbufCon0& f) { f.weight_reuse = true; });
  Scene scene;
  const auto npu = make_npu();
  ASSERT_TRUE(npu->run_task(0, scene.load(conv_program(conv).stream()), scene.memory)->completes());
  const Bytes with_weights = scene.output();
  scene.buffers[testing::kWeights].assign(scene.buffers[testing::kWeights].size(), 0);
  Task task = scene.load(reuse.stream());
  task.first_of_job = false;
  ASSERT_TRUE(npu->run_task(0, task, scene.memory)->completes());
  EXPECT_EQ(scene.output(), with_weights);
  task.first_of_job = true;
  const auto alone = npu->run_task(0, task, scene.memory);
  ASSERT_FALSE(alone.ok());
  EXPECT_NE(alone.error().message.find("no task of the job fetched weights"), std::string::npos);
}

struct Bad {
  const char* what;
  Program program;
  const char* message;
};

template <typename T, typename Change>
Program with(Change change, Program program = conv_program({})) {
  program.change<T>(change);
  return program;
}

TEST(RockchipNpu, FaultsNameTheField) {
  Program unknown = conv_program({}), foreign = conv_program({});
  unknown.registers[0x1018] = 1;
  foreign.before_start.push_back(testing::command_word(hw::Target::cna, 0, 0x4010));
  Program read_only = conv_program({}), after = conv_program({});
  read_only.registers[hw::CnaSStatus::kAddress] = 0;
  const Program add = conv_program({.add = true});
  Program function = conv_program({});
  function.registers[hw::DpuBsCfg::kAddress] ^= 2U << 16 ^ 3U << 16;
  const Bad cases[] = {
      {"ALU", function, "dpu.bs_cfg.bs_alu_algo = 3: a value without"},
      {"clamp", with<hw::DpuBsCfg>([](auto& f) { f.bs_relu_bypass = f.bs_relux_en = true; }),
       "dpu.bs_cfg: an upper clamp without ReLU"},
      {"operand's clamp", with<hw::DpuEwCfg>([](auto& f) { f.ew_relu_bypass = f.ew_relux_en = true; }, add),
       "dpu.ew_cfg: an upper clamp without ReLU"},
      {"shared operand", with<hw::DpuRdmaFeatureModeCfg>([](auto& f) { f.comb_use = 1; }, add), "comb_use = 1 with a"},
      {"reader of the operand", with<hw::DpuRdmaFeatureModeCfg>([](auto& f) { f.mrdma_disable = true; }, add),
       "comb_use = 5 with a convolution"},
      {"no kernels", with<hw::CnaWeightSize2>([](auto& f) { f.weight_kernels = 0; }), "0 kernels of"},
      {"no taps", with<hw::CnaWeightSize2>([](auto& f) { f.weight_width = 0; }), "kernels of 3x0"},
      {"unknown register", unknown, "register 0x1018: there is none"},
      {"target and address", foreign, "dpu.data_format: not a register of the command's target"},
      {"read only", read_only, "cna.s_status: read only"},
      {"precision", with<hw::CnaConvCon1>([](auto& f) { f.in_precision = hw::MacPrecision::fp16; }),
       "cna.conv_con1.in_precision = fp16: only int8 is modelled"},
      {"deconvolution", with<hw::CnaConvCon1>([](auto& f) { f.deconv = true; }), "cna.conv_con1.deconv = true"},
      {"bank", with<hw::CnaCbufCon0>([](auto& f) { f.fc_data_bank = 1; }), "cna.cbuf_con0.fc_data_bank = 1"},
      {"banks", with<hw::CnaCbufCon0>([](auto& f) { f.data_bank = 7; }), "7 data and 6 weight banks of 12"},
      {"weights", with<hw::CnaWeightSize0>([](auto& f) { f.weight_bytes += 16; }),
       "cna.weight_size0: 4624 bytes, 32 kernels of 144 need 4608"},
      {"entries", with<hw::CnaCbufCon1>([](auto& f) { f.data_entries = 1; }), "data_entries = 1: a row needs 2"},
      {"overflow", with<hw::CnaCbufCon1>([](auto& f) { f.data_entries = 4000; }), "6 banks have 3072"},
      {"sizes", with<hw::DpuDataCubeWidth>([](auto& f) { f.width = 4; }), "disagree"},
      {"shift", with<hw::DpuOutCvtShift>([](auto& f) { f.out_cvt_shift = 64; }), "only six bits"},
      {"table", with<hw::DpuEwCfg>([](auto& f) { f.ew_bypass = f.ew_lut_bypass = false; }), "lut_lo_le_mux 0"},
      {"overlap", with<hw::DpuDstBaseAddr>([](auto& f) { f.dst_base_addr.offset = testing::kInput + 16; }),
       "overlaps the features"},
  };
  for (const Bad& bad : cases) {
    Scene scene;
    const auto result = run(scene, bad.program);
    ASSERT_FALSE(result.ok()) << bad.what << ": " << result->stall;
    EXPECT_NE(result.error().message.find(bad.message), std::string::npos)
        << bad.what << ": " << result.error().message;
  }
}

// Six banks of 512 units: rows that fill them exactly, and rows that need one unit more.
TEST(RockchipNpu, RowsFillTheBanksToTheLastUnit) {
  struct Row {
    int rows;
    uint32_t entries;
    bool fits;
  };
  for (const Row& row : {Row{6, 512, true}, Row{6, 513, false}, Row{7, 438, true}, Row{7, 439, false}}) {
    const Program program = with<hw::CnaCbufCon1>([&](auto& f) { f.data_entries = row.entries; },
                                                  conv_program({.in_h = row.rows, .out_h = row.rows}));
    Scene scene;
    const auto result = run(scene, program);
    EXPECT_EQ(result.ok(), row.fits) << row.rows << " rows of " << row.entries
                                     << " units: " << (result.ok() ? "taken" : result.error().message);
  }
}

TEST(RockchipNpu, StallsSayWhy) {
  Program no_start = conv_program({}), wrong_core = conv_program({});
  wrong_core.registers[hw::CnaSPointer::kAddress] = 0x1000000E;
  Program partial = conv_program({.out_c = 32});
  for (const uint32_t address :
       {hw::CoreDataoutSize1::kAddress, hw::DpuWdmaSize0::kAddress, hw::DpuRdmaDataCubeChannel::kAddress})
    partial.registers[address] = 15;
  const Bad cases[] = {
      {"core index", wrong_core, "cna: s_pointer.core_index is 1 on core 0"},
      {"partial group", partial, "ends inside a group of 32"},
      {"reader without taker", with<hw::DpuRdmaFeatureModeCfg>([](auto& f) { f.mrdma_disable = false; }),
       "mrdma_disable = false, but nothing takes its data"},
      {"operand without reader",
       with<hw::DpuRdmaErdmaCfg>([](auto& f) { f.erdma_disable = true; }, conv_program({.add = true})),
       "erdma_disable is set"},
      {"multiplier from memory", with<hw::DpuRdmaNrdmaCfg>([](auto& f) { f.nrdma_data_use = 4; }),
       "the BN stage hangs"},
      {"unmapped features", with<hw::CnaFeatureDataAddr>([](auto& f) { f.feature_base_addr.offset = 0x700000; }),
       "IOMMU fault, read of 80 bytes at 0x700000: features"},
      {"unmapped output", with<hw::DpuDstBaseAddr>([](auto& f) { f.dst_base_addr.offset = 0x60FFF0; }),
       "IOMMU fault, write of 80 bytes at 0x60fff0: output"},
      {"window", with<hw::PpuDataCubeOutWidth>([](auto& f) { f.cube_out_width = 4; }, testing::pool_program({})),
       "windows reach beyond input and pads"},
  };
  for (const Bad& bad : cases) {
    Scene scene;
    const auto result = run(scene, bad.program, {.pointers = Enforce::off});
    ASSERT_TRUE(result.ok()) << bad.what << ": " << result.error().message;
    EXPECT_FALSE(result->completes()) << bad.what;
    EXPECT_NE(result->stall.find(bad.message), std::string::npos) << bad.what << ": " << result->stall;
  }
}

// Each bit that can be set in the pointers of each block: read-only bits and bits without meaning are not modelled.
TEST(RockchipNpu, EachBitOfThePointersIsKnownOrRefused) {
  constexpr uint32_t kExecuter = 1U << 16, kCoreIndex = 3U << 28, kKnown = 0x3F;
  const struct {
    uint32_t address;
    bool has_core_index;
  } blocks[] = {{hw::CnaSPointer::kAddress, true},
                {hw::CoreSPointer::kAddress, true},
                {hw::DpuSPointer::kAddress, false},
                {hw::DpuRdmaSPointer::kAddress, false}};
  for (const auto& block : blocks) {
    for (int i = 0; i < 32; ++i) {
      const uint32_t bit = 1U << i;
      Program program = conv_program({});
      program.registers[block.address] = hw::kPointerPingPong | bit;
      Scene scene;
      const auto result = run(scene, program, {.pointers = Enforce::off});
      const bool is_core = block.has_core_index && (bit & kCoreIndex) != 0;
      ASSERT_EQ(result.ok(), (bit & kKnown) != 0 || is_core) << std::hex << block.address << " bit " << bit;
      if (result.ok()) {
        EXPECT_EQ(result->completes(), !is_core) << std::hex << block.address << " bit " << bit;
      } else {
        EXPECT_NE(
            result.error().message.find(fmt::format("0x{:08x}: unknown or read-only bits", hw::kPointerPingPong | bit)),
            std::string::npos)
            << result.error().message << (bit == kExecuter ? " (executer)" : "");
      }
    }
  }
}

TEST(RockchipNpu, StreamsThatStartNothing) {
  Scene scene;
  std::vector<uint64_t> words = conv_program({}).stream();
  const std::vector<uint64_t> no_start(words.begin(), words.end() - 2);
  EXPECT_NE(make_npu()->run_task(0, scene.load(no_start), scene.memory)->stall.find("starts no block"),
            std::string::npos);
  std::vector<uint64_t> no_barrier = words;
  no_barrier.erase(no_barrier.end() - 2);
  EXPECT_NE(make_npu()->run_task(0, scene.load(no_barrier), scene.memory)->stall.find("no barrier"), std::string::npos);
  std::vector<uint64_t> more = words;
  more.push_back(words[0]);
  EXPECT_FALSE(make_npu()->run_task(0, scene.load(more), scene.memory).ok());
  EXPECT_FALSE(make_npu()->run_task(0, {.regcmd = 0x1008, .regcmd_count = 2}, scene.memory).ok());
  EXPECT_NE(make_npu()->run_task(0, {.regcmd = 0x90000000, .regcmd_count = 2}, scene.memory)->stall.find("commands"),
            std::string::npos);
}

TEST(RockchipNpu, FeaturesMayBeReadBeyondTheirEnd) {
  const Options over_read{.features_over_read = Enforce::fault};
  Program at_end = conv_program({});
  at_end.change<hw::CnaFeatureDataAddr>(
      [](auto& f) { f.feature_base_addr.offset = testing::kInput + 0x10000 - 25 * 16; });
  Scene scene;
  EXPECT_TRUE(run(scene, conv_program({}), over_read)->completes());
  EXPECT_TRUE(run(scene, at_end)->completes()) << "recorded jobs do this: a warning";
  EXPECT_NE(run(scene, at_end, over_read)->stall.find("a bank beyond their end"), std::string::npos);
}

// Buffers with successive addresses are one piece for the IOMMU.
TEST(RockchipNpu, AccessesCrossIntoTheNextBuffer) {
  Scene scene;
  Bytes more(0x10000, 0xEE);
  ASSERT_TRUE(scene.memory.map(testing::kOutput + 0x10000, more, "next").ok());
  Program program = conv_program({});
  program.set(hw::DpuDstBaseAddr{.dst_base_addr = {bits::Address::kAbsolute, testing::kOutput + 0xFFF0}});
  ASSERT_TRUE(run(scene, program)->completes());
  Scene plain;
  ASSERT_TRUE(run(plain, conv_program({}))->completes());
  EXPECT_TRUE(std::equal(plain.output().begin(), plain.output().begin() + 16, scene.output().end() - 16));
  EXPECT_TRUE(std::equal(plain.output().begin() + 16, plain.output().begin() + 800, more.begin()));
}

}  // namespace
}  // namespace skillet::sim::rockchip
