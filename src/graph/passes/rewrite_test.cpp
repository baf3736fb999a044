// Tests each exact pass alone: its text before and after, and equal bits in random networks made for it. The networks
// are small, and most contain the passes' patterns, unchanged and with one thing changed. SKILLET_RANDOM_GRAPHS sets
// the number for each pass (default 400), SKILLET_RANDOM_GRAPHS_FIRST the first seed; SKILLET_REWRITTEN names a folder
// for the rewritten networks, to compare two revisions whose digests (testing/digests.h) differ.
#include "graph/passes/rewrite.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "graph/passes/testing/digests.h"
#include "graph/passes/testing/letters.h"
#include "graph/passes/testing/patterns.h"
#include "graph/passes/testing/perturb.h"
#include "graph/passes/testing/plain_drivers.h"
#include "graph/passes/testing/texts.h"

namespace skillet::passes {
namespace {

const Pass& pass_named(std::string_view name) {
  for (const Pass& pass : exact_passes()) {
    if (pass.name == name) return pass;
  }
  ADD_FAILURE() << "no pass " << name;
  return exact_passes()[0];
}

// ---- the same bits ----

uint32_t from_environment(const char* name, uint32_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? static_cast<uint32_t>(std::atoi(text)) : otherwise;
}

struct Network {
  ir::Graph graph;
  uint32_t seed;
};

// Made and verified once for all passes.
const std::vector<Network>& networks(uint32_t first, uint32_t count) {
  static const std::vector<Network> all = [&] {
    constexpr uint32_t kChanges = 6;  // of each network
    std::vector<Network> out;
    for (uint32_t seed = first; seed < first + count; ++seed) {
      const size_t plain = out.size();
      out.push_back({Patterns(seed).make(), seed});
      for (uint32_t change = 0; change < kChanges; ++change)
        out.push_back({Perturb(seed * kChanges + change).of(out[plain].graph), seed});
    }
    for (const Network& one : out) {
      EXPECT_TRUE(ir::verify(one.graph).ok()) << ir::verify(one.graph).error().message << ir::print(one.graph);
    }
    return out;
  }();
  return all;
}

class ExactPass : public ::testing::TestWithParam<size_t> {
 protected:
  // Rewrites the network and records the result.
  void rewrite_alike(const Network& network) {
    ir::Graph after = network.graph;
    const auto rewrites = rewrite(after, pass_);
    ASSERT_TRUE(rewrites.ok()) << rewrites.error().message;
    if (pass_.name == "remove_dead_ops") told_ += ir::print(after);  // which records no rewrites
    if (rewrites->empty()) return;
    ++rewritten_;
    for (const Rewrite& one : *rewrites) told_ += fmt::format("{}: {}\n", one.source, one.text);
    told_ += ir::print(after);
    const auto wanted = results(network.graph, network.seed), got = results(after, network.seed);
    if (!wanted) return;  // no CPU kernel before
    ASSERT_TRUE(got) << ir::print(after);
    ASSERT_TRUE(*wanted == *got) << "becomes\n" << ir::print(after);
  }

  const Pass& pass_ = exact_passes()[GetParam()];
  uint32_t rewritten_ = 0;
  std::string told_;
};

TEST_P(ExactPass, ChangesNoBit) {
  const uint32_t first = from_environment("SKILLET_RANDOM_GRAPHS_FIRST", 1);
  const uint32_t count = from_environment("SKILLET_RANDOM_GRAPHS", 400);
  for (const Network& network : networks(first, count)) {
    rewrite_alike(network);
    ASSERT_FALSE(HasFailure()) << "seed " << network.seed << "\n" << ir::print(network.graph);
  }
  if (const char* folder = std::getenv("SKILLET_REWRITTEN"))
    std::ofstream(fmt::format("{}/{}.txt", folder, pass_.name)) << told_;
  // Else the networks do not exercise the pass.
  if (first == 1 && count == 400) {
    // Networks of these passes have separate tests; for repeat_operands: the texts and extremes_test.cpp.
    constexpr std::array kOthers = {"remove_dead_ops", "lower_sequence_mean", "lower_uneven_stride",
                                    "copy_constants",  "repeat_operands",     "slice_before_transpose",
                                    "drop_unit_mul"};
    if (std::ranges::find(kOthers, pass_.name) == kOthers.end()) {
      EXPECT_GT(rewritten_, 4U);
    }
    EXPECT_EQ(fmt::format("{{\"{}\", {}, 0x{:016x}}},", pass_.name, rewritten_, digest(told_)), digest_row(pass_.name));
  }
}

INSTANTIATE_TEST_SUITE_P(Passes, ExactPass, ::testing::Range<size_t>(0, exact_passes().size()),
                         [](const auto& one) { return std::string(exact_passes()[one.param].name); });

// ---- texts ----

std::vector<std::string> lines(const std::string& text, std::string_view start) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(start)) out.push_back(line);
  }
  return out;
}

