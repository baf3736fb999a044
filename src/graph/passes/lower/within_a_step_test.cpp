// Rewrites that may be a step off: they are at most that for every byte of every channel, and with `strict` there are
// none.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "graph/passes/testing/plain_drivers.h"

namespace skillet::passes {
namespace {

constexpr int kChannels = 3;

// A constant by channel; `shape` 1: a single value.
struct Constant {
  const char* shape;
  double scale;
  bool spread = false;  // from 0 to 255 steps
};

class Network {
 public:
  Network(uint32_t seed, const char* type) : random_(seed), is_signed_(std::string_view(type) == "int8"), type_(type) {
    // A convolution in front without effect, so that there is a neighbour on the chip.
    text_ = fmt::format(
        "tensor 0 \"in\" {0} 1x16x16x{1} scale=0.02 zero={2}\n"
        "tensor 1 \"w\" {0} {1}x1x1x{1} scale=1 zero=0 const=[1 0 0 0 1 0 0 0 1]\n"
        "tensor 2 \"a\" {0} 1x16x16x{1} scale=0.02 zero={2}\n",
        type_, kChannels, zero_ = zero());
    ops_ = "op 0 CONV_2D in=[0 1] out=[2]\n";
  }

  void add(const char* kind, double out_scale, const Constant* constant, const char* activation = "") {
    const int from = last_;
    std::string inputs = fmt::format("{}", from);
    if (constant != nullptr) {
      const bool is_one = std::string_view(constant->shape) == "1";
      std::string values;
      const int lowest = is_signed_ ? -128 : 0;
      for (int i = 0; i < kChannels && !is_one; ++i) values += fmt::format("{}{}", i == 0 ? "" : " ", zero());
      if (is_one) values = fmt::format("{}", lowest + 255);
      if (constant->spread) values = fmt::format("{} {} {}", lowest, lowest + 9, lowest + 255);
      text_ +=
          fmt::format("tensor {} \"c{}\" {} {} scale={} zero={} const=[{}]\n", next_, next_, type_, constant->shape,
                      constant->scale, is_one || constant->spread ? lowest : lowest + 128, values);
      inputs += fmt::format(" {}", next_++);
    }
    text_ += fmt::format("tensor {} \"t{}\" {} 1x16x16x{} scale={} zero={}\n", next_, next_, type_, kChannels,
                         out_scale, zero());
    ops_ += fmt::format("op {} {} in=[{}] out=[{}]{}\n", count_++, kind, inputs, next_, activation);
    last_ = next_++;
  }

  ir::Graph make() const {
    auto graph = ir::parse(fmt::format("graph \"g\"\n{}inputs 0\noutputs {}\n{}", text_, last_, ops_));
    EXPECT_TRUE(graph.ok()) << graph.error().message << text_ << ops_;
    return std::move(*graph);
  }

 private:
  int zero() { return static_cast<int>(random_() % 200) - (is_signed_ ? 100 : -20); }

