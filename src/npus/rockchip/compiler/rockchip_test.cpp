// Operations that the driver takes and refuses; it decodes what devices are sent.
#include "npus/rockchip/hw/rockchip.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "base/bytes.h"
#include "npu/driver.h"
#include "npus/rockchip/compiler/tuning.h"

namespace skillet::npus::rockchip {

const npu::Driver& driver();

namespace {

namespace hw = ::skillet::rockchip::hw;

TEST(RockchipDriver, IsFoundByItsCoresInTheDeviceTree) {
  const auto chip = driver().identify({.kernel_driver = "rocket", .compatible = "rockchip,rk3588-rknn-core"});
  ASSERT_TRUE(chip.ok());
  EXPECT_EQ(chip->name, "rk3588");
  EXPECT_FALSE(driver().identify({.kernel_driver = "rocket", .compatible = ""}).ok());
}

constexpr const char* kConv = R"(graph ""
tensor 0 "in" uint8 1x8x8x16 scale=0.5 zero=120
tensor 1 "w" uint8 32x3x3x16 scale=0.25 zero=131 const=zeros:4608
tensor 2 "b" int32 32 scale=0.125 zero=0 const=zeros:128
tensor 3 "out" uint8 1x8x8x32 scale=64 zero=7
inputs 0
outputs 3
op 0 CONV_2D in=[0 1 2] out=[3]
)";

std::string replaced(std::string text, std::string_view find, std::string_view by) {
  for (size_t at = 0; !find.empty() && (at = text.find(find, at)) != std::string::npos; at += by.size())
    text.replace(at, find.size(), by);
  return text;
}

// Kinds without a program: the message names the tensors' types, and suggests quantization if it would help.
TEST(RockchipDriver, RefusesFloatsAsFloats) {
  struct Row {
    const char *op, *dtype, *reason;
    npu::Remedy remedy;
  };
  const Row rows[] = {
      {"DIV", "uint8", "no known program of the NPU computes DIV on 8-bit tensors", npu::Remedy::none},
      {"DIV", "float32", "'a' is float32; the NPU computes on 8-bit quantized tensors", npu::Remedy::quantize},
      {"POW", "float32", "no known program of the NPU computes POW on float32 or on 8-bit tensors", npu::Remedy::none},
      {"POW", "int16", "'a' is int16; the NPU computes on 8-bit quantized tensors", npu::Remedy::activations},
      {"POW", "uint16", "'a' is uint16; the NPU computes on 8-bit quantized tensors", npu::Remedy::activations},
  };
  for (const Row& row : rows) {
    const bool is_float = std::string_view(row.dtype) == "float32";
    const int bytes = is_float ? 4 : std::string_view(row.dtype) == "uint8" ? 1 : 2;
    const std::string type = fmt::format("{} ", row.dtype), quant = is_float ? "" : " scale=1 zero=0";
    const auto graph = ir::parse("graph \"\"\ntensor 0 \"a\" " + type + "1x4x4x8" + quant + "\ntensor 1 \"b\" " + type +
                                 "1" + quant + fmt::format(" const=zeros:{}", bytes) + "\ntensor 2 \"c\" " + type +
                                 "1x4x4x8" + quant + "\ninputs 0\noutputs 2\nop 0 " + row.op + " in=[0 1] out=[2]\n");
    ASSERT_TRUE(graph.ok()) << row.op << row.dtype << ": " << graph.error().message;
    const npu::Support support = driver().supports(driver().chips()[0], *graph, 0);
    EXPECT_EQ(support.reason, row.reason);
    EXPECT_EQ(support.remedy, row.remedy) << row.op << row.dtype;
  }
}

// Each refusal next to the nearest graph that is taken; a graph that is taken compiles, and is proven unless stated.
TEST(RockchipDriver, RefusesWithAReason) {
  struct Row {
    const char *find, *by, *reason;
    bool taken = false;
  };
  const Row rows[] = {
      {"", "", "", true},
      {"zero=120", "zero=0", "", true},
      {"out=[3]", "out=[3] activation=relu6", "", true},
      {"out=[3]", "out=[3] activation=relu_n1_to_1", "the NPU fuses RELU and RELU6"},
      {"out=[3]", "out=[3] dilation_h=2 dilation_w=2", "", true},
      {"out=[3]", "out=[3] rows=[2 0]", "", true},
      {"out=[3]", "out=[3] dilation_h=33 dilation_w=2", "the NPU has 1 to 32"},
      {"uint8", "int16", "the NPU computes on 8-bit quantized tensors"},
      {"scale=64", "scale=0.0009", "the NPU multiplies by 2^-49 to 128"},
      {"1x8x8", "2x8x8", "the NPU takes one image at a time"},
      {"scale=0.5", "scale=1e38", "near the limits of floats"},
      {"scale=64", "scale=1e-40", "near the limits of floats"},
      {"1x8x8", "1x1x2047", "", true},
      {"1x8x8", "1x1x2048", "the NPU counts to 2047"},
      {"uint8 32x3x3x16 scale=0.25 zero=131", "int8 32x3x3x16 scale=0.25 zero=3", "'in' is uint8, 'w' int8"},
      {"CONV_2D", "TRANSPOSE_CONV", "recorded only with 16-bit floats"},
      {"CONV_2D", "SQUARED_DIFFERENCE", "no known program of the NPU computes SQUARED_DIFFERENCE"},
      {"CONV_2D", "MAXIMUM", "'w' is constant"},
  };
  const npu::Chip& chip = driver().chips()[0];
  for (const Row& row : rows) {
    const auto graph = ir::parse(replaced(kConv, row.find, row.by));
    ASSERT_TRUE(graph.ok()) << row.by << ": " << graph.error().message;
    const npu::Support support = driver().supports(chip, *graph, 0);
    EXPECT_EQ(support.ok, row.taken) << row.by << ": " << support.reason;
    EXPECT_NE(support.reason.find(row.reason), std::string::npos) << row.by << ": " << support.reason;
    const auto program = driver().compile(chip, *graph, {});
    EXPECT_EQ(program.ok(), support.ok) << "compile() checks again";
    EXPECT_TRUE(!program.ok() || npu::verify(*program).ok());
  }
  EXPECT_FALSE(driver().supports(driver().chips()[1], ir::parse(kConv).value(), 0).ok) << "registers of another chip";
}

// The feature fetch may read up to a bank of the on-chip buffer past the end of a tensor (10.1).
TEST(RockchipDriver, MemoryGoesOnBehindEachTensor) {
  constexpr uint64_t kBankBytes = 32768;
  const auto graph = ir::parse(replaced(kConv, "", ""));
  const auto program = driver().compile(driver().chips()[0], *graph, {.keep_intermediates = true});
  ASSERT_TRUE(program.ok()) << program.error().message;
  uint64_t least = UINT64_MAX;  // if nothing else makes the buffer larger
  for (const auto* list : {&program->inputs, &program->outputs, &program->intermediates}) {
    for (const npu::TensorBinding& one : *list)
      least = std::min(least, program->buffers[one.buffer].size_bytes - one.offset_bytes - one.layout.size_bytes);
  }
  EXPECT_EQ(least, kBankBytes);
}

// The place that a task writes: surfaces of rows, from an address in a buffer.
struct Written {
  npu::BufferId buffer = 0;
  uint64_t begin = 0, row_bytes = 0, row_stride = 0, rows = 0, stride_bytes = 0, surfaces = 0;