TEST(Rewrites, EachPassHasATextBeforeAndAfter) {
  for (const Pass& pass : exact_passes()) {
    EXPECT_TRUE(pass.name == "remove_dead_ops" ||
                std::ranges::any_of(kRows, [&](const Row& row) { return row.pass == pass.name; }))
        << pass.name;
  }
}

TEST(Rewrites, TextBeforeAndAfter) {
  for (const Row& row : kRows) {
    auto graph = ir::parse(std::string("graph \"golden\"\n") + row.before);
    ASSERT_TRUE(graph.ok()) << row.pass << ": " << graph.error().message;
    const size_t tensors = graph->tensors.size();
    const auto rewrites = rewrite(*graph, pass_named(row.pass));
    ASSERT_TRUE(rewrites.ok()) << row.pass << ": " << rewrites.error().message;
    std::string said;
    for (const Rewrite& one : *rewrites) said += one.text;
    EXPECT_EQ(said, row.said) << row.pass;
    const std::string got = ir::print(*graph);
    EXPECT_EQ(lines(got, "op"), lines(row.after, "op")) << row.pass;
    const auto added = lines(got, "tensor");
    EXPECT_EQ(std::vector<std::string>(added.begin() + static_cast<std::ptrdiff_t>(tensors), added.end()),
              lines(row.after, "tensor"))
        << row.pass;
  }
}

// Ops that are kept (by their number in the file) are not rewritten for the chip; simplifications still happen.
TEST(Rewrites, LeaveAloneWhatIsKept) {
  size_t for_chip = 0;
  for (const Row& row : kRows) {
    const auto graph = ir::parse(std::string("graph \"golden\"\n") + row.before);
    ASSERT_TRUE(graph.ok()) << row.pass;
    std::set<int32_t> all;
    for (const ir::Op& op : graph->ops) all.insert(op.source_index);
    ir::Graph free = *graph, held = *graph;
    const auto some = rewrite(free, pass_named(row.pass)), fewer = rewrite(held, pass_named(row.pass), all);
    ASSERT_TRUE(some.ok() && fewer.ok()) << row.pass;
    EXPECT_EQ(std::ranges::count_if(*fewer, &Rewrite::is_for_chip), 0) << row.pass;
    for_chip += static_cast<size_t>(std::ranges::count_if(*some, &Rewrite::is_for_chip));
    if (std::ranges::none_of(*some, &Rewrite::is_for_chip)) {
      EXPECT_EQ(some->size(), fewer->size()) << row.pass;
    }
  }
  EXPECT_GT(for_chip, 20U);
}

// A model file cannot store how a convolution rounds its multiplier.
TEST(Rewrites, FilesGetNoConvolutionThatMultipliesOtherwise) {
  size_t kept = 0, taken = 0;
  for (const Row& row : kRows) {
    if (std::string_view(row.pass) != "lower_dense_as_conv") continue;
    auto graph = ir::parse(std::string("graph \"golden\"\n") + row.before);
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    std::vector<Rewrite> rewrites;
    Target target{.driver = &driver_for(pass_named(row.pass)), .chip = {}, .rewrites = &rewrites, .for_files = true};
    pass_named(row.pass).run(*graph, target);
    const bool differs = std::string_view(row.after).find("float_product") != std::string_view::npos;
    EXPECT_EQ(rewrites.empty(), differs) << row.before;
    ++(differs ? kept : taken);
  }
  EXPECT_GT(kept, 0u);
  EXPECT_GT(taken, 0u);
}