  std::mt19937 random_;
  bool is_signed_;
  std::string type_, text_, ops_;
  int zero_ = 0, last_ = 2, next_ = 3, count_ = 1;
};

// Every byte in every channel.
std::optional<Bytes> results_of_all_bytes(const ir::Graph& graph) {
  auto cpu = ref::Interpreter::create(graph);
  if (!cpu.ok()) return std::nullopt;
  const std::span<uint8_t> to = cpu->tensor(graph.inputs[0]);
  for (size_t i = 0; i < to.size(); ++i) to[i] = static_cast<uint8_t>(i / kChannels);
  if (!cpu->run().ok()) return std::nullopt;
  return Bytes(cpu->tensor(graph.outputs[0]).begin(), cpu->tensor(graph.outputs[0]).end());
}

struct Made {
  ir::Graph graph;
  std::vector<Rewrite> rewrites;
};
Made rewritten(const ir::Graph& before, npu::PerChannel mode, const npu::Driver& driver = kPlain,
               bool takes_unproven = false) {
  Made out{.graph = before, .rewrites = {}};
  Target target{.driver = &driver, .chip = {}, .per_channel = mode, .takes_unproven = takes_unproven};
  target.rewrites = &out.rewrites;
  const auto done = run_pipeline(out.graph, target);
  EXPECT_TRUE(done.ok()) << done.error().message;
  return out;
}

int largest_difference(const ir::Graph& a, const ir::Graph& b, bool is_signed) {
  const auto one = results_of_all_bytes(a), other = results_of_all_bytes(b);
  EXPECT_TRUE(one && other && one->size() == other->size());
  if (!one || !other || one->size() != other->size()) return 255;
  int largest = 0;
  for (size_t i = 0; i < one->size(); ++i) {
    const auto value = [&](uint8_t byte) { return is_signed ? int{static_cast<int8_t>(byte)} : int{byte}; };
    largest = std::max(largest, std::abs(value((*one)[i]) - value((*other)[i])));
  }
  return largest;
}

struct Step {
  const char* kind;
  double out_scale;
  std::optional<Constant> constant;
  const char* activation;
};
struct Chain {
  const char* name;
  std::vector<Step> steps;
};

TEST(WithinAStep, ChainsOfConstantsByChannel) {
  const Constant factor{"3", 0.011}, factor4{"1x1x1x3", 0.011}, number{"1", 0.011}, term{"3", 0.008};
  const Chain kChains[] = {
      {"batch normalisation", {{"MUL", 0.03, factor, ""}, {"ADD", 0.025, term, " activation=relu"}}},
      {"its RELU apart", {{"MUL", 0.03, factor4, ""}, {"ADD", 0.025, term, ""}, {"RELU", 0.025, std::nullopt, ""}}},
      {"factors of 0 to 255 steps", {{"MUL", 0.05, Constant{"3", 0.009, true}, ""}}},
      {"SUB", {{"SUB", 0.03, term, ""}, {"MUL", 0.03, factor, ""}}},
      {"two factors", {{"MUL", 0.03, factor, ""}, {"MUL", 0.03, Constant{"1", 0.003}, ""}, {"ADD", 0.03, term, ""}}},
      {"a number that is 255 as TensorFlow writes it", {{"MUL", 0.0171, number, ""}}},
  };
  for (const Chain& chain : kChains) {
    size_t tried = 0, whole = 0;
    for (uint32_t seed = 0; seed < 60; ++seed) {
      const bool is_signed = seed % 2 == 0;
      Network network(seed, is_signed ? "int8" : "uint8");
      for (const Step& step : chain.steps)
        network.add(step.kind, step.out_scale, step.constant ? &*step.constant : nullptr, step.activation);
      const ir::Graph before = network.make();
      const Made close = rewritten(before, npu::PerChannel::exact), same = rewritten(before, npu::PerChannel::strict);
      SCOPED_TRACE(
          fmt::format("{}, seed {}\n{}becomes\n{}", chain.name, seed, ir::print(before), ir::print(close.graph)));
      int said = 0;
      for (const Rewrite& one : close.rewrites) said += one.off;
      for (const Rewrite& one : same.rewrites) ASSERT_EQ(one.off, 0);
      ASSERT_EQ(largest_difference(before, same.graph, is_signed), 0);
      ASSERT_LE(largest_difference(before, close.graph, is_signed), said);
      tried += close.rewrites.empty() ? 0 : 1;
      whole += close.graph.ops.size() == 2 ? 1 : 0;
    }
    EXPECT_GT(tried, 10U) << chain.name;
    EXPECT_GT(whole, 10U) << chain.name;  // one operation replaces them
  }
}

TEST(WithinAStep, TheReportSaysSo) {
  Network network(4, "int8");
  const Constant factor{"3", 0.011}, term{"3", 0.008};
  network.add("MUL", 0.03, &factor);
  network.add("ADD", 0.03, &term);
  const Made close = rewritten(network.make(), npu::PerChannel::exact);
  ASSERT_EQ(close.rewrites.size(), 1U);
  EXPECT_EQ(close.rewrites[0].text, "MUL, ADD become DEPTHWISE_CONV_2D 1x1, up to 1 step off");
}

TEST(WithinAStep, SlopesByChannel) {
  size_t off = 0, rewrites = 0;
  const double out_scales[] = {0.019, 0.02, 0.0217, 0.03, 0.09};
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const bool is_signed = seed % 2 == 0;
    Network network(seed, is_signed ? "int8" : "uint8");
    const Constant slopes{"1x1x3", seed % 3 == 0 ? 0.004 : 0.0123};
    network.add("PRELU", out_scales[seed % 5], &slopes);
    const ir::Graph before = network.make();
    const Made close = rewritten(before, npu::PerChannel::exact, kAdding),
               same = rewritten(before, npu::PerChannel::strict, kAdding);
    SCOPED_TRACE(fmt::format("seed {}\n{}becomes\n{}", seed, ir::print(before), ir::print(close.graph)));
    for (const Rewrite& one : close.rewrites) off += static_cast<size_t>(one.off);
    rewrites += close.rewrites.size();
    for (const Rewrite& one : same.rewrites) ASSERT_EQ(one.off, 0);
    ASSERT_EQ(largest_difference(before, same.graph, is_signed), 0);
    ASSERT_LE(largest_difference(before, close.graph, is_signed), 1);
  }
  EXPECT_GT(off, 30U);
  EXPECT_GT(rewrites, 60U);
}

TEST(WithinAStep, SlopesUpToOneAreAddedToTheOperand) {
  struct Row {
    double slope, out_scale;  // the largest slope; the operand has scale 0.02
    size_t ops;               // with the convolution in front
  };
  for (const Row& row : {Row{0.9, 0.02, 3}, Row{0.99, 0.017, 3}, Row{1.1, 0.02, 4}, Row{0.9, 0.0005, 4}}) {
    Network network(5, "int8");
    const Constant slopes{"1x1x3", row.slope / 255, true};
    network.add("PRELU", row.out_scale, &slopes);
    const ir::Graph before = network.make();
    const Made made = rewritten(before, npu::PerChannel::exact, kAdding);
    EXPECT_EQ(made.graph.ops.size(), row.ops) << row.slope << " to " << row.out_scale;
    EXPECT_LE(largest_difference(before, made.graph, true), 1) << row.slope << " to " << row.out_scale;
    EXPECT_EQ(rewritten(before, npu::PerChannel::strict, kAdding).graph.ops.size(), 4U) << "exact";
  }
}

// Supports LEAKY_RELU as an unproven job.
class SlopeDriver : public PlainDriver {
 public:
  SlopeDriver() : PlainDriver({ir::OpKind::add}) {}
  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId id) const override {
    if (graph.op(id).kind == ir::OpKind::leaky_relu) return npu::Support::yes_unproven("a table");
    return PlainDriver::supports(chip, graph, id);
  }
};