  bool covers(const npu::ByteRange& range) const {
    for (uint64_t i = 0; i < surfaces && range.buffer == buffer; ++i) {
      const uint64_t first = begin + i * stride_bytes, end = range.offset_bytes + range.size_bytes;
      if (end <= first) continue;
      const uint64_t row = std::min((end - 1 - first) / row_stride, rows - 1);  // the last that begins before the end
      if (range.offset_bytes < first + row * row_stride + row_bytes) return true;
    }
    return false;
  }
};

Written written_by(const npu::Program& program, const npu::ByteRange& commands) {
  std::map<uint32_t, uint64_t> values, places;  // by register: its value, the place of its command
  const auto bytes = npu::bytes_of(program, commands);
  for (size_t at = 0; at < bytes.size(); at += hw::kCommandBytes) {
    const auto word = load_le<uint64_t>(bytes.data() + at);
    values[static_cast<uint32_t>(word & 0xFFFF)] = word >> 16 & 0xFFFFFFFF;
    places[static_cast<uint32_t>(word & 0xFFFF)] = commands.offset_bytes + at;
  }
  const uint64_t width = values[hw::DpuDataCubeWidth::kAddress] + 1;
  Written out{.row_bytes = width * 16,
              .row_stride = (width + (values[hw::DpuDataCubeNotchAddr::kAddress] & 0x1FFF)) * 16,
              .rows = values[hw::DpuDataCubeHeight::kAddress] + 1,
              .stride_bytes = values[hw::DpuDstSurfStride::kAddress],
              .surfaces = ((values[hw::DpuDataCubeChannel::kAddress] & 0x1FFF) + 1) / 16};
  for (const npu::Relocation& one : program.buffers[commands.buffer].relocations) {
    if (one.at_byte != places[hw::DpuDstBaseAddr::kAddress]) continue;
    out.buffer = one.target, out.begin = one.target_offset_bytes;
  }
  return out;
}

std::string many_layers() {
  constexpr int kLayers = 8;
  std::string text = "graph \"\"\ntensor 0 \"t0\" uint8 1x500x512x64 scale=1 zero=0\n";
  for (int i = 1; i <= kLayers; ++i)
    text += fmt::format(
        "tensor {0} \"w{0}\" uint8 64x3x3x64 scale=0.01 zero=128 const=zeros\n"
        "tensor {1} \"t{0}\" uint8 1x500x512x64 scale=1 zero=0\n",
        2 * i - 1, 2 * i);
  text += fmt::format("inputs 0\noutputs {}\n", 2 * kLayers);
  for (int i = 1; i <= kLayers; ++i)
    text += fmt::format("op {} CONV_2D in=[{} {} -] out=[{}]\n", i - 1, 2 * i - 2, 2 * i - 1, 2 * i);
  return text;
}

// Three copies of each row, in two passes that both write the second copy.
constexpr const char* kThreeTimes = R"(graph ""
tensor 0 "in" uint8 1x1000x1000x64 scale=1 zero=0
tensor 1 "size" int32 2 const=[3000 1000]
tensor 2 "out" uint8 1x3000x1000x64 scale=1 zero=0
inputs 0
outputs 2
op 0 RESIZE_NEAREST_NEIGHBOR in=[0 1] out=[2]
)";

