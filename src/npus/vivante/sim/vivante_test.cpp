#include "npus/vivante/sim/vivante.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "npus/vivante/sim/test_examples.h"

namespace skillet::sim::vivante {
namespace {

using namespace test;  // NOLINT

Result<Bytes> run_tp_example(const Words& descriptor, const Bytes& in, size_t out_bytes = 256) {
  TestMemory memory;
  memory.add(0x00500000, in, "input");
  const auto out = memory.add(0x00501000, Bytes(out_bytes), "output");
  memory.add_words(kDescriptorAddress, descriptor, "descriptor");
  SK_TRY(execute(kStartTp, memory));
  return Bytes(out.begin(), out.end());
}

TEST(TpUnit, ExampleOfTheSpecification) {
  test::Random random(1);
  const Bytes in = random.bytes(256);
  const auto out = run_tp_example(tp_example(), in);
  ASSERT_TRUE(out.ok()) << out.error().message;
  for (size_t i = 0; i < 256; ++i) ASSERT_EQ((*out)[i], in[i % 64 * 4 + i / 64]) << i;
}

struct BadWord {
  size_t word;
  uint32_t value;
  const char* fault;
};

TEST(TpUnit, FaultsNameTheField) {
  const Bytes in(256);
  for (const BadWord& bad : {
           BadWord{6, 0x20000038, "tp_instruction.square_enable = true"},
           BadWord{6, 0x20000008, "tp_instruction.i2f_enable = false"},
           BadWord{12, 0x80000082, "word 12 has bits 0x00000080"},
           BadWord{6, 0x28000018, "tp_instruction.load_pwl_lut = 0"},
           BadWord{11, 0x00500000, "tp_instruction.pwl_lut_address"},
           BadWord{8, 0x00080000, "tp_instruction.in_tile_x_size = 0"},
           BadWord{9, 0x00000001, "tp_instruction.in_tile_y_inc = 0"},
           BadWord{4, 0x00000009, "tp_instruction.in_window_x_end = 3"},
           BadWord{10, 0x00400000, "tp_instruction.in_base_address"},
           BadWord{13, 0x00502000, "tp_instruction.out_base_address"},
           BadWord{15, 0x00000100, "tp_instruction.out_base_address: an element goes to byte"},
           BadWord{29, 0x80000001, "tp_instruction.in_border_const = 1"},
           BadWord{12, 0xC0000002, "no_flush"},
       }) {
    Words descriptor = tp_example();
    descriptor[bad.word] = bad.value;
    expect_fault(run_tp_example(descriptor, in), bad.fault);
  }
  expect_fault(run_tp_example(tp_example(), Bytes(200)), "job 0 (TP descriptor 0x00600000)");
  expect_fault(run_tp_example(tp_example(), in, 200), "tp_instruction.out_base_address");
}

TEST(TpUnit, WorksInPlace) {
  // A descriptor whose input and output are the same bytes: a copy onto itself.
  Words descriptor = tp_example();
  descriptor[13] = 0x00500000;
  descriptor[8] = descriptor[9] = 0x00010001;
  descriptor[15] = 0;
  descriptor[16] = 0x00010000;
  test::Random random(1);
  const Bytes in = random.bytes(256);
  TestMemory memory;
  const auto buffer = memory.add(0x00500000, in, "both");
  memory.add_words(kDescriptorAddress, descriptor, "descriptor");
  const auto done = execute(kStartTp, memory);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(Bytes(buffer.begin(), buffer.end()), in);
}

TEST(NnUnit, ExampleOfTheSpecification) {
  for (const bool reference_only : {false, true}) {
    for (const int zrl_bits : {0, 2, 5}) {
      const NnExample example(5, zrl_bits);
      const auto out = example.run(nn_example(), {.reference_only = reference_only});
      ASSERT_TRUE(out.ok()) << out.error().message;
      int inner = 0;
      for (int i = 0; i < 512; ++i) {
        const uint8_t expected = example.expected(i / 64, i % 64 / 8, i % 8);
        ASSERT_EQ((*out)[static_cast<size_t>(i)], expected) << i;
        inner += expected != 0 && expected != 255;
      }
      EXPECT_GT(inner, 100);
    }
  }
}

// One device that runs the example repeatedly.
struct NnScene {
  TestMemory memory;
  std::span<uint8_t> coefficients, out, descriptor;
  std::unique_ptr<Device> device = create("a311d", {}).value();