TEST(WithinAStep, SlopesThatAreOneJobBecomeSumsOnlyIfTheJobIsRefused) {
  const SlopeDriver driver;
  Network network(2, "int8");
  network.add("LEAKY_RELU", 0.02, nullptr, " alpha=0.1");
  for (const bool takes_unproven : {true, false}) {
    const Made made = rewritten(network.make(), npu::PerChannel::exact, driver, takes_unproven);
    EXPECT_EQ(made.rewrites.empty(), takes_unproven);
  }
}

// Supports RELU6 for types that end at 6.
class EndingDriver : public PlainDriver {
 public:
  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId id) const override {
    const auto* conv = std::get_if<ir::ConvAttrs>(&graph.op(id).attrs);
    const ir::Quant& quant = graph.tensor(graph.op(id).outputs[0]).quant;
    const bool is_signed = graph.tensor(graph.op(id).outputs[0]).dtype == ir::DType::int8;
    const double top = (255.4 - (quant.zero_point() + (is_signed ? 128 : 0))) * static_cast<double>(quant.scale());
    if (conv != nullptr && conv->activation == ir::Activation::relu6 && top > 6.02)
      return npu::Support::no(npu::Remedy::none, "it reaches beyond 6");
    return PlainDriver::supports(chip, graph, id);
  }
};