void expect_own_witnesses(const std::string& text) {
  const auto graph = ir::parse(text);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto program = driver().compile(driver().chips()[0], *graph, {});
  ASSERT_TRUE(program.ok()) << program.error().message;
  ASSERT_GT(program->jobs.size(), 3U);
  for (const npu::Job& job : program->jobs) {
    bool own = false;
    for (const npu::Job& other : program->jobs) {
      for (const npu::ByteRange& task : other.commands) {
        const bool covers = written_by(*program, task).covers(job.witness);
        own |= covers && &other == &job;
        EXPECT_FALSE(covers && &other != &job) << other.name << " writes the witness of " << job.name;
      }
    }
    EXPECT_TRUE(own) << job.name;
  }
}

// A lost job is found by its completion marker: no other job may write there, although tensors share memory.
TEST(RockchipDriver, NoJobWritesOverTheWitnessOfAnother) {
  expect_own_witnesses(many_layers());
  expect_own_witnesses(kThreeTimes);
}

// `count` operations of one input, with the shapes `in` and `out`.
std::string several(std::string_view kind, std::string_view attributes, int count, std::string_view in,
                    std::string_view out, std::string_view filter) {
  std::string tensors = fmt::format("tensor 0 \"in\" uint8 {} scale=0.5 zero=120\n", in), ops, outputs;
  if (!filter.empty()) tensors += fmt::format("tensor 1 \"w\" uint8 {}\n", filter);
  for (int i = 0; i < count; ++i) {
    const int id = (filter.empty() ? 1 : 2) + i;
    tensors += fmt::format("tensor {} \"out{}\" uint8 {} scale=0.5 zero=120\n", id, i, out);
    outputs += fmt::format(" {}", id);
    ops += fmt::format("op {} {} in=[0{}] out=[{}]{}\n", i, kind, filter.empty() ? "" : " 1", id, attributes);
  }
  return fmt::format("graph \"\"\n{}inputs 0\noutputs{}\n{}", tensors, outputs, ops);
}

