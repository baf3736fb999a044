#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/int_math.h"
#include "base/splitmix64.h"
#include "capture/job_lists.h"
#include "graph/ir/graph.h"
#include "npus/vivante/compiler/choices.h"
#include "npus/vivante/compiler/encode.h"
#include "npus/vivante/compiler/groups.h"
#include "npus/vivante/compiler/lower.h"
#include "npus/vivante/compiler/moves.h"
#include "npus/vivante/compiler/support.h"
#include "npus/vivante/compiler/tile.h"
#include "npus/vivante/compiler/tp.h"
#include "npus/vivante/compiler/tuning.h"
#include "npus/vivante/compiler/vivante_driver.h"

namespace skillet::npus::vivante {
namespace {

const hw::ChipRow& a311d() { return *hw::find_chip("a311d"); }

// The destination of each element, with axes counted from either end.
TEST(VivanteMoves, AxesMayCountFromTheEnd) {
  const auto moved = [](const char* from, const char* to, const char* order) {
    const auto graph = ir::parse(
        fmt::format("graph \"moves\"\ntensor 0 \"a\" uint8 {} scale=1 zero=0\ntensor 1 \"b\" uint8 {} scale=1 zero=0\n"
                    "tensor 2 \"o\" int32 {} const=[{}]\ninputs 0\noutputs 1\nop 0 TRANSPOSE in=[0 2] out=[1]\n",
                    from, to, std::ranges::count(std::string_view(order), ' ') + 1, order));
    EXPECT_TRUE(graph.ok() && ir::verify(*graph).ok()) << order;
    const auto moves = moves_of(*graph, graph->ops[0]);
    if (!moves.ok()) return moves.error().message;
    const Scatter& job = moves->jobs[0];
    return fmt::format("{} {} {}", job.along_x.step, job.along_y.step, job.along_z[0].step);
  };
  EXPECT_EQ(moved("4x6", "6x4", "1 0"), "4 1 24");
  EXPECT_EQ(moved("4x6", "6x4", "-1 0"), "4 1 24");
  EXPECT_EQ(moved("4x6", "6x4", "-1 -2"), "4 1 24");
  EXPECT_EQ(moved("1x2x3x4", "1x3x2x4", "0 2 1 3"), moved("1x2x3x4", "1x3x2x4", "-4 -2 -3 -1"));
}

// The examples of the specification, section 9.4.
TEST(VivanteTile, EqualsTheSpecifiedExamples) {
  struct Case {
    int32_t oc, kernel, size, tile_x, tile_y, interleave, superblocks;
  };
  const Case cases[] = {{32, 3, 112, 64, 10, 1, 1}, {64, 1, 112, 64, 12, 1, 2}, {128, 1, 56, 56, 12, 1, 4},
                        {1024, 1, 7, 7, 7, 2, 8},   {256, 5, 112, 64, 8, 1, 4}, {273, 1, 10, 10, 10, 2, 3}};
  for (const Case& c : cases) {
    NnOperation op{.out = {c.size, c.size, c.oc}};
    op.kernels.output_channels = c.oc;
    op.kernels.height = op.kernels.width = c.kernel;
    const Tiling t = tile(a311d(), op);
    EXPECT_EQ(std::tie(t.tile_x, t.tile_y, t.interleave, t.superblocks),
              std::tie(c.tile_x, c.tile_y, c.interleave, c.superblocks))
        << "OC " << c.oc << ", " << c.kernel << "x" << c.kernel << ", " << c.size << "x" << c.size;
  }
}

// The example of the specification, section 5.9: transpose of 8x8x4.
TEST(VivanteTp, TransposeEqualsTheSpecifiedExample) {
  const TpOperation op = transpose({8, 8, 4}, 0, 1, 0x80).at(0);
  hw::TpInstruction tp = op.instructions.at(0);
  tp.in_base_address = {bits::Address::kAbsolute, 0x00500000};
  tp.out_base_address = {bits::Address::kAbsolute, 0x00501000};
  const auto words = bits::pack(tp);
  ASSERT_TRUE(words.ok()) << words.error().message;
  EXPECT_EQ(*words, (bits::Words<hw::TpInstruction>{
                        0x00000004, 0x00080008, 0x00000004, 0x00000020, 0x00000000, 0x00070003, 0x20000018, 0x00000000,
                        0x00080001, 0x00080001, 0x00500000, 0x00000000, 0x80000002, 0x00501000, 0x00000001, 0x00000040,
                        0x00040008, 0x00000008, 0x00000000, 0x00010008, 0x00000000, 0x00000000, 0x00010001, 0x00000000,
                        0x0000000A, 0x00000000, 0x03FFFFFF, 0x00000000, 0x03FFFFFF, 0x80000000, 0x00000080}));
}

TEST(VivanteTp, ReshuffleLeavesNoCoreWithoutWork) {
  // 8x8x3 on 4 cores would give the last core an image of width 0.
  const TpOperation op = reshuffle({.in = {8, 8, 3}, .out_width = 5, .out_height = 5}, 0, 1, 0, 4);
  EXPECT_EQ(op.instructions.size(), 2U);
  for (const hw::TpInstruction& tp : op.instructions) EXPECT_GT(tp.in_x_size, 0U);
}

// Real value of a table entry (not negative), from the format: 5 exponent bits, 15 mantissa bits, bias 15.
double entry_value(uint32_t entry) {
  const int exponent = static_cast<int>(entry >> 15);
  return exponent == 0 ? std::ldexp(entry, -24) : std::ldexp(0x8000 + (entry & 0x7fff), exponent - 15 - 15);
}

// Just below a power of two the mantissa rounds up and carries into the exponent.
TEST(VivanteTp, LogisticTableIsTheFunction) {
  for (const float in_scale : {1e-7F, 1e-6F, 5e-6F, 4e-5F, 0.001F, 0.02F, 0.05F, 0.1F, 1.0F}) {
    const std::vector<uint32_t> table = function_table(TableFunction::logistic, in_scale);
    for (uint32_t i = 0; i < 1024; ++i) {
      const bool negative = i >= 512;
      const uint32_t magnitude = i % 512;
      if (magnitude < 16 || magnitude >= 496) continue;  // no integer reads these
      const double x = entry_value(magnitude * 0x800) * double{in_scale} * (negative ? -1 : 1);
      const double want = 1 / (1 + std::exp(-x));
      if (i != 528 && want >= 0x1p-14) {
        ASSERT_NEAR(entry_value(table[i]) / want, 1, 0x1p-15) << "scale " << in_scale << ", entry " << i;
      }
    }
  }
}

// All values of a packet must be in the stream, up to its last word.
TEST(VivanteDecode, PacketsStayInTheirStream) {
  for (const uint32_t count : {1U, 2U, 3U, 7U}) {
    std::vector<uint32_t> words = {1U << 27 | count << 16 | 0x0e03U};
    for (uint32_t there = 0; there <= count; ++there) {
      const auto decoded = driver().decode(driver().chips()[0], {.jobs = capture::one_list(words)});
      const bool leaves = !decoded.ok() && decoded.error().message.find(fmt::format(
                                               "the packet's {} values leave the stream", count)) != std::string::npos;
      EXPECT_EQ(leaves, there < count) << there << " of " << count;
      words.push_back(0);
    }
  }
}

// The two functions that keep or drop a value: the ends of each range of the table.
TEST(VivanteTp, TablesOfReluAndAbsAreStretches) {
  const auto relu = function_table(TableFunction::relu, 0.02F), abs = function_table(TableFunction::abs, 0.02F);
  ASSERT_EQ(relu.size(), 1024U);
  ASSERT_EQ(abs.size(), 1024U);
  constexpr uint32_t kStep = 0x800, kLargest = 0xF7FFF, kMinusZero = 0x100000;
  for (uint32_t i = 0; i < 1024; ++i) {
    const uint32_t magnitude = i % 512, kept = magnitude >= 496 ? kLargest : magnitude * kStep;
    const bool denormal = magnitude < 16;
    EXPECT_EQ(relu[i], i >= 512 ? kMinusZero : denormal ? 0 : kept) << i;
    EXPECT_EQ(abs[i], denormal ? (i >= 512 ? kMinusZero : 0) : kept) << i;
  }
}

// Executes a TP job by the walk of section 5.2: tiles one pixel wide or as large as the window, all loops counted.
void apply(const TpOperation& op, const Bytes& from, Bytes& to) {
  for (const hw::TpInstruction& tp : op.instructions) {
    ASSERT_LE(tp.in_window_x_end, 32767);
    const auto words = bits::pack(tp);
    ASSERT_TRUE(words.ok() || words.error().message.find("address") != std::string::npos) << words.error().message;
    std::vector<uint64_t> order;  // input offsets
    for (uint32_t z = 0; z < tp.in_z_size; ++z) {
      for (uint32_t tile_x = 0; tile_x <= static_cast<uint32_t>(tp.in_window_x_end); tile_x += tp.in_tile_x_inc) {
        for (uint32_t y = 0; y <= static_cast<uint32_t>(tp.in_window_y_end); ++y) {
          for (uint32_t x = tile_x; x < tile_x + tp.in_tile_x_size; ++x)
            order.push_back(tp.in_base_address.offset + uint64_t{z} * tp.in_slice + uint64_t{y} * tp.in_stride + x);
        }
      }
    }
    for (uint64_t n = 0; n < order.size(); ++n) {
      const uint64_t c0 = n % tp.out_loop_0_count, c1 = n / tp.out_loop_0_count % tp.out_loop_1_count,
                     rest = n / tp.out_loop_0_count / tp.out_loop_1_count,
                     c6 = tp.out_loop_6_inc == 0 ? 0 : rest / tp.out_loop_2_count, c2 = rest - c6 * tp.out_loop_2_count;
      to.at(tp.out_base_address.offset + c0 * tp.out_loop_0_inc + c1 * tp.out_loop_1_inc + c2 * tp.out_loop_2_inc +
            c6 * tp.out_loop_6_inc) = from.at(order[n]);
    }
  }
}

// Larger than the fields of one job: cut, and still every byte goes where it belongs.
TEST(VivanteTp, LargeLayoutChangesAndCopiesAreCut) {
  const Image images[] = {{1, 1, 70000}, {2, 2, 70000}, {40000, 1, 3}, {3, 70000, 2}, {40000, 2, 2},
                          {1, 3, 65537}, {260, 3, 130}, {32769, 1, 1}, {5, 2, 32769}, {1, 70000, 1}};
  SplitMix64 random(2);
  for (const Image& image : images) {
    SCOPED_TRACE(fmt::format("{}x{}x{}", image.width, image.height, image.channels));
    const auto pixels = static_cast<size_t>(image.plane_bytes()), channels = static_cast<size_t>(image.channels);
    Bytes nhwc(pixels * channels), planar(nhwc.size()), got(nhwc.size());
    for (size_t p = 0; p < pixels; ++p) {
      for (size_t c = 0; c < channels; ++c)
        planar[c * pixels + p] = nhwc[p * channels + c] = static_cast<uint8_t>(random.next());
    }
    if (!has_recorded_transpose(image)) {
      for (const TpOperation& op : transpose(image, 0, 1, 0)) apply(op, nhwc, got);
      EXPECT_EQ(got, planar);
    }
    ASSERT_FALSE(has_recorded_detranspose(image));
    for (const TpOperation& op : detranspose(image, 0, 1, 0)) apply(op, planar, got);
    EXPECT_EQ(got, nhwc);
    for (const int cores : {1, 3}) {
      Bytes copied(nhwc.size());
      for (const TpOperation& op : copy(image, 0, 1, 0, cores)) apply(op, nhwc, copied);
      EXPECT_EQ(copied, nhwc) << cores;
    }
  }
}

// ---- whole operations, from graphs ----

ir::Tensor activation(std::string name, ir::Shape shape, float scale = 0.02F, int32_t zero_point = 128) {
  return {.name = std::move(name),
          .dtype = ir::DType::uint8,
          .shape = std::move(shape),
          .quant = {{scale}, {zero_point}, 0}};
}

struct ConvSpec {
  int32_t height = 8, width = 8, in = 4, out = 8, kernel = 3, stride = 1;
  ir::Activation activation = ir::Activation::none;
  float out_scale = 0.05F;
  int32_t out_zero_point = 16;
  int32_t dilation = 1;
  std::vector<float> filter_scales = {0.01F};
};
ir::Graph conv_graph(const ConvSpec& s) {
  ir::Graph g;
  const int32_t oh = ceil_div(s.height, s.stride), ow = ceil_div(s.width, s.stride);
  g.inputs = {g.add_tensor(activation("input", {1, s.height, s.width, s.in}))};
  ir::Tensor filter = activation("filter", {s.out, s.kernel, s.kernel, s.in});
  filter.quant = {s.filter_scales, std::vector<int32_t>(s.filter_scales.size(), 127), 0};
  ir::set_constant(filter, Bytes(static_cast<size_t>(filter.shape.elems()), 130));
  const ir::TensorId weights = g.add_tensor(std::move(filter));
  const ir::TensorId output = g.add_tensor(activation("output", {1, oh, ow, s.out}, s.out_scale, s.out_zero_point));
  ir::ConvAttrs attrs{.stride_h = s.stride,
                      .stride_w = s.stride,
                      .dilation_h = s.dilation,
                      .dilation_w = s.dilation,
                      .activation = s.activation};
  g.add_op({.kind = ir::OpKind::conv_2d,
            .attrs = attrs,
            .inputs = {g.inputs[0], weights, ir::kNoTensor},
            .outputs = {output}});
  g.outputs = {output};
  return g;
}

// The example of the specification, section 4.7, from a model-level graph.
TEST(VivanteEncode, ConvolutionEqualsTheSpecifiedExample) {
  const ir::Graph g = conv_graph({});
  const auto chip = driver().chips()[0];
  const auto program = driver().compile(chip, g, {});
  ASSERT_TRUE(program.ok()) << program.error().message;
  const auto nn = std::find_if(program->debug_map.begin(), program->debug_map.end(),
                               [](const auto& d) { return d.what == "nn_instruction"; });
  ASSERT_NE(nn, program->debug_map.end());
  std::vector<uint32_t> words(32);
  std::memcpy(words.data(), program->buffers[nn->buffer].contents.data() + nn->offset_bytes, 128);
  // Words 5 to 7 are addresses; word 12, the size of the coefficients, depends on the weights.
  const std::vector<uint32_t> want = {0xA010010C, 0x00400200, 0xB800003F, 0x00400200, 0x10234008, 0,
                                      0,          0,          0x00083004, 0,          0,          0x00000800};
  EXPECT_EQ(std::vector<uint32_t>(words.begin(), words.begin() + 12), want);
  EXPECT_EQ(words[15], 0x02400200U);
  EXPECT_EQ(words[16], 0x00080008U);
  EXPECT_EQ(words[17], 0x06000008U);
  EXPECT_EQ(words[22], 0x0000107FU);
  EXPECT_EQ(words[29], 0x7F800000U);
}

// A requantization that does not fit its field is an error, not a changed scale.
TEST(VivanteEncode, ScalesAreNotMasked) {
  struct Case {
    float scale;
    bool fits;
  };
  const Case cases[] = {
      {0x1p-112F, true}, {0x1.fffffep-113F, false}, {0x1.fffffep15F, true}, {0x1p16F, false}, {0, false},
      {-1, false},       {INFINITY, false},         {NAN, false},           {1e-40F, false}};
  for (const Case& c : cases) {
    auto lowered = lower(a311d(), conv_graph({}), {});
    ASSERT_TRUE(lowered.ok());
    for (Operation& op : lowered->operations) {
      if (auto* nn = std::get_if<NnOperation>(&op.job)) nn->scale = c.scale;
    }
    const auto program = encode(a311d(), conv_graph({}), std::move(lowered).value());
    EXPECT_EQ(program.ok(), c.fits) << c.scale;
    EXPECT_EQ(is_nn_scale(a311d(), c.scale), c.fits) << c.scale << ": support and encoder agree";
    if (!c.fits) {
      EXPECT_NE(program.error().message.find("post_shift"), std::string::npos) << program.error().message;
    }
  }
}

TEST(VivanteTuning, SwitchesAreKnownByName) {
  EXPECT_TRUE(tuning_of({.switches = {"zero_runs"}})->zero_runs);
  EXPECT_FALSE(tuning_of({.tuning = npu::Tuning::tuned, .unproven = npu::Unproven::refuse})->sram_caches)
      << "not known to work";
  EXPECT_FALSE(tuning_of({.switches = {"sram_caches"}, .unproven = npu::Unproven::refuse}).ok());
  EXPECT_TRUE(tuning_of({.switches = {"sram_caches"}, .unproven = npu::Unproven::take})->sram_caches);
  const auto unknown = tuning_of({.switches = {"faster"}});
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("share_transposes"), std::string::npos) << unknown.error().message;
}

TEST(VivanteChoices, DepthwiseFiltersAreUpToThirtyTwoJobs) {
  const auto graph = ir::parse(R"(graph "g"
tensor 0 "in" uint8 1x8x8x512 scale=0.5 zero=3
tensor 1 "w" uint8 1x3x3x512 scale=0.25 zero=128 const=random:1
tensor 2 "b" int32 512 scale=0.125 zero=0 const=zeros
tensor 3 "out" uint8 1x8x8x512 scale=0.5 zero=3
inputs 0
outputs 3
op 0 DEPTHWISE_CONV_2D in=[0 1 2] out=[3]
)");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto found = choices(a311d(), *graph, {.channel_groups = true});
  ASSERT_TRUE(found.ok()) << found.error().message;
  std::vector<int32_t> parts;
  for (const npu::Choice& one : *found) parts.push_back(one.name == kChannelGroups ? one.value : -1);
  EXPECT_EQ(parts, (std::vector<int32_t>{2, 4, 8, 16, 32}));
}

// V8 divides operands into chunks. As recorded they are rows, and tiles a pixel wide. Else they are square images;
// where there are none, tiles are as wide as possible if tuned.
TEST(VivanteTuning, TilesOfAdditionsAreWide) {
  const auto job = [&](const char* chip, npu::Tuning tuning, int32_t channels) {
    std::string text = "graph \"g\"\n";
    for (const char* tensor : {"0 \"a\"", "1 \"b\"", "2 \"c\""})
      text += fmt::format("tensor {} uint8 1x16x16x{} scale=0.5 zero=3\n", tensor, channels);
    const auto graph = ir::parse(text + "inputs 0 1\noutputs 2\nop 0 ADD in=[0 1] out=[2]\n");
    const hw::ChipRow& row = *hw::find_chip(chip);
    const auto lowered = lower(row, *graph, *tuning_of({.tuning = tuning}));
    std::array<int32_t, 4> found{};
    for (const Operation& op : lowered->operations) {
      if (const auto* nn = std::get_if<NnOperation>(&op.job))
        found = {nn->out.width, nn->out.height, nn->out.channels, tile(row, *nn).tile_x};
    }
    return found;
  };
  using Job = std::array<int32_t, 4>;
  EXPECT_EQ(job("imx8mp", npu::Tuning::recorded, 24), (Job{384, 1, 16, 1}));
  EXPECT_EQ(job("imx8mp", npu::Tuning::proven, 24), (Job{32, 32, 6, 32}));
  EXPECT_EQ(job("imx8mp", npu::Tuning::proven, 67), (Job{1072, 1, 16, 1}));
  EXPECT_EQ(job("imx8mp", npu::Tuning::tuned, 67), (Job{1072, 1, 16, 64}));
  EXPECT_EQ(job("a311d", npu::Tuning::tuned, 24), job("a311d", npu::Tuning::proven, 24));
}

// Each tuning has its own switches and those of the tunings before it; none has those that are not known to work.
TEST(VivanteTuning, EachTuningAddsToTheOneBefore) {
  EXPECT_EQ(tuning_switches().data(), driver().switches().data());
  for (const npu::TuningSwitch& row : tuning_switches()) {
    EXPECT_FALSE(row.reason.empty()) << row.name;
    EXPECT_NE(row.since, npu::Tuning::recorded) << row.name << ": what is recorded needs no name";
  }
  const auto recorded = tuning_of({.tuning = npu::Tuning::recorded});
  const auto proven = tuning_of({}), tuned = tuning_of({.tuning = npu::Tuning::tuned});
  EXPECT_FALSE(recorded->six_channels || recorded->carry_in_tables || recorded->share_transposes);
  EXPECT_TRUE(proven->six_channels && proven->carry_in_tables && !proven->share_transposes);
  EXPECT_TRUE(tuned->six_channels && tuned->carry_in_tables && tuned->share_transposes);
}

// Two readers of one NHWC input: one transpose for each as recorded, one for both when tuned.
TEST(VivanteLower, TransposesAreSharedWhenTuned) {
  ir::Graph g = conv_graph({});
  ir::Op second = g.op(0);
  second.outputs = {g.add_tensor(g.tensor(g.outputs[0]))};
  g.outputs.push_back(second.outputs[0]);
  g.add_op(second);
  const auto count = [&](const Tuning& tuning) {
    const auto lowered = lower(a311d(), g, tuning);
    return std::count_if(lowered->operations.begin(), lowered->operations.end(),
                         [](const Operation& op) { return op.kind == "TP transpose"; });
  };
  EXPECT_EQ(count({}), 2);
  EXPECT_EQ(count({.share_transposes = true}), 1);
}

// An operand of two additions cannot be in two places: one of them gets a copy.
TEST(VivanteLower, OperandsOfTwoAdditionsAreCopied) {
  ir::Graph g;
  g.inputs = {g.add_tensor(activation("a", {1, 4, 4, 8})), g.add_tensor(activation("b", {1, 4, 4, 8}))};
  for (int i = 0; i < 2; ++i) {
    g.outputs.push_back(g.add_tensor(activation("sum", {1, 4, 4, 8}, 0.04F)));
    g.add_op(
        {.kind = ir::OpKind::add, .attrs = ir::ActivationAttrs{}, .inputs = g.inputs, .outputs = {g.outputs.back()}});
  }
  const auto lowered = lower(a311d(), g, {});
  ASSERT_TRUE(lowered.ok());
  int copies = 0;
  for (const Operation& op : lowered->operations) copies += op.kind == "TP copy";
  EXPECT_EQ(copies, 2);
}

// Pieces of a one-pixel tensor need no transpose, so they are in the input itself: the first slot.
TEST(VivanteLower, PiecesOfAnInputAreCopied) {
  constexpr const char* kSplitAndAdd = R"(graph ""
tensor 0 "axis" int32 scalar const=[3]
tensor 1 "in" uint8 1x1x1x8 scale=1 zero=128
tensor 2 "a" uint8 1x1x1x4 scale=1 zero=128
tensor 3 "b" uint8 1x1x1x4 scale=1 zero=128
tensor 4 "sum" uint8 1x1x1x4 scale=2 zero=128
inputs 1
outputs 4
op 0 SPLIT in=[0 1] out=[2 3] count=2
op 1 ADD in=[2 3] out=[4]
)";
  const auto graph = ir::parse(kSplitAndAdd);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto lowered = lower(a311d(), *graph, {.skip_idle_transposes = true});
  ASSERT_TRUE(lowered.ok()) << lowered.error().message;
  EXPECT_EQ(std::ranges::count(lowered->operations, "TP copy", &Operation::kind), 2);
}