// Biases between the points where one multiplier and the other round up: the bytes show which one is used.
TEST(Rewrites, AConvolutionMultipliesAsTheLayerDid) {
  constexpr float kIn = 0.3F, kFilter = 0.7F, kOut = 2e6F;
  const double of_layer = double{kIn * kFilter} / kOut, of_convolution = double{kIn} * kFilter / kOut;
  std::string biases, zeros;
  for (int step = 90; step < 120; ++step) {
    biases += fmt::format("{} ", std::lround((step + 0.5) * (1 / of_layer + 1 / of_convolution) / 2));
    zeros += "0 ";
  }
  auto before =
      ir::parse(fmt::format("graph \"rows\"\ntensor 0 \"a\" int8 2x1 scale=0.3 zero=3\n"
                            "tensor 1 \"w\" int8 30x1 scale=0.7 const=[{}]\ntensor 2 \"bias\" int32 30 const=[{}]\n"
                            "tensor 3 \"b\" int8 2x30 scale={} zero=3\ninputs 0\noutputs 3\n"
                            "op 0 FULLY_CONNECTED in=[0 1 2] out=[3]\n",
                            zeros, biases, kOut));
  ASSERT_TRUE(before.ok()) << before.error().message;
  ir::Graph after = *before;
  const auto rewrites = rewrite(after, pass_named("lower_dense_as_conv"));
  ASSERT_TRUE(rewrites.ok() && rewrites->size() == 1);
  const auto wanted = results(*before, 1);
  EXPECT_TRUE(wanted && wanted == results(after, 1));
  std::get<ir::ConvAttrs>(after.ops[1].attrs).float_product = false;
  EXPECT_TRUE(wanted != results(after, 1));
}