// The last pixel of the second surface.
TEST(RockchipDriver, TheWitnessOfAPoolIsTheEndOfItsOutput) {
  constexpr struct {
    const char *chip, *in, *out;
    uint64_t pixel;
  } kRows[] = {{"rk3588", "1x8x12x32", "1x4x6x32", 4 * 6 * 2 - 1},
               {"rk3576", "1x8x12x32", "1x4x6x32", 4 * 6 * 2 - 1},
               {"rk3588", "1x6x6x32", "1x3x3x32", 9 * 2 - 1},
               {"rk3576", "1x6x6x32", "1x3x3x32", 12 + 9 - 1}};  // surfaces of four pixels
  for (const auto& row : kRows) {
    const auto graph =
        ir::parse(several("MAX_POOL_2D", " stride_h=2 stride_w=2 filter_h=2 filter_w=2", 1, row.in, row.out, ""));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const auto program = driver().compile(npu::find_chip(row.chip).value(), *graph, {.unproven = npu::Unproven::take});
    ASSERT_TRUE(program.ok()) << program.error().message;
    EXPECT_EQ(program->jobs.back().witness.offset_bytes, row.pixel * 16) << row.chip << " " << row.out;
  }
}

// The kernel ends a job after 500 ms; jobs are filled up to a predicted time of a fifth of that.
TEST(RockchipDriver, JobsAreAsLongAsTheyMayBe) {
  constexpr double kJobMs = 100, kCyclesPerMs = 200'000, kCyclesToStart = 2000;
  const struct {
    std::string_view kind, attributes, in, out, filter;
    double cycles;  // of each operation, which is one task
  } kRows[] = {
      {"CONV_2D", "", "1x48x48x64", "1x48x48x64", "64x3x3x64 scale=0.25 zero=131 const=zeros:36864",
       2 * 2 * 9 * 48 * 48},
      {"HARD_SWISH", "", "1x32x32x96", "1x32x32x96", "", 3.0 * 32 * 32 * 96 / 4},
  };
  for (const auto& row : kRows) {
    const double ms = (row.cycles + kCyclesToStart) / kCyclesPerMs;
    const auto most = static_cast<size_t>(kJobMs / ms);
    ASSERT_LT(ms, 0.5) << "a limit that is one off would say nothing";
    const auto graph =
        ir::parse(several(row.kind, row.attributes, static_cast<int>(most) + 1, row.in, row.out, row.filter));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const auto program = driver().compile(driver().chips()[0], *graph, {.unproven = npu::Unproven::take});
    ASSERT_TRUE(program.ok()) << program.error().message;
    ASSERT_EQ(program->jobs.size(), 2U) << row.in;
    EXPECT_EQ(program->jobs[0].commands.size(), most) << row.in;
  }
}

// Weights stay loaded only within a job: an operation whose tasks share them begins another one, and is not divided.
TEST(RockchipDriver, TasksThatShareWeightsAreInOneJob) {
  const auto graph = ir::parse(
      several("CONV_2D", "", 3, "1x400x512x64", "1x400x512x64", "64x3x3x64 scale=0.25 zero=131 const=zeros:36864"));
  ASSERT_TRUE(graph.ok()) << graph.error().message;  // about 40 ms each
  const auto program = driver().compile(driver().chips()[0], *graph, {.unproven = npu::Unproven::take});
  ASSERT_TRUE(program.ok()) << program.error().message;
  ASSERT_EQ(program->jobs.size(), 2U);
  EXPECT_GT(program->jobs[1].commands.size(), 1U);
  EXPECT_EQ(program->jobs[0].commands.size(), 2 * program->jobs[1].commands.size());
}