  explicit NnScene(const NnExample& example) {
    memory.add(0x00501000, example.in, "input");
    coefficients = memory.add(0x00502000, example.coefficients, "coefficients");
    out = memory.add(0x00503000, Bytes(512), "output");
    descriptor = memory.add_words(kDescriptorAddress, nn_example(), "descriptor");
  }
  Bytes run() {
    EXPECT_TRUE(device->execute(kStartNn, memory.get()).ok());
    return {out.begin(), out.end()};
  }
};

// Decoded coefficients are kept from job to job; the same bytes with another zero point are different coefficients.
TEST(NnUnit, KeepsCoefficientsByTheirZeroPoint) {
  const NnExample example(5);
  Words other = nn_example();
  other[22] ^= 0x10;
  const auto alone = example.run(other), first = example.run(nn_example());
  ASSERT_TRUE(alone.ok() && first.ok());
  ASSERT_NE(*alone, *first);
  NnScene scene(example);
  EXPECT_EQ(scene.run(), *first);
  std::ranges::copy(as_bytes(other), scene.descriptor.begin());
  EXPECT_EQ(scene.run(), *alone);
}

// The host, or a job, may write coefficients between two jobs.
TEST(NnUnit, SeesCoefficientsThatWereWrittenAnew) {
  const NnExample first(5, 0), second(6, 0);  // without runs of zeros: of equal size
  ASSERT_EQ(first.coefficients.size(), second.coefficients.size());
  NnScene scene(first);
  std::set<Bytes> outputs;
  for (const NnExample* one : {&first, &second, &first, &second}) {
    std::ranges::copy(one->coefficients, scene.coefficients.begin());
    NnExample alone = *one;
    alone.in = first.in;
    EXPECT_EQ(scene.run(), alone.run(nn_example()).value());
    outputs.insert(scene.run());
  }
  EXPECT_EQ(outputs.size(), 2U);
}

TEST(NnUnit, FaultsNameTheField) {
  const NnExample example(5);
  for (const BadWord& bad : {
           BadWord{0, 0xE010010C, "nn_instruction.prelu = true"},
           BadWord{0, 0xA010010E, "nn_instruction.no_z_offset = true"},
           BadWord{0, 0xA810010C, "nn_instruction.pooling = 1"},
           BadWord{0, 0x8010010C, "nn_instruction.pooling_xy_size = 0"},
           BadWord{0, 0xA000010C, "nn_instruction.kernels_per_core = 0"},
           BadWord{1, 0x00400000, "nn_instruction.in_x_size = 0"},
           BadWord{1, 0x00400201, "nn_instruction.kernel_data_type = 1"},
           BadWord{2, 0xB800007F, "word 2 has bits 0x00000040"},
           BadWord{4, 0x10238008, "nn_instruction.rounding_mode = 2"},
           BadWord{4, 0x10034008, "nn_instruction.out_tile_x_size = 0"},
           BadWord{4, 0x11074008, "nn_instruction.out_tile_x_size = 65"},
           BadWord{4, 0x10234009, "no kernel writes output plane 8"},
           BadWord{4, 0xFE234008, "nn_instruction.out_tile_y_size = 127"},
           BadWord{0, 0xA020010C, "nn_instruction.kernels_per_core = 2: each core has 1 in all (rule superblocks)"},
           BadWord{0, 0xA640010C, "nn_instruction.kernels_per_core = 100: with tiles of 8x8 px"},
           BadWord{5, 0x00024080, "nn_instruction.kernel_address"},
           BadWord{6, 0x00501001, "nn_instruction.in_address"},
           BadWord{7, 0x00503001, "nn_instruction.out_address, plane 7"},
           BadWord{9, 1, "kernel_pattern = 0x0, 0x1 with 8 kernels and kernel_caching_mode 1"},
           BadWord{8, 0x00083FC4, "kernel_pattern_msb, kernel_pattern = 0x3f, 0x0"},
           BadWord{8, 0x00083008, "kernel_pattern = 0x0, 0x0 with 8 kernels and kernel_caching_mode 2"},
           BadWord{12, 0x00000900, "nn_instruction.kernel_cache_end = 2304"},
           BadWord{12, 0x00000700, "kernel_cache_start, _end"},
           BadWord{12, 0x00080001, "not a range of the 524288 bytes"},
           BadWord{15, 0x02400200 | 1, "nn_instruction.in_border_mode = 1"},
           BadWord{16, 0x00080007, "nn_instruction.in_x_stride = 7"},
           BadWord{17, 0x06000007, "nn_instruction.out_x_stride = 7"},
           BadWord{18, 0x04000000, "nn_instruction.per_channel_post_mul"},
           BadWord{19, 0x00000000, "nn_instruction.out_circular_buf_end"},
           BadWord{22, 0x0006107F, "nn_instruction.depthwise = true"},
           BadWord{22, 0x0004107F, "word 22 has bits 0x00040000"},
           BadWord{18, 0x60000000, "word 18 has bits 0x60000000"},
           BadWord{18, 0x10000000, "nn_instruction.slow_output"},
           BadWord{31, 1, "word 31 has bits 0x00000001"},
       }) {
    Words descriptor = nn_example();
    descriptor[bad.word] = bad.value;
    expect_fault(example.run(descriptor), bad.fault);
  }
  expect_fault(example.run(nn_example(), {}, 511), "job 0 (NN descriptor 0x00600000)");
  expect_fault(example.run(nn_example(), {.max_macs_per_job = 1000}), "the simulator's limit is 1000");
}

TEST(NnUnit, TruncatedCoefficientsAndOverlappingWindows) {
  NnExample example(5);
  store_le(example.coefficients.data() + 4, uint32_t{128});
  expect_fault(example.run(nn_example()), "nn_instruction.kernel_address");
  example = NnExample(5);
  Words descriptor = nn_example();
  descriptor[0] = (descriptor[0] & ~0x000FFFC0U) | 40U << 6;  // 40 input channels: more weights than the stream has
  expect_fault(example.run(descriptor), "truncated coefficient stream");
  descriptor = nn_example();
  descriptor[8] |= 1;  // image kept too, from 0 to 0x900
  descriptor[14] = 0x900;
  expect_fault(example.run(descriptor), "overlaps the kernels'");
}

// Eight output planes of 64 bytes, with one of them inside the input image.
TEST(NnUnit, OutputsOverTheInputAreFaults) {
  NnExample example(5);
  const auto image = static_cast<uint32_t>(example.in.size());
  example.in.resize(image + 1024);
  Words descriptor = nn_example();
  for (const uint32_t at : {0U, 64U, image - 64}) {
    descriptor[7] = 0x00501000 + at;
    expect_fault(example.run(descriptor), "an output plane overlaps the input image");
  }
  descriptor[7] = 0x00501000 + image;
  const auto beside = example.run(descriptor);
  EXPECT_TRUE(beside.ok()) << beside.error().message;
}

TEST(NnUnit, UnmappedDescriptor) {
  TestMemory memory;
  memory.add(0x00501000, Bytes(64), "input");
  expect_fault(execute(kStartNn, memory), "job 0 (NN descriptor 0x00600000): nn_instruction: 128 bytes at 0x600000");
}

// Kernels that only fill up the cores are dropped: 8 streams, but out_z_size 5.
TEST(NnUnit, DropsPlanesBeyondTheOutput) {
  const NnExample example(6);
  Words descriptor = nn_example();
  descriptor[4] = (descriptor[4] & ~0x3FFFU) | 5;
  const auto out = example.run(descriptor);
  ASSERT_TRUE(out.ok()) << out.error().message;
  for (size_t i = 0; i < 512; ++i) {
    const int index = static_cast<int>(i);
    ASSERT_EQ((*out)[i], i < 320 ? example.expected(index / 64, index % 64 / 8, index % 8) : 0) << i;
  }
}

// First-pixel pooling keeps every second pixel of every second row.
TEST(NnUnit, FirstPixelPooling) {
  const NnExample example(7);
  Words descriptor = nn_example();
  descriptor[0] = (descriptor[0] & ~(7U << 27)) | 3U << 27;
  descriptor[8] = (descriptor[8] & 0xFFFF) | 8U << 16;
  descriptor[17] = (descriptor[17] & ~0xFFFFU) | 8;
  const auto out = example.run(descriptor);
  ASSERT_TRUE(out.ok()) << out.error().message;
  for (int i = 0; i < 512; ++i) {
    const int y = i % 64 / 8, x = i % 8;
    const uint8_t expected = y < 4 && x < 4 ? example.expected(i / 64, 2 * y, 2 * x) : 0;
    ASSERT_EQ((*out)[static_cast<size_t>(i)], expected) << i;
  }
}

// ---- the device ----

TEST(Vivante, ChipsByName) {
  for (const hw::ChipRow& row : hw::chips()) EXPECT_TRUE(create(row.name, {}).ok()) << row.name;
  const auto unknown = create("a311x", {});
  expect_fault(unknown, "there are a311d, s905d3, imx8mp");
  EXPECT_EQ(unknown.error().code, ErrorCode::invalid_argument);
  EXPECT_TRUE(sim::create("a311d").ok());
}

TEST(Vivante, OptionsFromTheEnvironment) {
  const auto with = [](const char* name, const char* value) {
    EXPECT_EQ(setenv(name, value, 1), 0);
    auto options = options_from_environment();
    EXPECT_EQ(unsetenv(name), 0);
    return options;
  };
  EXPECT_EQ(with("SKILLET_SIM_TIE_RULE", "half_even")->tie_rule, TieRule::half_even);
  expect_fault(with("SKILLET_SIM_TIE_RULE", "upwards"), "SKILLET_SIM_TIE_RULE=upwards");
  EXPECT_EQ(with("SKILLET_SIM_1X1_ORDER", "dense")->order_1x1, PointwiseOrder::dense);
  expect_fault(with("SKILLET_SIM_1X1_ORDER", "seven"), "well_formed, by_relu_bit, six, dense");
  EXPECT_EQ(with("SKILLET_SIM_5X5_ORDER", "row_wise")->order_5x5_ic1, WeightOrder::row_wise);
  EXPECT_EQ(with("SKILLET_SIM_FC_ORDER", "linear")->order_fully_connected, WeightOrder::linear);
  expect_fault(with("SKILLET_SIM_FC_ORDER", "line"), "patch, row_wise, linear, well_formed");
  EXPECT_EQ(with("SKILLET_SIM_SEED", "17")->order.seed, 17U);
  for (const char* bad : {"-1", "1x", "18446744073709551616"})
    expect_fault(with("SKILLET_SIM_SEED", bad), "must be a number from 0 to 2^64 - 1");
  const Leniency some = with("SKILLET_SIM_WARN", "small_batch,waits")->order.leniency;
  EXPECT_TRUE(some.warns_of(Rule::waits) && some.warns_of(Rule::small_batch) && !some.warns_of(Rule::end_flushes));
  for (const char* bad : {"wait", "waits,", "waits;small_batch"})
    expect_fault(with("SKILLET_SIM_WARN", bad),
                 "must be one of waits, last_flushes, end_flushes, small_batch, kernel_pattern");
  EXPECT_FALSE(options_from_environment()->order.leniency.warns_of(Rule::waits));
  EXPECT_EQ(options_from_environment()->order.seed, 1U);
  EXPECT_EQ(options_from_environment()->tie_rule, TieRule::half_up);
  EXPECT_EQ(options_from_environment()->order_1x1, PointwiseOrder::well_formed);
}

// Each set of rules, as a list in the order of the rules and in the opposite order.
TEST(Vivante, WarnsOfTheRulesInAList) {
  for (size_t set = 1; set < size_t{1} << kRuleNames.size(); ++set) {
    std::string forward, back;
    for (size_t i = 0; i < kRuleNames.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      forward += (forward.empty() ? "" : ",") + std::string(kRuleNames[i]);
      back = std::string(kRuleNames[i]) + (back.empty() ? "" : ",") + back;
    }
    for (const std::string& list : {forward, back}) {
      ASSERT_EQ(setenv("SKILLET_SIM_WARN", list.c_str(), 1), 0);
      const auto options = options_from_environment();
      EXPECT_EQ(unsetenv("SKILLET_SIM_WARN"), 0);
      ASSERT_TRUE(options.ok()) << list << ": " << options.error().message;
      for (size_t i = 0; i < kRuleNames.size(); ++i)
        EXPECT_EQ(options->order.leniency.warns_of(static_cast<Rule>(i)), (set >> i & 1) != 0) << list << " " << i;
    }
  }
}

// The same device runs several jobs, also with decoded coefficients from earlier ones.
TEST(Vivante, CachedCoefficientsFollowTheContents) {
  const auto device = create("a311d", {});
  ASSERT_TRUE(device.ok());
  for (const uint64_t seed : {1, 2, 1}) {
    const NnExample example(seed);
    TestMemory memory;
    memory.add(0x00501000, example.in, "input");
    memory.add(0x00502000, example.coefficients, "coefficients");
    const auto out = memory.add(0x00503000, Bytes(512), "output");
    memory.add_words(kDescriptorAddress, nn_example(), "descriptor");
    ASSERT_TRUE((*device)->execute(kStartNn, memory.get()).ok());
    for (int i = 0; i < 512; ++i) ASSERT_EQ(out[static_cast<size_t>(i)], example.expected(i / 64, i % 64 / 8, i % 8));
  }
}

TEST(Quirks, AreChosenByNameAndEnvironment) {
  const std::vector<Quirk> known = quirks("a311d");
  ASSERT_GE(known.size(), 2U);
  const std::string two = fmt::format("{}+{}", known[0].name, known[1].name);
  EXPECT_TRUE(sim::create("a311d", two).ok());
  for (const char* bad :
       {"no_quirk", "relu_reads_six+no_quirk", "relu_reads_six+", "+relu_reads_six", "long_rows_wrap"}) {
    const auto device = sim::create("a311d", bad);
    ASSERT_FALSE(device.ok()) << bad;
    EXPECT_NE(device.error().message.find("; a311d can have "), std::string::npos) << device.error().message;
  }
  ::setenv("SKILLET_SIM_QUIRK", two.c_str(), 1);
  EXPECT_TRUE(sim::create("a311d").ok());
  ::setenv("SKILLET_SIM_QUIRK", "no_quirk", 1);
  EXPECT_TRUE(sim::create("a311d").error().message.starts_with("SKILLET_SIM_QUIRK=no_quirk: no quirk 'no_quirk'"));
  EXPECT_TRUE(sim::create("a311d", "!relu_reads_six").ok());  // only these
  EXPECT_NE(sim::create("no_chip").error().message.find("no chip 'no_chip'"), std::string::npos);
  ::unsetenv("SKILLET_SIM_QUIRK");
  EXPECT_TRUE(quirks("no_chip").empty());
}

}  // namespace
}  // namespace skillet::sim::vivante