TEST(WithinAStep, Relu6OfTypesBeyondSix) {
  const EndingDriver driver;
  for (const bool is_signed : {true, false}) {
    for (const double scale : {0.0287, 0.031, 0.0471, 0.12, 0.7}) {
      for (const int above : {0, 3, 40}) {
        const int lowest = is_signed ? -128 : 0;
        auto graph = ir::parse(
            fmt::format("graph \"g\"\ntensor 0 \"in\" {0} 1x16x16x3 scale=0.06 zero={1}\n"
                        "tensor 1 \"w\" {0} 3x1x1x3 scale=0.013 zero={1} const=[{2} {1} {1} {1} {3} {1} {1} {1} {4}]\n"
                        "tensor 2 \"out\" {0} 1x16x16x3 scale={5} zero={6}\ninputs 0\noutputs 2\n"
                        "op 0 CONV_2D in=[0 1] out=[2] activation=relu6\n",
                        is_signed ? "int8" : "uint8", lowest + 128, lowest + 128 + 100, lowest + 128 - 71,
                        lowest + 128 + 17, scale, lowest + above));
        ASSERT_TRUE(graph.ok()) << graph.error().message;
        ir::Graph close = *graph;
        for (const auto mode : {npu::PerChannel::strict, npu::PerChannel::exact}) {
          std::vector<Rewrite> rewrites;
          Target target{.driver = &driver, .chip = {}, .per_channel = mode};
          target.rewrites = &rewrites;
          ASSERT_TRUE(run_pipeline(close, target).ok());
          EXPECT_EQ(rewrites.size(), mode == npu::PerChannel::strict ? 0U : 1U) << scale << " " << above;
        }
        EXPECT_LE(largest_difference(*graph, close, is_signed), 1) << scale << " " << above;
      }
    }
  }
}

// With a scale per channel the first convolution may be a step off, which `exact` does not allow.
TEST(WithinAStep, Relu6OfSeveralScales) {
  const EndingDriver driver;
  for (const auto mode : {npu::PerChannel::strict, npu::PerChannel::exact, npu::PerChannel::approximate}) {
    const auto graph = ir::parse(
        "graph \"g\"\ntensor 0 \"in\" int8 1x16x16x3 scale=0.06 zero=0\n"
        "tensor 1 \"w\" int8 3x1x1x3 scale=[0.013 0.02 0.001] zero=0 const=[100 0 0 0 -71 0 0 0 17]\n"
        "tensor 2 \"out\" int8 1x16x16x3 scale=0.0471 zero=-128\ninputs 0\noutputs 2\n"
        "op 0 CONV_2D in=[0 1] out=[2] activation=relu6\n");
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    EXPECT_EQ(rewritten(*graph, mode, driver).rewrites.size(), mode == npu::PerChannel::approximate ? 1U : 0U);
  }
}

// Averages of any size: for every possible sum, on images of consecutive bytes.
TEST(WithinAStep, AveragesOfAnySize) {
  size_t off = 0;
  for (const bool is_signed : {true, false}) {
    for (int pixels = 2; pixels <= 11; ++pixels) {
      const char* const type = is_signed ? "int8" : "uint8";
      auto graph =
          ir::parse(fmt::format("graph \"g\"\ntensor 0 \"in\" {0} 1x{1}x{1}x1 scale=0.02 zero=5\n"
                                "tensor 1 \"out\" {0} 1x1x1x1 scale=0.02 zero=5\ninputs 0\noutputs 1\n"
                                "op 0 AVERAGE_POOL_2D in=[0] out=[1] padding=valid filter_h={1} filter_w={1}\n",
                                type, pixels));
      ASSERT_TRUE(graph.ok()) << graph.error().message;
      const Made close = rewritten(*graph, npu::PerChannel::exact);
      ASSERT_EQ(close.rewrites.size(), 1U) << pixels;
      off += static_cast<size_t>(close.rewrites[0].off);
      auto before = ref::Interpreter::create(*graph), after = ref::Interpreter::create(close.graph);
      ASSERT_TRUE(before.ok() && after.ok());
      const size_t count = before->tensor(0).size();
      for (size_t step = 0; step < 255 * count; ++step) {  // the sum grows by one
        for (auto* cpu : {&*before, &*after})
          cpu->tensor(0)[step % count] = static_cast<uint8_t>(step / count + 1 + (is_signed ? 128 : 0));
        if (step < count) continue;
        ASSERT_TRUE(before->run().ok() && after->run().ok());
        const auto value = [&](uint8_t byte) { return is_signed ? int{static_cast<int8_t>(byte)} : int{byte}; };
        ASSERT_LE(std::abs(value(before->tensor(1)[0]) - value(after->tensor(1)[0])), close.rewrites[0].off)
            << pixels << " " << step;
      }
    }
  }
  EXPECT_GT(off, 0U);
}