// The factors of small channels have fewer than 15 bits; half a step of one times 255 must be at most a quarter.
TEST(RockchipDriver, ChannelsOfFewBitsWait) {
  constexpr double kOne = 32768, kErrorMax = 0.25;
  for (const int factor : {600, 511, 510, 509, 508, 490}) {
    const auto graph = ir::parse(fmt::format(R"(graph ""
tensor 0 "in" int8 1x4x4x64 scale=0.5 zero=0
tensor 1 "w" int8 2x1x1x64 scale=[0.5 {}] zero=0 axis=0 const=[{}]
tensor 2 "out" int8 1x4x4x2 scale=0.25 zero=-128
inputs 0
outputs 2
op 0 CONV_2D in=[0 1 -] out=[2] activation=relu6
)",
                                             0.5 * factor / kOne, fmt::join(std::vector<int>(128, 127), " ")));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const auto program = driver().compile(driver().chips()[0], *graph, {.unproven = npu::Unproven::take});
    ASSERT_TRUE(program.ok()) << program.error().message;
    const bool waits = 0.5 / factor * 255 > kErrorMax;
    EXPECT_EQ(program->jobs[0].commands.size() > 1, waits) << factor;
  }
}

// Behavior that was never seen on a board is tried if a session compares results, or takes unproven operations.
TEST(RockchipTuning, TrialsAreOfWhoTakesWhatIsUnproven) {
  const hw::ChipRow& chip = *hw::find_chip("rk3588");
  for (const npu::Unproven unproven : {npu::Unproven::refuse, npu::Unproven::verify, npu::Unproven::take}) {
    for (const npu::Tuning tuning : {npu::Tuning::recorded, npu::Tuning::proven, npu::Tuning::tuned}) {
      const auto made = tuning_for(chip, {.tuning = tuning, .unproven = unproven});
      ASSERT_TRUE(made.ok()) << made.error().message;
      const bool tries = unproven != npu::Unproven::refuse && tuning != npu::Tuning::recorded;
      EXPECT_EQ(made->fused_additions, tries) << npu::tuning_name(tuning);
      EXPECT_EQ(made->packed_pixels, tries) << npu::tuning_name(tuning);
    }
  }
}

// For graphs with few bytes in the file, constants grow with the operation, not with the weights of each; their
// predicted size, which compile/ gets, is the real one.
TEST(RockchipDriver, EqualConstantsAreThereOnce) {
  const struct {
    std::string_view kind, attributes, in, out, filter;
  } kRows[] = {
      {"SPACE_TO_DEPTH", " block_size=2", "1x2x2x128", "1x1x1x512", ""},
      {"DEPTHWISE_CONV_2D", " depth_multiplier=8", "1x8x8x64", "1x8x8x512",
       "1x3x3x512 scale=0.25 zero=131 const=zeros:4608"},
      {"CONV_2D", "", "1x8x8x256", "1x8x8x256", "256x1x1x256 scale=0.25 zero=131 const=zeros:65536"},
  };
  const npu::Chip& chip = driver().chips()[0];
  for (const auto& row : kRows) {
    const auto bytes_of = [&](int count) -> uint64_t {
      const auto graph = ir::parse(several(row.kind, row.attributes, count, row.in, row.out, row.filter));
      EXPECT_TRUE(graph.ok()) << graph.error().message;
      if (!graph.ok()) return 0;
      const npu::MadeConstants made = driver().made_constants(chip, *graph, 0);
      for (ir::OpId op = 1; op < count; ++op) EXPECT_EQ(driver().made_constants(chip, *graph, op).key, made.key);
      EXPECT_FALSE(made.key.empty());
      const auto program = driver().compile(chip, *graph, {});
      EXPECT_TRUE(program.ok()) << row.kind << ": " << program.error().message;
      if (!program.ok()) return 0;
      uint64_t bytes = 0;
      for (const npu::Buffer& buffer : program->buffers)
        bytes += buffer.role == npu::BufferRole::constant ? buffer.size_bytes : 0;
      if (count == 1) {
        EXPECT_GE(made.bytes * 9 / 8, bytes) << row.kind;
        EXPECT_LE(made.bytes, bytes) << row.kind;
      }
      return bytes;
    };
    const uint64_t one = bytes_of(1);
    EXPECT_LE(bytes_of(8), one + 7 * 4096) << row.kind << ": " << one;
  }
}