// Conditions of each pass: with one change of the text above the pass does nothing; with another one it still rewrites.
struct Guard {
  const char *pass, *find, *left_alone, *rewritten;
};
const Guard kGuards[] = {
    {"fuse_byte_functions", "zero=128\ntensor 1", "zero=128 variable\ntensor 1", nullptr},
    {"fuse_byte_functions", "op 0 LOGISTIC", "op 0 SOFTMAX", "op 0 TANH"},
    {"fuse_activations", "outputs 3", "outputs 3 2", "outputs 3"},
    {"fuse_activations", "c\" uint8 1x4x4x1 scale=0.5", "c\" uint8 1x4x4x1 scale=0.25", "c\" uint8 1x4x4x1 scale=0.5"},
    {"fuse_activations", "out=[2]\n", "out=[2] activation=relu\n", "out=[2] activation=none\n"},
    {"fold_pads", "[0 0 0 1 0 1 0 0]", "[0 0 1 0 0 1 0 0]", "[0 0 0 1 0 1 0 0]"},
    {"fold_pads", "[0 0 0 1 0 1 0 0]", "[0 0 0 1 1 0 0 0]", "[0 0 0 1 0 1 0 0]"},
    {"fold_pads", "outputs 4", "outputs 4 2", "outputs 4"},
    {"fold_pads", "b\" uint8 1x5x5x1 scale=0.5 zero=3", "b\" uint8 1x5x5x1 scale=0.5 zero=4",
     "b\" uint8 1x5x5x1 scale=0.5 zero=3"},
    {"fold_pads", "inputs 0", "inputs 0 1", nullptr},
    {"fold_pads", "in=[2 3]", "in=[2 2]", "in=[2 3]"},  // else the filter would be padded too
    {"fold_space_to_batch", "const=[4 2 1 2]", "const=[3 3 1 2]", "const=[4 2 1 2]"},
    {"fold_space_to_batch", "const=[4 2 1 2]", "const=[4 2 2 1]", "const=[4 2 1 2]"},
    {"fold_space_to_batch", "const=[4 2 1 2]", "const=[4 2 0 0]",
     "const=[4 2 1 2]"},  // columns are valid, rows are not
    {"fold_space_to_batch", "1x4x6x1 scale=0.5 zero=3\ntensor 1", "1x4x6x1 scale=0.5 zero=3 variable\ntensor 1",
     nullptr},
    {"fold_space_to_batch", "padding=valid", "padding=valid stride_h=2", nullptr},
    {"fold_space_to_batch", "padding=valid", "padding=valid dilation_w=2", nullptr},
    {"fold_space_to_batch", "padding=valid", "", nullptr},
    {"fold_space_to_batch", "outputs 6", "outputs 6 5", "outputs 6"},
    {"fold_space_to_batch", "outputs 6", "outputs 6 3", "outputs 6"},
    {"fold_space_to_batch", "d\" uint8 1x4x6x1 scale=0.5", "d\" uint8 1x4x6x1 scale=0.25",
     "d\" uint8 1x4x6x1 scale=0.5"},
    {"fold_space_to_batch", "b\" uint8 6x5x3x1 scale=0.5", "b\" uint8 6x5x3x1 scale=0.25", nullptr},
    {"expand_dilation", "dilation_h=2", "dilation_h=64", "dilation_h=63"},
    {"expand_dilation", "dilation_w=2", "dilation_w=64", "dilation_w=63"},
    {"expand_dilation", "dilation_h=2 dilation_w=2", "dilation_h=1 dilation_w=1", "dilation_h=1 dilation_w=2"},
    {"expand_dilation", "inputs 0", "inputs 0 1", nullptr},
    {"lower_depthwise_as_conv", "inputs 0", "inputs 0 1", nullptr},
    {"lower_average_as_depthwise", "1x1x1x1 scale=0.5", "1x1x1x1 scale=0.7", "1x1x1x1 scale=0.5"},
    {"lower_average_as_depthwise", "1x2x2x1 scale=0.5 zero=3", "1x2x2x1 scale=0.5 zero=3 variable", nullptr},
    {"lower_rescale_as_depthwise", "CONV_2D in=[1 2]", "\"CUSTOM\" in=[1 2]", "CONV_2D in=[1 2]"},
    {"merge_transposes", "outputs 5", "outputs 5 2", nullptr},
    {"slice_before_transpose", "outputs 11 14", "outputs 11 14 4", "outputs 14 11"},
    {"slice_before_transpose", "op 5 SLICE in=[4 12 13] out=[14]", "op 5 \"CUSTOM\" in=[4 12 13] out=[14]", nullptr},
    {"merge_quantizes", "b\" int8 1x4 scale=0.5", "b\" int8 1x4 scale=0.7", "b\" int8 1x4 scale=0.5"},
    {"merge_quantizes", "zero=3", "zero=4", "zero=3"},
    {"merge_quantizes", "b\" int8 1x4 scale=0.5 zero=3", "b\" uint8 1x4 scale=0.5 zero=130",
     "b\" uint8 1x4 scale=0.5 zero=131"},
    {"remove_strides", "a\" uint8 1x2x2x1", "a\" uint8 1x5x2x1", nullptr},
    {"remove_strides", "a\" uint8 1x2x2x1", "a\" uint8 1x2x5x1", nullptr},
    {"remove_strides", "stride_h=3 stride_w=3", "stride_h=1 stride_w=1", "stride_h=3 stride_w=1"},
    {"remove_strides", "stride_h=3 stride_w=3", "stride_h=1 stride_w=1", "stride_h=1 stride_w=3"},
    {"split_batches", "2x1x1x2", "9x1x1x2", "8x1x1x2"},
    {"split_pad", "[0 0 3 0 0 1 0 0]", "[0 0 2 0 0 2 0 0]", "[0 0 0 1 3 0 0 0]"},
    {"split_pad", "b\" uint8 1x5x3x1 scale=0.5", "b\" uint8 1x5x3x1 scale=0.25", "b\" uint8 1x5x3x1 scale=0.5"},
    {"split_pad", "[0 0 3 0 0 1 0 0]", "[0 0 17 0 0 1 0 0]", "[0 0 16 0 0 1 0 0]"},
    {"lower_transpose_conv", "stride_h=2 stride_w=2", "stride_h=2 stride_w=3", nullptr},
    {"lower_transpose_conv", "stride_h=2 stride_w=2", "stride_h=3 stride_w=2", "stride_h=1 stride_w=2"},
    {"lower_transpose_conv", "[1 4 2 1]", "[1 9 2 1]", "[1 5 2 1]"},
    {"lower_transpose_conv", "b\" int8 1x4x2x1", "b\" uint8 1x4x2x1", "b\" int8 1x4x2x1"},
    {"lower_transpose_conv", "inputs 2", "inputs 2 1", nullptr},
    {"lower_resize_as_conv", "half_pixel_centers=true", "align_corners=true", ""},
    {"lower_resize_as_conv", "const=[1 4]", "const=[1 5]", "const=[2 8]"},
    {"lower_resize_as_conv", "b\" int8 1x1x4x1 scale=0.5", "b\" int8 1x1x4x1 scale=0.25", "b\" int8 1x1x4x1 scale=0.5"},
    {"lower_resize_as_conv", "inputs 0", "inputs 0 1", nullptr},
    {"flatten_in_dense", "outputs 4", "outputs 4 2", nullptr},
    {"flatten_in_dense", "b\" int8 1x4 scale=0.5", "b\" int8 1x4 scale=0.25", "b\" int8 1x4 scale=0.5"},
    {"flatten_in_dense", "in=[2 3]", "in=[2 3] keep_num_dims=true", nullptr},
    {"lower_leaky_relu_as_sum", "a\" uint8 1x2x1x1 scale=0.5 zero=3", "a\" uint8 1x2x1x1 scale=0.5 zero=3 variable",
     "a\" uint8 1x2x1x1 scale=0.5 zero=4"},
    {"lower_leaky_relu_as_sum", "alpha=0.5", "alpha=1e-40", "alpha=-0.7"},
    {"lower_leaky_relu_as_sum", "alpha=0.5", "alpha=-0.75", "alpha=-0.7"},  // halves round in the other direction
    {"lower_max_pool_as_sums", "filter_h=2", "filter_h=2 activation=relu", "filter_h=1"},
    {"lower_max_pool_as_sums", "b\" int8 1x1x1x1 scale=0.5", "b\" int8 1x1x1x1 scale=0.25",
     "b\" int8 1x1x1x1 scale=0.5"},
    {"lower_max_pool_as_sums", "1x2x1x1 scale=0.5 zero=3", "1x2x1x1 scale=0.5 zero=3 variable", nullptr},
    {"lower_sub_as_sum", "c\" int8 1x2x1x1 scale=0.5 zero=3", "c\" int8 1x2x1x1 scale=0.5 zero=4",
     "c\" int8 1x2x1x1 scale=0.5 zero=3"},
    {"lower_sub_as_sum", "in=[0 1]", "in=[0 0]", "in=[1 0]"},
    {"rescale_concat", "out=[2] axis=3", "out=[2] axis=3 activation=relu", "out=[2] axis=3"},
    {"fold_constants", "const=[1 2 3 4]", "variable", "const=[4 3 2 1]"},
    {"lower_dense_as_conv", "2x2 scale", "1x2 scale", "3x2 scale"},
    {"lower_dense_as_conv", "inputs 0", "inputs 0 1", nullptr},
};

