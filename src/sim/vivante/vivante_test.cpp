#include "sim/vivante/vivante.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "sim/vivante/test_support.h"

namespace skillet::sim::vivante {
namespace {

using test::TestKernel;
using test::TestMemory;
using test::TestShape;
namespace hw = ::skillet::vivante::hw;
using Words = std::vector<uint32_t>;

// ---- the TP example of specification 5.9: transpose of 8x8x4 ----

constexpr uint32_t kDescriptorAddress = 0x00600000;

Words tp_example() {
  return {0x00000004, 0x00080008, 0x00000004, 0x00000020, 0x00000000, 0x00070003, 0x20000018, 0x00000000,
          0x00080001, 0x00080001, 0x00500000, 0x00000000, 0x80000002, 0x00501000, 0x00000001, 0x00000040,
          0x00040008, 0x00000008, 0x00000000, 0x00010008, 0x00000000, 0x00000000, 0x00010001, 0x00000000,
          0x0000000A, 0x00000000, 0x03FFFFFF, 0x00000000, 0x03FFFFFF, 0x80000000, 0x00000080};
}
const Words kStartTp = {0x0801042E, kDescriptorAddress, 0x08010E03, 0xC23};
const Words kStartNn = {0x08010428, kDescriptorAddress, 0x08010E03, 0xC23};

Result<void> execute(const Words& stream, const TestMemory& memory, const Options& options = {}) {
  SK_TRY_ASSIGN(const auto device, create("a311d", options));
  return device->execute(stream, memory.get());
}

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

void expect_fault(const Result<void>& result, std::string_view fault) {
  ASSERT_FALSE(result.ok()) << fault;
  EXPECT_NE(result.error().message.find(fault), std::string::npos) << result.error().message;
}
template <typename T>
void expect_fault(const Result<T>& result, std::string_view fault) {
  ASSERT_FALSE(result.ok()) << fault;
  expect_fault(Result<void>(result.error()), fault);
}

// The example twice, the second time from what the first one wrote; `between` stands before the second job.
Result<void> run_tp_twice(const Words& between, bool first_flushes, const Words& end = {0x08010E03, 0xC23},
                          uint32_t second_input = 0x00501000) {
  constexpr uint32_t kSecond = kDescriptorAddress + 0x1000;
  TestMemory memory;
  memory.add(0x00500000, Bytes(256), "input");
  memory.add(0x00501000, Bytes(512), "between");
  memory.add(0x00502000, Bytes(256), "output");
  Words first = tp_example(), second = tp_example();
  if (!first_flushes) first[12] |= 1U << 30;
  first[13] = 0x00501000;
  second[10] = second_input;
  second[13] = 0x00502000;
  memory.add_words(kDescriptorAddress, first, "first");
  memory.add_words(kSecond, second, "second");
  Words stream = {0x0801042E, kDescriptorAddress};
  stream.insert(stream.end(), between.begin(), between.end());
  stream.insert(stream.end(), {0x0801042E, kSecond});
  stream.insert(stream.end(), end.begin(), end.end());
  return execute(stream, memory);
}

TEST(TpUnit, WhatIsNotFlushedIsNotRead) {
  EXPECT_TRUE(run_tp_twice({}, true).ok()) << run_tp_twice({}, true).error().message;
  expect_fault(run_tp_twice({}, false), "has not been flushed");
  // As on the cores of one operation: they read what lies behind their output, in the same buffer.
  EXPECT_TRUE(run_tp_twice({}, false, {0x08010E03, 0xC23}, 0x00501100).ok());
  // State vip_flush_control holds back the second job's results, as nothing flushes after it but the whole stream.
  EXPECT_TRUE(run_tp_twice({0x08010E54, 8}, true).ok());
  expect_fault(run_tp_twice({}, true, {}), "the stream ends without flush_cache");
  expect_fault(run_tp_twice({0x08010E03, 0xC23}, true, {0x08010E03, 0x20}), "the stream ends without flush_cache");
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

// ---- the NN example of specification 4.7: 8x8x4, 3x3, 8 output channels, SAME ----

Words nn_example() {
  return {0xA010010C, 0x00400200, 0xB800003F, 0x00400200, 0x10234008, 0x00014080, 0x00501000, 0x00503000,
          0x00083004, 0x00000000, 0x00000000, 0x00000800, 0x00000C00, 0x00000000, 0x00000800, 0x02400200,
          0x00080008, 0x06000008, 0x00000000, 0x03FFFFFF, 0x00000000, 0x03FFFFFF, 0x0000107F, 0x00000000,
          0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x03FFFFFF, 0x7F800000, 0xFF800000, 0x00000000};
}

struct NnExample {
  Bytes in;
  std::vector<TestKernel> kernels;
  Bytes coefficients;

  explicit NnExample(uint64_t seed, int zrl_bits = 2) {
    test::Random random(seed);
    in = random.bytes(8 * 8 * 4);
    for (uint32_t oc = 0; oc < 8; ++oc) {
      TestKernel& kernel = kernels.emplace_back();
      kernel.weights = random.bytes(36);
      for (uint8_t& weight : kernel.weights) weight = random.chance(40) ? 0x7f : weight;
      kernel.bias = static_cast<int32_t>(random.in(-2000, 2000));
      kernel.offset = oc * 64;
    }
    coefficients = test::write_coefficients(
        {.width = 3, .height = 3, .planes = 4, .kernels_per_core = 1, .zero_point = 0x7f, .zrl_bits = zrl_bits},
        kernels, 1);
  }

  Result<Bytes> run(const Words& descriptor, const Options& options = {}, size_t out_bytes = 512) const {
    TestMemory memory;
    memory.add(0x00501000, in, "input");
    memory.add(0x00502000, coefficients, "coefficients");
    const auto out = memory.add(0x00503000, Bytes(out_bytes), "output");
    memory.add_words(kDescriptorAddress, descriptor, "descriptor");
    SK_TRY(execute(kStartNn, memory, options));
    return Bytes(out.begin(), out.end());
  }

  // Straight from the definition: zero point 0x80 outside, scale (2^15 + 0x312) / 2^23, output zero point 0x10.
  uint8_t expected(int oc, int y, int x) const {
    int64_t sum = kernels[static_cast<size_t>(oc)].bias;
    for (int i = 0; i < 36; ++i) {
      const int iy = y - 1 + i % 9 / 3, ix = x - 1 + i % 3;
      const bool inside = iy >= 0 && ix >= 0 && iy < 8 && ix < 8;
      const int pixel = inside ? in[static_cast<size_t>(i / 9 * 64 + iy * 8 + ix)] : 0x80;
      sum += pixel * (kernels[static_cast<size_t>(oc)].weights[static_cast<size_t>(i)] - 0x7f);
    }
    const double real = static_cast<double>(sum) * (32768 + 0x312) / 8388608.0;
    return static_cast<uint8_t>(std::clamp(std::floor(real + 0.5) + 0x10, 0.0, 255.0));
  }
};

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

// One device that runs the example again and again.
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

// Decoded coefficients are kept from job to job: the same bytes under another zero point are others.
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
  const NnExample first(5, 0), second(6, 0);  // without runs of zeros: of the same size
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

// A TP job reads what an NN job wrote: right after a job that flushes.
TEST(NnUnit, WhatIsNotFlushedIsNotRead) {
  struct Row {
    uint32_t word_0, word_3;
    bool flushes;
  };
  for (const Row& row :
       {Row{0xA010010C, 0x00400200, true}, Row{0x2010010C, 0x00400200, false}, Row{0xA010010C, 0x00400208, false}}) {
    const NnExample example(5);
    Words nn = nn_example(), tp = tp_example();
    nn[0] = row.word_0;
    nn[3] = row.word_3;
    tp[10] = 0x00503000;
    tp[13] = 0x00504000;
    TestMemory memory;
    memory.add(0x00501000, example.in, "input");
    memory.add(0x00502000, example.coefficients, "coefficients");
    memory.add(0x00503000, Bytes(512), "between");
    memory.add(0x00504000, Bytes(256), "output");
    memory.add_words(kDescriptorAddress, nn, "first");
    memory.add_words(kDescriptorAddress + 0x1000, tp, "second");
    Words stream = kStartNn;
    stream.insert(stream.begin() + 2, {0x0801042E, kDescriptorAddress + 0x1000});
    const auto done = execute(stream, memory);
    EXPECT_EQ(done.ok(), row.flushes) << row.word_0 << " " << row.word_3;
    if (!row.flushes) expect_fault(done, "written by a NN job that has not been flushed");
  }
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
           BadWord{0, 0xA640010C, "nn_instruction.kernels_per_core = 100: with tiles of 8x8 px"},
           BadWord{5, 0x00024080, "nn_instruction.kernel_address"},
           BadWord{6, 0x00501001, "nn_instruction.in_address"},
           BadWord{7, 0x00503001, "nn_instruction.out_address, plane 7"},
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

// Eight output planes of 64 bytes; wherever one of them lies in the input image.
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
  EXPECT_EQ(options_from_environment()->tie_rule, TieRule::half_up);
  EXPECT_EQ(options_from_environment()->order_1x1, PointwiseOrder::well_formed);
}

// The same device runs one job after the other, also with decoded coefficients from before.
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

}  // namespace
}  // namespace skillet::sim::vivante