TEST(RockchipDriver, DecodesEveryBit) {
  const auto command = [](hw::Target target, uint32_t address, uint32_t value) {
    return uint64_t{static_cast<uint32_t>(target)} << 48 | uint64_t{value} << 16 | address;
  };
  const std::vector<uint64_t> words = {command(hw::Target::cna, 0x1110, 0x2000),
                                       command(hw::Target::dpu, 0x4020, 0x3000),
                                       command(hw::Target::cna, 0x1040, 0x80B1),
                                       command(hw::Target::cna, 0x1FFC, 7),
                                       0,
                                       command(hw::Target::barrier, 0, 0),
                                       command(hw::Target::enable, 8, 0x1D)};
  capture::Submission submission;
  submission.jobs = {{.commands = {{.words = {}, .address = 0x1000, .size_bytes = 8 * words.size()}}}};
  Bytes bytes(8 * words.size());
  std::memcpy(bytes.data(), words.data(), bytes.size());
  submission.buffers = {{.handle = 1, .address = 0x1000, .size_bytes = 0x1000, .bytes = bytes}};
  const npu::Annotated decoded = driver().decode(driver().chips()[0], submission).value();
  ASSERT_EQ(decoded.operations, std::vector<std::string>{"CONV+ADD"}) << "ew_cfg, never written, does not bypass";
  std::map<std::string, npu::AnnotatedField> fields;
  for (const npu::AnnotatedField& field : decoded.fields) fields[field.name] = field;
  EXPECT_EQ(fields["commands"].extent_bytes, 8 * words.size());
  EXPECT_EQ(fields["cna.dcomp_addr0.decompress_addr0"].kind, npu::FieldKind::constant);
  EXPECT_EQ(fields["dpu.dst_base_addr.dst_base_addr"].kind, npu::FieldKind::memory);
  EXPECT_EQ(fields["cna.cbuf_con0.weight_bank"].value, "11");
  EXPECT_TRUE(fields["cna.cbuf_con0.unknown bits"].unknown);
  EXPECT_TRUE(fields["cna 0x1ffc"].unknown);
  EXPECT_EQ(fields["block_enable.dpu"].value, "true");
  submission.jobs[0].commands[0].size_bytes = 4104;
  EXPECT_FALSE(driver().decode(driver().chips()[0], submission).ok()) << "more commands than the buffer has";
  submission.buffers[0].size_bytes = uint64_t{1} << 60;
  for (const uint64_t size_bytes : {uint64_t{(1U << 20) + 8}, uint64_t{1} << 50}) {
    submission.jobs[0].commands[0].size_bytes = size_bytes;
    const auto refused = driver().decode(driver().chips()[0], submission);
    ASSERT_FALSE(refused.ok()) << size_bytes;
    EXPECT_NE(refused.error().message.find("a task has at most 1048576"), std::string::npos) << size_bytes;
  }
}

// The costs themselves: tests/rockchip/cost_test.cpp.
TEST(RockchipDriver, OnlyCoresThatWorkTogetherHaveCosts) {
  EXPECT_TRUE(driver().costs(npu::find_chip("rk3588").value(), {}));
  EXPECT_FALSE(driver().costs(npu::find_chip("rk3576").value(), {})) << "cores that disturb each other";
}

}  // namespace
}  // namespace skillet::npus::rockchip