// nullptr if the change is not meant to be rewritten; shapes follow from the ops.
std::string said_of(const Guard& guard, std::string_view by) {
  const auto row = std::ranges::find(kRows, std::string_view(guard.pass), &Row::pass);
  std::string text = std::string("graph \"golden\"\n") + row->before;
  const size_t at = text.find(guard.find);
  EXPECT_NE(at, std::string::npos) << guard.find;
  if (at == std::string::npos) return "?";
  text.replace(at, std::string_view(guard.find).size(), by);
  if (by == "inputs 0 1" || by == "inputs 2 1") {  // a constant becomes a computed tensor
    const size_t line = text.find("tensor 1"), constant = text.find(" const=", line);
    text.erase(constant, text.find('\n', constant) - constant);
  }
  auto graph = ir::parse(text);
  EXPECT_TRUE(graph.ok()) << graph.error().message << "\n" << text;
  if (!graph.ok() || !ir::infer_shapes(*graph).ok()) return "?";
  const auto rewrites = rewrite(*graph, pass_named(guard.pass));
  EXPECT_TRUE(rewrites.ok()) << rewrites.error().message << "\n" << text;
  std::string said;
  for (const Rewrite& one : rewrites.ok() ? *rewrites : std::vector<Rewrite>{}) said += one.text;
  return said;
}