// RESIZE_BILINEAR: small images in one convolution, larger ones along rows, then along columns.
TEST(WithinAStep, ResizedImages) {
  struct Case {
    const char *from, *size, *to, *attrs;
    std::ptrdiff_t convolutions;
    bool floats = false;  // only uint8, whose places are floats; int8 has 1024ths, which parts do not match
  };
  for (const Case& one : {Case{"1x6x5x3", "12 10", "1x12x10x3", "half_pixel_centers=true", 1},
                          Case{"1x6x5x3", "24 20", "1x24x20x3", "half_pixel_centers=true", 1},
                          Case{"1x64x48x3", "128 96", "1x128x96x3", "half_pixel_centers=true", 2},
                          Case{"1x64x64x2", "128 256", "1x128x256x2", "half_pixel_centers=true", 2},
                          Case{"1x64x64x2", "128 128", "1x128x128x2", "half_pixel_centers=false", 2},
                          Case{"1x64x64x2", "128 128", "1x128x128x2", "align_corners=true", 2, true},
                          Case{"1x64x64x2", "96 112", "1x96x112x2", "half_pixel_centers=true", 2, true},
                          Case{"1x64x64x2", "192 192", "1x192x192x2", "half_pixel_centers=true", 2, true}}) {
    for (const char* type : {"int8", "uint8"}) {
      auto graph =
          ir::parse(fmt::format("graph \"g\"\ntensor 0 \"in\" {0} {1} scale=0.02 zero=5\n"
                                "tensor 1 \"size\" int32 2 const=[{2}]\n"
                                "tensor 2 \"out\" {0} {3} scale=0.02 zero=5\ninputs 0\noutputs 2\n"
                                "op 0 RESIZE_BILINEAR in=[0 1] out=[2] {4}\n",
                                type, one.from, one.size, one.to, one.attrs));
      ASSERT_TRUE(graph.ok()) << graph.error().message;
      const Made close = rewritten(*graph, npu::PerChannel::exact, kTransposing);
      const bool stays = one.floats && std::string_view(type) == "int8";
      ASSERT_EQ(std::ranges::count(close.graph.ops, ir::OpKind::conv_2d, &ir::Op::kind), stays ? 0 : one.convolutions)
          << one.from << " to " << one.to;
      if (stays) continue;
      const int largest = largest_difference(*graph, close.graph, std::string_view(type) == "int8");
      EXPECT_LE(largest, close.rewrites[0].off) << one.from << " " << type;
    }
  }
}

// A chip that joins rows and columns, and repeats pixels.
class JoiningDriver : public PlainDriver {
 public:
  JoiningDriver() : PlainDriver({ir::OpKind::slice, ir::OpKind::resize_nearest_neighbor}) {}
  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId id) const override {
    if (graph.op(id).kind == ir::OpKind::concatenation) return npu::Support::yes();
    return PlainDriver::supports(chip, graph, id);
  }
};

TEST(WithinAStep, EdgesAreRepeated) {
  const JoiningDriver driver;
  struct Case {
    const char *from, *second, *to, *op;
    bool is_taken = true;
  };
  constexpr const char *kCentred = "RESIZE_BILINEAR in=[0 1] out=[2] half_pixel_centers=true",
                       *kPlaced = "RESIZE_BILINEAR in=[0 1] out=[2]", *kMirrored = "MIRROR_PAD in=[0 1] out=[2]";
  for (const Case& one :
       {Case{"int8 1x20x24x3", "2 const=[40 48]", "1x40x48x3", kCentred},
        Case{"int8 1x20x24x3", "2 const=[40 48]", "1x40x48x3", kPlaced},
        Case{"int8 1x20x24x3", "2 const=[80 96]", "1x80x96x3", kCentred},
        Case{"int8 1x10x12x3", "2 const=[80 96]", "1x80x96x3", kPlaced},
        Case{"uint8 1x2x3x3", "2 const=[6 9]", "1x6x9x3", kCentred},
        Case{"uint8 1x2x3x3", "2 const=[10 15]", "1x10x15x3", kPlaced},
        Case{"int8 1x20x24x3", "2 const=[60 72]", "1x60x72x3", kCentred, false},  // places of int8 drift
        Case{"int8 1x20x24x3", "2 const=[40 49]", "1x40x49x3", kCentred, false},
        Case{"int8 1x20x24x3", "2 const=[40 48]", "1x40x48x3", "RESIZE_BILINEAR in=[0 1] out=[2] align_corners=true",
             false},
        Case{"int8 1x20x24x3", "4x2 const=[0 0 2 3 1 0 0 0]", "1x25x25x3", kMirrored},
        Case{"int8 1x20x24x3", "4x2 const=[0 0 2 3 0 0 0 0]", "1x25x24x3", kMirrored},
        Case{"int8 1x20x24x3", "4x2 const=[0 0 0 0 0 2 0 0]", "1x20x26x3",
             "MIRROR_PAD in=[0 1] out=[2] symmetric=true"},
        Case{"int8 1x20x24x3", "4x2 const=[0 0 17 0 0 0 0 0]", "1x37x24x3", kMirrored, false},
        Case{"int8 1x20x24x3", "4x2 const=[0 0 0 0 0 0 1 1]", "1x20x24x5", kMirrored, false}}) {
    auto graph = ir::parse(fmt::format(
        "graph \"g\"\ntensor 0 \"in\" {} scale=0.02 zero=5\ntensor 1 \"how\" int32 {}\n"
        "tensor 2 \"out\" {} {} scale=0.02 zero=5\ninputs 0\noutputs 2\nop 0 {}\n",
        one.from, one.second, std::string_view(one.from).starts_with("int8") ? "int8" : "uint8", one.to, one.op));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const Made close = rewritten(*graph, npu::PerChannel::exact, driver);
    ASSERT_EQ(close.rewrites.size(), one.is_taken ? 1U : 0U) << one.op << " " << one.to;
    if (!one.is_taken) continue;
    EXPECT_LE(largest_difference(*graph, close.graph, std::string_view(one.from).starts_with("int8")),
              close.rewrites[0].off)
        << one.op << " " << one.to;
    EXPECT_EQ(close.rewrites[0].off, std::string_view(one.op).starts_with("MIRROR") ? 0 : 1);
    const Made strict = rewritten(*graph, npu::PerChannel::strict, driver);
    EXPECT_EQ(strict.rewrites.empty(), std::string_view(one.op).starts_with("RESIZE")) << one.to;
  }
}