// Groups by scale, the largest first.
TEST(VivanteLower, ChannelsThatAreInOrderStayThere) {
  const auto order = [](std::vector<float> scales) {
    const auto channels = static_cast<int32_t>(scales.size());
    return plane_order(channel_groups({.scales = std::move(scales), .zero_points = {0}, .axis = 0}, channels));
  };
  EXPECT_EQ(order({0.5F, 0.25F, 0.25F}), PlaneOrder{});
  EXPECT_EQ(order({0.25F, 0.5F, 0.25F}), (PlaneOrder{1, 0, 2}));
}

// The planes of each job follow those of the job before.
TEST(VivanteLower, DepthwiseFiltersAreAsManyJobsAsIsChosen) {
  struct Row {
    int32_t channels, kernel, size, parts;
    size_t jobs;
  };
  for (const Row& row : {Row{1024, 3, 7, 0, 1}, Row{1024, 3, 6, 8, 8}, Row{672, 5, 9, 4, 4}, Row{1100, 3, 9, 8, 1}}) {
    ir::Graph g;
    g.inputs = {g.add_tensor(activation("in", {1, row.size, row.size, row.channels}, 0.5F))};
    ir::Tensor filter = activation("filter", {1, row.kernel, row.kernel, row.channels}, 0.25F);
    ir::set_constant(filter, Bytes(static_cast<size_t>(filter.shape.elems()), 3));
    g.outputs = {g.add_tensor(activation("out", {1, row.size, row.size, row.channels}, 8.0F))};
    const ir::TensorId weights = g.add_tensor(std::move(filter));
    g.add_op({.kind = ir::OpKind::depthwise_conv_2d,
              .attrs = ir::ConvAttrs{},
              .inputs = {g.inputs[0], weights, ir::kNoTensor},
              .outputs = g.outputs});
    Tuning tuning;
    tuning.choices = {{0, std::string(kChannelGroups), row.parts}};
    const auto lowered = lower(a311d(), g, tuning);
    ASSERT_TRUE(lowered.ok()) << lowered.error().message;
    size_t jobs = 0;
    int32_t channels = 0;
    for (const Operation& op : lowered->operations) {
      const auto* const nn = std::get_if<NnOperation>(&op.job);
      if (nn == nullptr) continue;
      EXPECT_EQ(lowered->slots[nn->input].offset_bytes, static_cast<uint64_t>(channels * row.size * row.size));
      EXPECT_EQ(lowered->slots[nn->output].offset_bytes, static_cast<uint64_t>(channels * row.size * row.size));
      channels += nn->out.channels;
      ++jobs;
    }
    EXPECT_EQ(jobs, row.jobs) << row.channels;
    EXPECT_EQ(channels, row.channels);
  }
}