TEST(Rewrites, LeaveAloneWhatTheyMust) {
  for (const Guard& guard : kGuards) {
    SCOPED_TRACE(fmt::format("{}: {}", guard.pass, guard.left_alone));
    EXPECT_EQ(said_of(guard, guard.left_alone), "");
    if (guard.rewritten != nullptr) {
      EXPECT_NE(said_of(guard, guard.rewritten), "");
    }
  }
}

// On a large image many jobs take longer than the CPU.
TEST(Rewrites, LargestImageOfSums) {
  for (const int width : {65536, 65537}) {
    auto graph =
        ir::parse(fmt::format("graph \"pool\"\ntensor 0 \"a\" int8 1x2x{0}x1 scale=0.5 zero=3\n"
                              "tensor 1 \"b\" int8 1x1x{0}x1 scale=0.5 zero=3\ninputs 0\noutputs 1\n"
                              "op 0 MAX_POOL_2D in=[0] out=[1] padding=valid filter_h=2\n",
                              width));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const auto rewrites = rewrite(*graph, pass_named("lower_max_pool_as_sums"));
    ASSERT_TRUE(rewrites.ok()) << rewrites.error().message;
    EXPECT_EQ(rewrites->size(), width == 65536 ? 1U : 0U);
  }
}

// Folded constants may take a megabyte together with their inputs.
TEST(Rewrites, LargestConstantsThatAreFolded) {
  constexpr int kMost = (1 << 20) / 8;  // of 4 bytes in, 4 out
  for (const int count : {kMost, kMost + 1}) {
    auto graph =
        ir::parse(fmt::format("graph \"constants\"\ntensor 0 \"a\" float32 {0} const=xxh3:0:{1}\n"
                              "tensor 1 \"b\" float32 {0}\ntensor 2 \"c\" float32 {0}\n"
                              "tensor 3 \"d\" float32 {0}\ninputs 2\noutputs 3\n"
                              "op 0 NEG in=[0] out=[1]\nop 1 ADD in=[1 2] out=[3]\n",
                              count, 4 * count));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const auto rewrites = rewrite(*graph, pass_named("fold_constants"));
    ASSERT_TRUE(rewrites.ok()) << rewrites.error().message;
    EXPECT_EQ(rewrites->size(), count == kMost ? 1U : 0U) << count;
  }
}

// A pass, a network with two numbers and the bytes of its filter ({2}), the largest accepted numbers and the first
// refused ones.
struct Limit {
  const char *pass, *network;
  std::array<int, 2> most, too_much;
};
const char* const kDilated =
    "tensor 0 \"a\" int8 1x64x1x512 scale=0.5 zero=3\ntensor 1 \"w\" int8 {0}x2x1x{1} scale=0.5 zero=7 "
    "const=xxh3:0:{2}\n"
    "tensor 2 \"b\" int8 1x64x1x{0} scale=0.5 zero=3\ninputs 0\noutputs 2\n"
    "op 0 CONV_2D in=[0 1] out=[2] dilation_h=63\n";
const char* const kMean =
    "tensor 0 \"a\" int8 1x{0}x{1}x1 scale=0.5 zero=3\ntensor 1 \"x\" int32 2 const=[1 2]\n"
    "tensor 2 \"b\" int8 1x1x1x1 scale=0.5 zero=3\ninputs 0\noutputs 2\nop 0 MEAN in=[0 1] out=[2] keep_dims=true\n";
const char* const kResized =
    "tensor 0 \"a\" int8 1x2x2x1 scale=0.5 zero=3\ntensor 1 \"s\" int32 2 const=[{0} {1}]\n"
    "tensor 2 \"b\" int8 1x{0}x{1}x1 scale=0.5 zero=3\ninputs 0\noutputs 2\n"
    "op 0 RESIZE_BILINEAR in=[0 1] out=[2] half_pixel_centers=true\n";