// A chip with small strides.
class SmallPoolDriver : public PlainDriver {
 public:
  SmallPoolDriver() : PlainDriver({ir::OpKind::average_pool_2d}) {}
  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId id) const override {
    const ir::Op& op = graph.op(id);
    if (op.kind == ir::OpKind::average_pool_2d && op.as<ir::PoolAttrs>().stride_h > 7)
      return npu::Support::no(npu::Remedy::none, "stride");
    return PlainDriver::supports(chip, graph, id);
  }
};

TEST(WithinAStep, PoolsSideBySideInTwoSteps) {
  const SmallPoolDriver driver;
  struct Case {
    const char *from, *to, *how;
    bool is_taken = true;
  };
  for (const Case& one : {Case{"24x24", "2x2", "padding=valid stride_h=12 stride_w=12 filter_h=12 filter_w=12"},
                          Case{"33x20", "2x6", "padding=valid stride_h=15 stride_w=3 filter_h=15 filter_w=3"},
                          Case{"24x24", "2x3", "stride_h=12 stride_w=8 filter_h=12 filter_w=8 activation=relu"},
                          Case{"25x24", "3x3", "stride_h=12 stride_w=8 filter_h=12 filter_w=8", false},
                          Case{"24x24", "2x2", "padding=valid stride_h=11 stride_w=11 filter_h=11 filter_w=11", false},
                          Case{"24x24", "2x2", "padding=valid stride_h=12 stride_w=12 filter_h=9 filter_w=9", false}}) {
    const auto graph = ir::parse(fmt::format(
        "graph \"g\"\ntensor 0 \"in\" int8 1x{}x3 scale=0.02 zero=5\n"
        "tensor 1 \"out\" int8 1x{}x3 scale=0.02 zero=5\ninputs 0\noutputs 1\nop 0 AVERAGE_POOL_2D in=[0] out=[1] {}\n",
        one.from, one.to, one.how));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const Made close = rewritten(*graph, npu::PerChannel::exact, driver);
    const auto in_steps = [](const Rewrite& rewrite) { return rewrite.pass == "average_in_steps"; };
    ASSERT_EQ(std::ranges::count_if(close.rewrites, in_steps), one.is_taken ? 1 : 0) << one.how;
    EXPECT_LE(largest_difference(*graph, close.graph, true), 1) << one.how;
  }
}