TEST(VivanteLower, SlotsThatAreNotThereAreAnError) {
  for (const auto& [input, output] : {std::pair(0U, 0U), std::pair(0U, 1U), std::pair(1U, 0U)}) {
    Lowered lowered;
    lowered.slots.resize(1);
    TpOperation job;
    job.input = input, job.output = output;
    lowered.operations.push_back({.op = 0, .kind = "copy", .job = std::move(job)});
    EXPECT_EQ(check_slots(lowered).ok(), input == 0 && output == 0) << input << " " << output;
  }
}

// The post multiplier keeps 15 bits of the mantissa; halves go to even (5.8).
TEST(VivanteTp, ScalesOfTablesAreRoundedToEven) {
  struct Row {
    uint32_t scale;  // a float's bits
    uint32_t multiplier;
    int32_t shift;
  };
  const Row rows[] = {{0x3f80007f, 0, 0},      {0x3f800080, 0, 0},  {0x3f800081, 1, 0},
                      {0x3f800180, 2, 0},      {0x3f800280, 2, 0},  {0x3ffffe80, 0x7ffe, 0},
                      {0x3fffff7f, 0x7fff, 0}, {0x3fffff80, 0, -1}, {0x3f000000, 0, 1}};
  for (const Row& row : rows) {
    const TableShape shape{.in_scale = std::bit_cast<float>(row.scale)};
    const auto jobs = table_function(TableFunction::relu, shape, 0, 1, 1);
    EXPECT_EQ(jobs[0].instructions[0].output_post_multiplier, row.multiplier) << std::hex << row.scale;
    EXPECT_EQ(jobs[0].instructions[0].output_postshift, row.shift) << std::hex << row.scale;
  }
}

TEST(VivanteDriver, EncodesEveryRefusalAsAnErrorThatNamesTheOp) {
  const auto program = driver().compile(driver().chips()[0], conv_graph({.dilation = 2}), {});
  ASSERT_FALSE(program.ok());
  EXPECT_NE(program.error().message.find("CONV_2D"), std::string::npos) << program.error().message;
  EXPECT_NE(program.error().message.find("dilation"), std::string::npos) << program.error().message;
}

}  // namespace
}  // namespace skillet::npus::vivante