const char* const kPooled =
    "tensor 0 \"a\" int8 1x{0}x{1}x1 scale=0.5 zero=3\ntensor 1 \"b\" int8 1x1x1x1 scale=0.5 zero=3\n"
    "inputs 0\noutputs 1\nop 0 MAX_POOL_2D in=[0] out=[1] padding=valid filter_h={0} filter_w={1}\n";
const char* const kMultiplied =
    "tensor 0 \"a\" float32 {0}x256 const=xxh3:0:{2}\ntensor 1 \"w\" float32 128x256 const=xxh3:0:131072\n"
    "tensor 2 \"p\" float32 {0}x128\ntensor 3 \"b\" float32 {0}x128\ntensor 4 \"c\" float32 {0}x128\n"
    "inputs 3\noutputs 4\nop 0 FULLY_CONNECTED in=[0 1] out=[2]\nop 1 ADD in=[2 3] out=[4]\n";
const Limit kLimits[] = {
    {"fold_constants", kMultiplied, {128, 512}, {129, 512}},
    {"expand_dilation", kDilated, {512, 512}, {513, 512}},
    {"lower_resize_as_conv", kMean, {32, 32}, {25, 41}},
    {"lower_resize_as_conv", kResized, {16, 2}, {32, 2}},
    {"lower_resize_as_conv", kResized, {2, 16}, {2, 32}},
    {"lower_average_as_depthwise", kMean, {128, 128}, {5, 3277}},
    {"lower_max_pool_as_sums", kPooled, {7, 7}, {7, 8}},
    {"lower_max_pool_as_sums", kPooled, {1, 13}, {1, 14}},
    {"lower_max_pool_as_sums", kPooled, {13, 1}, {14, 1}},
};

TEST(Rewrites, OnBothSidesOfALimit) {
  for (const Limit& limit : kLimits) {
    for (const bool is_most : {true, false}) {
      const auto [a, b] = is_most ? limit.most : limit.too_much;
      SCOPED_TRACE(fmt::format("{} {} {}", limit.pass, a, b));
      auto graph = ir::parse("graph \"limit\"\n" + fmt::format(fmt::runtime(limit.network), a, b, 2 * a * b));
      ASSERT_TRUE(graph.ok()) << graph.error().message;
      const auto rewrites = rewrite(*graph, pass_named(limit.pass));
      ASSERT_TRUE(rewrites.ok()) << rewrites.error().message;
      EXPECT_EQ(rewrites->size(), is_most ? 1U : 0U);
    }
  }
}

// Filters and blocks, rows and columns, each separately.
TEST(Rewrites, LargestBlocksThatAreFolded) {
  for (size_t which = 0; which < 4; ++which) {
    for (const int size : {64, 65}) {
      std::array<int, 4> n = {2, 3, 2, 3};  // rows and columns of the filter, of a block
      n[which] = size;
      auto graph = ir::parse(fmt::format(
          "graph \"blocks\"\ntensor 0 \"a\" uint8 1x{4}x{5}x1 scale=0.5 zero=3\ntensor 1 \"s\" int32 2 const=[{2} "
          "{3}]\n"
          "tensor 2 \"p\" int32 2x2 const=[0 0 0 0]\ntensor 3 \"b\" uint8 {6}x{0}x{1}x1 scale=0.5 zero=3\n"
          "tensor 4 \"w\" uint8 1x{0}x{1}x1 scale=0.5 zero=3 const=xxh3:0:{7}\n"
          "tensor 5 \"c\" uint8 {6}x1x1x1 scale=0.5 zero=3\ntensor 6 \"d\" uint8 1x{2}x{3}x1 scale=0.5 zero=3\n"
          "inputs 0\noutputs 6\nop 0 SPACE_TO_BATCH_ND in=[0 1 2] out=[3]\n"
          "op 1 CONV_2D in=[3 4] out=[5] padding=valid\nop 2 BATCH_TO_SPACE_ND in=[5 1 2] out=[6]\n",
          n[0], n[1], n[2], n[3], n[0] * n[2], n[1] * n[3], n[2] * n[3], n[0] * n[1]));
      ASSERT_TRUE(graph.ok()) << graph.error().message;
      const auto rewrites = rewrite(*graph, pass_named("fold_space_to_batch"));
      ASSERT_TRUE(rewrites.ok()) << rewrites.error().message;
      EXPECT_EQ(rewrites->size(), size == 64 ? 1U : 0U) << which << " " << size;
    }
  }
}