// As layer normalisation has it: a value for each pixel, times a constant for each channel.
TEST(WithinAStep, ConstantsByChannelOfOneChannel) {
  for (const char* kind : {"MUL", "ADD", "SUB"}) {
    for (const char* shape : {"1x16x48", "16x48", "1x1x768"}) {
      const auto graph =
          ir::parse(fmt::format("graph \"g\"\ntensor 0 \"in\" int8 1x16x48x1 scale=0.02 zero=-5\n"
                                "tensor 1 \"w\" int8 1x1x1x1 scale=1 zero=0 const=[1]\n"
                                "tensor 2 \"image\" int8 1x16x48x1 scale=0.02 zero=-5\n"
                                "tensor 3 \"same\" int8 {0}x1 scale=0.02 zero=-5\n"
                                "tensor 4 \"c\" int8 {1} scale=0.0078 zero=-128 const=[127 -128 13]\n"
                                "tensor 5 \"out\" int8 {0}x3 scale=0.041 zero=9\ninputs 0\noutputs 5\n"
                                "op 0 CONV_2D in=[0 1] out=[2]\nop 1 RESHAPE in=[2] out=[3]\n"
                                "op 2 {2} in=[3 4] out=[5] activation=relu\n",
                                shape, std::string_view(shape) == "1x16x48" ? "1x1x1x3" : "3", kind));
      ASSERT_TRUE(graph.ok()) << graph.error().message;
      const Made close = rewritten(*graph, npu::PerChannel::exact), same = rewritten(*graph, npu::PerChannel::strict);
      const auto is_conv = [](const ir::Op& op) { return op.kind == ir::OpKind::conv_2d; };
      EXPECT_EQ(std::ranges::count_if(close.graph.ops, is_conv), 2) << kind << " " << shape;
      EXPECT_EQ(std::ranges::count_if(same.graph.ops, is_conv), 1) << kind << " " << shape;
      EXPECT_LE(largest_difference(*graph, close.graph, true), 1) << kind << " " << shape;
    }
  }
}

// Too large for a convolution whose channels are the pixels.
TEST(WithinAStep, PoolsByAxes) {
  struct Case {
    const char *from, *to, *how;
    bool is_taken = true;
  };
  for (const Case& one : {Case{"48x48", "48x48", "filter_h=3 filter_w=3"},
                          Case{"96x96", "48x48", "stride_h=2 stride_w=2 filter_h=3 filter_w=5 activation=relu"},
                          Case{"288x288", "9x9", "padding=valid stride_h=32 stride_w=32 filter_h=32 filter_w=32"},
                          Case{"48x48", "48x48", "filter_h=21 filter_w=21", false}}) {
    for (const char* type : {"int8", "uint8"}) {
      const auto graph =
          ir::parse(fmt::format("graph \"g\"\ntensor 0 \"in\" {0} 1x{1}x3 scale=0.02 zero=5\n"
                                "tensor 1 \"out\" {0} 1x{2}x3 scale=0.02 zero=5\ninputs 0\noutputs 1\n"
                                "op 0 AVERAGE_POOL_2D in=[0] out=[1] {3}\n",
                                type, one.from, one.to, one.how));
      ASSERT_TRUE(graph.ok()) << graph.error().message;
      const Made close = rewritten(*graph, npu::PerChannel::exact, kTransposing);
      EXPECT_EQ(rewritten(*graph, npu::PerChannel::strict, kTransposing).rewrites.size(), 0U) << one.how;
      ASSERT_EQ(close.rewrites.size(), one.is_taken ? 1U : 0U) << one.how;
      EXPECT_LE(largest_difference(*graph, close.graph, std::string_view(type) == "int8"), 1) << one.how;
    }
  }
}

// A large image whose edges are mirrored, where pixels cannot be joined.
TEST(WithinAStep, MirroredAlongAxes) {
  auto graph = ir::parse(
      "graph \"g\"\ntensor 0 \"in\" int8 1x96x80x3 scale=0.02 zero=5\n"
      "tensor 1 \"how\" int32 4x2 const=[0 0 2 3 20 1 0 0]\ntensor 2 \"out\" int8 1x101x101x3 scale=0.02 zero=5\n"
      "inputs 0\noutputs 2\nop 0 MIRROR_PAD in=[0 1] out=[2]\n");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const Made made = rewritten(*graph, npu::PerChannel::strict, kTransposing);
  ASSERT_EQ(made.rewrites.size(), 1U);
  EXPECT_EQ(largest_difference(*graph, made.graph, true), 0);
}

}  // namespace
}  // namespace skillet::passes