// Only ops with one result, from constants, are folded.
TEST(Rewrites, OpsOfSeveralResultsAreNotFolded) {
  auto graph = ir::parse(
      "graph \"split\"\ntensor 0 \"x\" int32 1 const=[0]\ntensor 1 \"a\" float32 4 const=zeros\n"
      "tensor 2 \"b\" float32 2\ntensor 3 \"c\" float32 2\ntensor 4 \"d\" float32 2\ntensor 5 \"e\" float32 2\n"
      "inputs 4\noutputs 5\nop 0 SPLIT in=[0 1] out=[2 3] count=2\nop 1 ADD in=[2 4] out=[5]\n");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto rewrites = rewrite(*graph, pass_named("fold_constants"));
  ASSERT_TRUE(rewrites.ok()) << rewrites.error().message;
  EXPECT_TRUE(rewrites->empty());
}

// Ops on variables have a fixed order and stay as they are.
TEST(Rewrites, KeepsVariables) {
  Letters letters("a", {"c=relu(a)", "d=same(c)", "e=relu(d)"}, "e");
  letters.graph.tensor(letters.id('d')).is_variable = true;
  ir::Graph graph = letters.graph;
  for (const Pass& pass : exact_passes()) {
    const auto rewrites = rewrite(graph, pass);
    ASSERT_TRUE(rewrites.ok()) << pass.name;
    EXPECT_TRUE(rewrites->empty()) << pass.name;
  }
}

// Like calls and variables.
TEST(Rewrites, MeetOpsWithoutInputsOrResults) {
  const auto graph = ir::parse(
      "graph \"state\"\ntensor 0 \"a\" uint8 1x4x4x2 scale=0.5 zero=3\n"
      "tensor 1 \"b\" uint8 1x4x4x2 scale=0.5 zero=3\ntensor 2 \"c\" uint8 1x4x4x2 scale=0.5 zero=3\n"
      "inputs 1\noutputs 2\nop 0 \"VAR_HANDLE\" in=[] out=[0]\nop 1 ADD in=[0 1] out=[2]\n"
      "op 2 \"ASSIGN_VARIABLE\" in=[0] out=[]\nop 3 \"CALL_ONCE\" in=[] out=[]\n");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  for (const Pass& pass : exact_passes()) {
    ir::Graph rewritten = *graph;
    EXPECT_TRUE(rewrite(rewritten, pass).ok()) << pass.name;
    EXPECT_EQ(lines(ir::print(rewritten), "op")[0], lines(ir::print(*graph), "op")[0]) << pass.name;
  }
}

TEST(Rewrites, KeepsOpsThatKeepState) {
  for (const bool has_state : {false, true}) {
    Letters letters("av", {"c=relu(a)", "d=relu(v)"}, "c");
    ir::Graph graph = letters.graph;
    graph.tensor(letters.id('v')).is_variable = has_state;
    if (has_state) std::erase(graph.inputs, letters.id('v'));
    const auto rewrites = rewrite(graph, pass_named("remove_dead_ops"));
    ASSERT_TRUE(rewrites.ok()) << rewrites.error().message;
    EXPECT_EQ(graph.ops.size(), has_state ? 2U : 1U);
  }
}

// Nothing is rewritten without a list for records, or without a chip.
TEST(Rewrites, AreAsked) {
  for (const bool with_driver : {true, false}) {
    Letters letters("a", {"c=same(a)", "d=relu(c)"}, "d");
    std::vector<Rewrite> rewrites;
    Target target{.driver = with_driver ? &kPlain : nullptr, .chip = {}};
    if (!with_driver) target.rewrites = &rewrites;
    ASSERT_TRUE(run_pipeline(letters.graph, target).ok());
    EXPECT_EQ(letters.graph.ops.size(), 2U);
  }
}

}  // namespace
}  // namespace skillet::passes
