// The assumptions of each kind of operation; every row is used by some operation.
#include "npus/rockchip/compiler/assumptions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "npu/driver.h"
#include "npu/testing/open_questions.h"

namespace skillet::npus::rockchip {

const npu::Driver& driver();

namespace {

// Tensors "id type shape [more]", separated by ;, and an operation with its inputs and outputs in the form of ir text.
struct Case {
  const char *tensors, *op, *stands_on;
};

std::string text_of(const Case& c) {
  std::string text = "graph \"\"\n", rest = c.tensors;
  std::string inputs, outputs = c.op;
  for (int id = 0; !rest.empty(); ++id) {
    const size_t end = std::min(rest.find(';'), rest.size());
    const std::string one = rest.substr(0, end);
    const bool constant = one.find("const=") != std::string::npos;
    const bool scaled = one.find("scale=") != std::string::npos || one.find("int32") != std::string::npos;
    text += fmt::format("tensor {} \"t{}\" {}{}\n", id, id,
                        scaled ? one.substr(0, one.find(" const")) : one + " scale=1 zero=0",
                        constant ? one.substr(one.find(" const")) : "");
    const std::string written = outputs.substr(outputs.find("out=["));
    const bool is_output = written.find(fmt::format("[{}", id)) != std::string::npos ||
                           written.find(fmt::format(" {}", id)) != std::string::npos;
    if (!constant && !is_output) inputs += fmt::format(" {}", id);
    rest = rest.substr(std::min(end + 1, rest.size()));
  }
  const std::string written = outputs.substr(outputs.find("out=[") + 5);
  return text + "inputs" + inputs + "\noutputs " + written.substr(0, written.find(']')) + "\nop 0 " + c.op + "\n";
}

constexpr Case kCases[] = {
    {"uint8 1x8x8x16;uint8 8x3x3x16 scale=1 zero=9 const=zeros;uint8 1x8x8x8", "CONV_2D in=[0 1 -] out=[2]", ""},
    {"int8 1x8x8x16;int8 8x3x3x16 scale=1 zero=0 const=zeros;int8 1x8x8x8", "CONV_2D in=[0 1 -] out=[2]",
     "signed_by_128"},
    {"uint8 1x8x9x16;uint8 8x3x3x16 scale=1 zero=9 const=zeros;uint8 1x8x9x8", "CONV_2D in=[0 1 -] out=[2]",
     "true_width"},
    {"uint8 1x8x9x16;uint8 8x1x1x16 scale=1 zero=9 const=zeros;uint8 1x8x9x8", "CONV_2D in=[0 1 -] out=[2]", ""},
    {"uint8 1x8x8x16;uint8 8x1x3x16 scale=1 zero=9 const=zeros;uint8 1x8x8x8", "CONV_2D in=[0 1 -] out=[2]",
     "true_width"},
    {"uint8 1x8x8x16;uint8 8x3x3x16 scale=1 zero=9 const=zeros;uint8 1x8x8x8",
     "CONV_2D in=[0 1 -] out=[2] dilation_w=2", "dilation"},
    {"int8 1x8x8x16;int8 2x1x1x16 scale=[1 2] zero=[0 0] axis=0 const=zeros;int8 1x8x8x2", "CONV_2D in=[0 1 -] out=[2]",
     "signed_by_128,scales_per_channel"},
    {"uint8 1x8x8x16;uint8 8x1x1x16 scale=1 zero=9 const=zeros;uint8 1x8x8x8 scale=1 zero=7",
     "CONV_2D in=[0 1 -] out=[2] activation=relu", "stage_activation"},
    {"uint8 1x8x8x1;uint8 8x3x3x1 scale=1 zero=9 const=zeros;uint8 1x8x8x8", "CONV_2D in=[0 1 -] out=[2]",
     "packed_rows"},
    {"uint8 1x8x8x16;uint8 1x3x3x16 scale=1 zero=9 const=zeros;uint8 1x8x8x16", "DEPTHWISE_CONV_2D in=[0 1 -] out=[2]",
     ""},
    {"uint8 1x8x8x8;uint8 1x3x3x16 scale=1 zero=9 const=zeros;uint8 1x8x8x16",
     "DEPTHWISE_CONV_2D in=[0 1 -] out=[2] depth_multiplier=2", "filters_as_conv"},
    {"uint8 1x64;uint8 10x64 scale=1 zero=9 const=zeros;uint8 1x10", "FULLY_CONNECTED in=[0 1 -] out=[2]",
     "fully_connected_as_conv"},
    {"uint8 1x4x4x16;uint8 1x4x4x16;uint8 1x4x4x16", "ADD in=[0 1] out=[2]",
     "scales_per_channel,add_as_diagonal_conv,few_pixels"},
    {"uint8 1x4x4x16;uint8 1x4x4x16;uint8 1x4x4x16", "SUB in=[0 1] out=[2]",
     "scales_per_channel,add_as_diagonal_conv,few_pixels"},
    {"uint8 1x8x8x16;uint8 1x4x4x16",
     "AVERAGE_POOL_2D in=[0] out=[1] padding=valid stride_h=2 stride_w=2 filter_h=2 filter_w=2",
     "average_as_depthwise"},
    {"uint8 1x8x8x16;uint8 1x8x8x16", "AVERAGE_POOL_2D in=[0] out=[1] padding=same filter_h=3 filter_w=3",
     "true_width,average_as_depthwise,moved_rectangles,average_in_parts"},
    {"uint8 1x8x8x16;uint8 1x4x4x16",
     "MAX_POOL_2D in=[0] out=[1] padding=valid stride_h=2 stride_w=2 filter_h=2 filter_w=2",
     "joined_tasks,elementwise_selection,maximum_of_moved_images"},
    {"uint8 1x4x4x16;uint8 1x4x4x16;uint8 1x4x4x16", "MINIMUM in=[0 1] out=[2]", "elementwise_selection"},
    {"uint8 1x4x4x16;uint8 1x4x4x16 scale=2 zero=0", "QUANTIZE in=[0] out=[1]", "copy_as_conv"},
    {"uint8 1x4x4x16;int32 4x2 const=[0 0 1 1 1 1 0 0];uint8 1x6x6x16", "PAD in=[0 1] out=[2]", "pad_folded_or_copied"},
    {"uint8 1x4x4x16;uint8 1x4x4x16;uint8 1x4x4x32", "CONCATENATION in=[0 1] out=[2] axis=3",
     "copy_as_conv,concat_in_place"},
    {"uint8 1x4x4x16;uint8 1x4x4x16;uint8 1x8x4x16", "CONCATENATION in=[0 1] out=[2] axis=1", "moved_rectangles"},
    {"int32 scalar const=[3];uint8 1x4x4x32;uint8 1x4x4x16;uint8 1x4x4x16", "SPLIT in=[0 1] out=[2 3] count=2",
     "copy_as_conv,split_as_view"},
    {"uint8 1x4x4x16;uint8 1x2x8x16", "RESHAPE in=[0] out=[1]", "copy_as_conv,same_bytes"},
    {"uint8 1x2x2x64;uint8 1x16x16", "RESHAPE in=[0] out=[1]", "moved_rectangles,channels_as_pixels"},
    {"uint8 1x4x4x16;uint8 1x2x2x64", "SPACE_TO_DEPTH in=[0] out=[1] block_size=2", "blocks_as_conv"},
    {"uint8 1x2x2x64;uint8 1x4x4x16", "DEPTH_TO_SPACE in=[0] out=[1] block_size=2",
     "joined_tasks,moved_rectangles,channels_as_pixels"},
    {"uint8 1x2x2x16;int32 2 const=[4 4];uint8 1x4x4x16", "RESIZE_NEAREST_NEIGHBOR in=[0 1] out=[2]",
     "joined_tasks,moved_rectangles,repeated_by_strides"},
    {"uint8 1x4x4x16;uint8 1x1x1x16 scale=1 zero=0 const=zeros;uint8 1x4x4x16", "MUL in=[0 1] out=[2]",
     "constant_as_depthwise"},
    {"uint8 1x4x4x16;uint8 1x4x4x16;uint8 1x4x4x16", "MUL in=[0 1] out=[2]", "few_pixels,product_of_tensors"},
    {"uint8 1x4x4x16;uint8 1x4x4x16 scale=0.00390625 zero=0", "LOGISTIC in=[0] out=[1]", "byte_table"},
    {"uint8 1x4x4x16;uint8 1x4x4x16", "LEAKY_RELU in=[0] out=[1] alpha=0.1",
     "joined_tasks,copy_as_conv,add_as_diagonal_conv,few_pixels,leaky_as_sum"},
    {"uint8 1x8x8x16;uint8 8x3x3x16 scale=1 zero=9 const=zeros;uint8 1x4x8x8", "CONV_2D in=[0 1 -] out=[2] stride_h=2",
     "strides_differ"},
    {"uint8 1x9x9x16;uint8 8x9x9x16 scale=1 zero=9 const=zeros;uint8 1x9x9x8", "CONV_2D in=[0 1 -] out=[2]",
     "large_filters"},
    {"uint8 1x8x8x3;uint8 8x3x3x3 scale=1 zero=9 const=zeros;uint8 1x8x8x8", "CONV_2D in=[0 1 -] out=[2]",
     "packed_pixels"},
    {"int8 1x8x8x16;int8 2x1x1x16 scale=[1 0.01] zero=[0 0] axis=0 const=zeros;int8 1x8x8x2",
     "CONV_2D in=[0 1 -] out=[2]", "joined_tasks,signed_by_128,scales_per_channel,add_as_diagonal_conv"},
    {"uint8 1x3x8x16;uint8 1x3x8x16 scale=2 zero=0", "QUANTIZE in=[0] out=[1]", "copy_as_conv,overlapping_halves"},
    {"uint8 1x8x8x16 scale=0.1 zero=9;uint8 1x8x8x16 scale=0.1 zero=0", "RELU6 in=[0] out=[1]",
     "stage_activation,scales_per_channel,copy_as_conv"},
    {"uint8 1x8x8x16 scale=0.1 zero=9;uint8 1x8x8x16 scale=0.1 zero=9;uint8 1x8x8x16 scale=0.1 zero=0",
     "ADD in=[0 1] out=[2] activation=relu6",
     "stage_activation,scales_per_channel,add_as_diagonal_conv,limit_after_two"},
    {"uint8 1x8x8x16;uint8 1x1x1x16;uint8 1x8x8x16", "MUL in=[0 1] out=[2]", "product_of_tensors,spread_pixel"},
    {"uint8 1x8x8x16;uint8 1x4x4x16",
     "MAX_POOL_2D in=[0] out=[1] padding=same stride_h=2 stride_w=2 filter_h=3 filter_w=3",
     "joined_tasks,pad_folded_or_copied,elementwise_selection,maximum_of_moved_images"},
};

std::string names_of(const npu::Support& support) {
  std::string names;
  for (const npu::Assumption* one : support.stands_on)
    names += fmt::format("{}{}", names.empty() ? "" : ",", one->name);
  return names;
}

// RK3576: operations of recorded programs stand on few rows, those that a row is about on more.
constexpr Case kCases3576[] = {
    {"int8 1x8x8x32;int8 32x3x3x32 scale=1 zero=0 const=zeros;int8 1x8x8x32", "CONV_2D in=[0 1 -] out=[2]", ""},
    {"int8 1x8x9x32;int8 32x3x3x32 scale=1 zero=0 const=zeros;int8 1x8x9x32", "CONV_2D in=[0 1 -] out=[2]", ""},
    {"uint8 1x8x8x16;uint8 8x3x3x16 scale=1 zero=9 const=zeros;uint8 1x8x8x8", "CONV_2D in=[0 1 -] out=[2]",
     "whole_groups,unsigned_less_128"},
    {"int8 1x8x8x32;int8 32x3x3x32 scale=1 zero=0 const=zeros;int8 1x8x8x32",
     "CONV_2D in=[0 1 -] out=[2] activation=relu", ""},
    {"int8 1x8x8x32;int8 32x3x3x32 scale=1 zero=0 const=zeros;int8 1x8x8x32 scale=0.1 zero=0",
     "CONV_2D in=[0 1 -] out=[2] activation=relu6", "limit_of_products"},
    {"int8 1x8x8x32;int8 32x3x1x32 scale=1 zero=0 const=zeros;int8 1x8x8x32", "CONV_2D in=[0 1 -] out=[2]",
     "oblong_filters"},
    {"int8 1x8x8x32;int8 32x3x3x32 scale=1 zero=0 const=zeros;int8 1x8x4x32", "CONV_2D in=[0 1 -] out=[2] stride_w=2",
     "strides_differ"},
    {"int8 1x9x9x32;int8 32x8x8x32 scale=1 zero=0 const=zeros;int8 1x9x9x32", "CONV_2D in=[0 1 -] out=[2]",
     "large_filters"},
    {"int8 1x40x8x1024;int8 32x1x1x1024 scale=1 zero=0 const=zeros;int8 1x40x8x32", "CONV_2D in=[0 1 -] out=[2]", ""},
    {"int8 1x41x8x1024;int8 32x1x1x1024 scale=1 zero=0 const=zeros;int8 1x41x8x32", "CONV_2D in=[0 1 -] out=[2]",
     "six_data_banks"},
    {"int8 1x49x8x1024;int8 32x1x1x1024 scale=1 zero=0 const=zeros;int8 1x49x8x32", "CONV_2D in=[0 1 -] out=[2]",
     "windows_of_rows"},
    {"int8 1x2x2x32;int8 2944x1x1x32 scale=1 zero=0 const=zeros;int8 1x2x2x2944", "CONV_2D in=[0 1 -] out=[2]", ""},
    {"int8 1x2x2x32;int8 2976x1x1x32 scale=1 zero=0 const=zeros;int8 1x2x2x2976", "CONV_2D in=[0 1 -] out=[2]",
     "kernels_in_parts"},
    {"int8 1x8x8x32;int8 1x3x3x32 scale=1 zero=0 const=zeros;int8 1x8x8x32", "DEPTHWISE_CONV_2D in=[0 1 -] out=[2]",
     ""},
    {"int8 1x8x8x32;int8 1x3x3x32 scale=1 zero=1 const=zeros;int8 1x8x8x32", "DEPTHWISE_CONV_2D in=[0 1 -] out=[2]",
     "depthwise_pairs"},
    {"int8 1x8x8x16;int8 1x3x3x32 scale=1 zero=0 const=zeros;int8 1x8x8x32",
     "DEPTHWISE_CONV_2D in=[0 1 -] out=[2] depth_multiplier=2", "whole_groups,filters_as_conv"},
    {"int8 1x64;int8 32x64 scale=1 zero=0 const=zeros;int8 1x32", "FULLY_CONNECTED in=[0 1 -] out=[2]",
     "fully_connected_as_conv"},
    {"int8 1x4x4x32;int8 1x4x4x32;int8 1x4x4x32", "ADD in=[0 1] out=[2]", "joined_tasks,copy_as_conv,add_as_pair"},
    {"int8 1x8x8x32;int8 1x4x4x32",
     "AVERAGE_POOL_2D in=[0] out=[1] padding=valid stride_h=2 stride_w=2 filter_h=2 filter_w=2",
     "average_as_depthwise"},
    {"int8 1x4x4x32;int8 1x4x4x32 scale=2 zero=0", "QUANTIZE in=[0] out=[1]", "copy_as_conv"},
    {"int8 1x4x4x32;int32 4x2 const=[0 0 1 1 1 1 0 0];int8 1x6x6x32", "PAD in=[0 1] out=[2]", "wide_padding"},
    {"int8 1x4x4x32;int8 1x4x4x32;int8 1x4x4x64", "CONCATENATION in=[0 1] out=[2] axis=3",
     "joined_tasks,copy_as_conv,concat_in_place"},
    {"int8 1x4x4x32;int8 1x2x8x32", "RESHAPE in=[0] out=[1]", "copy_as_conv"},
};
// Operations that do not use a convolution's products.
constexpr Case kOthers3576[] = {
    {"int8 1x4x4x32;int8 1x4x4x32 scale=0.00390625 zero=-128", "LOGISTIC in=[0] out=[1]", "table_of_sums"},
    {"int8 1x4x4x32;int8 1x4x4x32", "LEAKY_RELU in=[0] out=[1] alpha=0.1", "table_of_sums"},
    {"int8 1x8x8x32;int8 1x4x4x32",
     "MAX_POOL_2D in=[0] out=[1] padding=valid stride_h=2 stride_w=2 filter_h=2 filter_w=2", "pooling_completes"},
};

TEST(RockchipAssumptions, OfTheRk3576AreWhatSomeOperationStandsOn) {
  const npu::Chip chip = npu::find_chip("rk3576").value();
  const auto check = [&](const Case& c, std::string_view first) {
    const auto graph = ir::parse(text_of(c));
    ASSERT_TRUE(graph.ok()) << graph.error().message << "\n" << text_of(c);
    const npu::Support support = driver().supports(chip, *graph, 0);
    ASSERT_TRUE(support.ok) << support.reason << "\n" << text_of(c);
    EXPECT_EQ(names_of(support),
              fmt::format("{}{}{}", first, first.empty() || *c.stands_on == '\0' ? "" : ",", c.stands_on))
        << text_of(c);
  };
  for (const Case& c : kCases3576) check(c, "shifted_products");
  for (const Case& c : kOthers3576) check(c, "");
  for (const npu::Assumption& one : driver().assumptions(chip)) EXPECT_FALSE(one.what.empty() || one.sections.empty());
}

TEST(RockchipAssumptions, EachIsWhatSomeOperationStandsOn) {
  const npu::Chip chip = npu::find_chip("rk3588").value();
  std::set<std::string> seen;
  for (const Case& c : kCases) {
    const auto graph = ir::parse(text_of(c));
    ASSERT_TRUE(graph.ok()) << graph.error().message << "\n" << text_of(c);
    const npu::Support support = driver().supports(chip, *graph, 0);
    ASSERT_TRUE(support.ok) << support.reason << "\n" << text_of(c);
    std::string names;
    for (const npu::Assumption* one : support.stands_on) {
      names += fmt::format("{}{}", names.empty() ? "" : ",", one->name);
      seen.emplace(one->name);
    }
    EXPECT_EQ(names, fmt::format("rule_values{}{}", *c.stands_on == '\0' ? "" : ",", c.stands_on)) << c.op;
  }
  for (const npu::Assumption& one : assumptions()) {
    const bool needs_two = one.name == "fused_additions";  // shown by its probe
    EXPECT_TRUE(needs_two || seen.contains(std::string(one.name))) << one.name << ": no operation here stands on it";
    EXPECT_FALSE(one.what.empty() || one.sections.empty()) << one.name;
  }
}

struct Probe {
  npu::Chip chip;
  const npu::Assumption& row;
};
std::vector<Probe> probes() {
  std::vector<Probe> out;
  for (const char* const name : {"rk3588", "rk3576"}) {
    const npu::Chip chip = npu::find_chip(name).value();
    for (const npu::Assumption& row : driver().assumptions(chip)) out.push_back({chip, row});
  }
  return out;
}

// So a device can be tested for one row after the other.
TEST(RockchipAssumptions, ProbesStandOnTheirRowAndOnRowsBefore) {
  for (const Probe& probe : probes()) {
    const auto& [chip, row] = probe;
    const auto graph = ir::parse(row.probe);
    ASSERT_TRUE(graph.ok()) << row.name << ": " << graph.error().message;
    bool found = false;
    for (ir::OpId op = 0; op < static_cast<ir::OpId>(graph->ops.size()); ++op) {
      const npu::Support support = driver().supports(chip, *graph, op);
      ASSERT_TRUE(support.ok) << row.name << ": " << support.reason;
      ASSERT_FALSE(support.stands_on.empty());
      EXPECT_LE(support.stands_on.back(), &row) << row.name << ": its probe needs " << support.stands_on.back()->name;
      found |= std::ranges::count(support.stands_on, &row) != 0;
      EXPECT_TRUE(std::ranges::is_sorted(support.stands_on)) << row.name;
    }
    EXPECT_TRUE(found) << row.name << ": no operation of its probe stands on it";
  }
}
// Each unproven operation has a named reason, besides the assumptions of all operations.
TEST(RockchipAssumptions, WhatIsUnprovenHasARow) {
  const npu::Chip chip = npu::find_chip("rk3588").value();
  int unproven = 0;
  for (const npu::Assumption& row : assumptions()) {
    const auto graph = ir::parse(row.probe);
    ASSERT_TRUE(graph.ok());
    for (ir::OpId op = 0; op < static_cast<ir::OpId>(graph->ops.size()); ++op) {
      const npu::Support support = driver().supports(chip, *graph, op);
      if (!support.unproven) continue;
      ++unproven;
      EXPECT_GT(support.stands_on.size(), 1U) << row.name << ": " << support.reason;
    }
  }
  EXPECT_GE(unproven, 5);  // two strides, large filters, limits after sums, products, tables
}

// ---- open questions ----

#define ASSUMPTION(name, what, sections, probe)
#define QUESTION(number, row) {number, #row, true},
#define NO_ROW(number, why) {number, why, false},
constexpr npu::OpenQuestion kQuestions[] = {
#include "npus/rockchip/compiler/assumptions.def"
};
constexpr npu::OpenQuestion kQuestions3576[] = {
#include "npus/rockchip/compiler/assumptions_3576.def"
};
#undef ASSUMPTION
#undef QUESTION
#undef NO_ROW

// Section 11 of the hardware specification has 18, section 14 of the RK3576's has 12.
TEST(RockchipAssumptions, EachOpenQuestionHasARowOrAReason) {
  npu::check_open_questions(kQuestions, assumptions(), 18);
  npu::check_open_questions(kQuestions3576, driver().assumptions(npu::find_chip("rk3576").value()), 12);
}

// ---- differences that registers do not show ----

const npu::Assumption& row_of(const char* chip, std::string_view name) {
  return *std::ranges::find(driver().assumptions(npu::find_chip(chip).value()), name, &npu::Assumption::name);
}
Bytes& data_of(ir::Tensor& tensor, Bytes& bytes) {
  bytes.assign(tensor.data.begin(), tensor.data.end());
  return bytes;
}

// The same graph in bytes of the other sign.
void change_sign(ir::Graph& graph) {
  for (ir::Tensor& tensor : graph.tensors) {
    if (tensor.dtype != ir::DType::int8 && tensor.dtype != ir::DType::uint8) continue;
    const bool was_signed = tensor.dtype == ir::DType::int8;
    tensor.dtype = was_signed ? ir::DType::uint8 : ir::DType::int8;
    for (int32_t& zero : tensor.quant.zero_points) zero += was_signed ? 128 : -128;
    Bytes bytes;
    for (uint8_t& byte : data_of(tensor, bytes)) byte ^= 0x80;
    if (!bytes.empty()) ir::set_constant(tensor, std::move(bytes));
  }
}
void make_conv(ir::Graph& graph, ir::OpKind kind, ir::ConvAttrs attrs) {
  ir::Op& op = graph.ops[0];
  op.kind = kind;
  op.attrs = attrs;
  op.inputs.resize(3, ir::kNoTensor);
}
// Writes weights for all inputs of each output: zero points except for its own input.
void make_dense(ir::Graph& graph) {
  constexpr size_t kOut = 32, kIn = 16, kTaps = 9;
  ir::Tensor& filter = graph.tensor(graph.ops[0].inputs[1]);
  Bytes wide(kOut * kTaps * kIn, static_cast<uint8_t>(filter.quant.zero_point()));
  for (size_t c = 0; c < kOut; ++c) {
    for (size_t tap = 0; tap < kTaps; ++tap) wide[(c * kTaps + tap) * kIn + c / 2] = filter.data[tap * kOut + c];
  }
  filter.shape = {kOut, 3, 3, kIn};
  ir::set_constant(filter, std::move(wide));
  make_conv(graph, ir::OpKind::conv_2d, {});
}
void make_image(ir::Graph& graph) {
  graph.tensors[0].shape = {1, 1, 1, 64};
  graph.tensors[1].shape = {40, 1, 1, 64};
  graph.tensors[3].shape = {1, 1, 1, 40};
  make_conv(graph, ir::OpKind::conv_2d, {});
}
ir::TensorId add_filter(ir::Graph& graph, ir::Shape shape, float scale, Bytes bytes) {
  const bool is_signed = graph.tensors[0].dtype == ir::DType::int8;
  if (is_signed) {
    for (uint8_t& byte : bytes) byte ^= 0x80;
  }
  ir::Tensor filter{.name = "filter",
                    .dtype = graph.tensors[0].dtype,
                    .shape = std::move(shape),
                    .quant = {{scale}, {is_signed ? 0 : 128}, 0}};
  ir::set_constant(filter, std::move(bytes));
  return graph.add_tensor(std::move(filter));
}
void make_identity(ir::Graph& graph) {
  constexpr size_t kChannels = 32;
  Bytes weights(kChannels * kChannels, 128);
  for (size_t c = 0; c < kChannels; ++c) weights[c * (kChannels + 1)] = 129;
  const ir::TensorId filter = add_filter(graph, {kChannels, 1, 1, kChannels}, 1, std::move(weights));
  graph.ops[0].inputs.push_back(filter);
  make_conv(graph, ir::OpKind::conv_2d, {});
}
void make_depthwise(ir::Graph& graph) { make_conv(graph, ir::OpKind::depthwise_conv_2d, {}); }
void make_ones(ir::Graph& graph) {
  const auto channels = static_cast<int32_t>(graph.tensors[0].shape.back(0));
  const ir::TensorId filter =
      add_filter(graph, {1, 2, 2, channels}, 0.25F, Bytes(static_cast<size_t>(4 * channels), 129));
  graph.ops[0].inputs.push_back(filter);
  make_conv(graph, ir::OpKind::depthwise_conv_2d, {.padding = ir::Padding::valid, .stride_h = 2, .stride_w = 2});
}
void make_quantize(ir::Graph& graph) {
  graph.tensors[1].shape = graph.tensors[0].shape;
  graph.ops[0].kind = ir::OpKind::quantize;
  graph.ops[0].attrs = {};
}

struct Twin {
  const char *chip, *assumption;
  void (*make)(ir::Graph&);
};
constexpr Twin kTwins[] = {
    {"rk3588", "signed_by_128", change_sign},
    {"rk3588", "filters_as_conv", make_dense},
    {"rk3588", "fully_connected_as_conv", make_image},
    {"rk3588", "copy_as_conv", make_identity},
    {"rk3588", "constant_as_depthwise", make_depthwise},
    {"rk3588", "average_as_depthwise", make_ones},
    {"rk3588", "same_bytes", make_quantize},
    {"rk3576", "unsigned_less_128", change_sign},
    {"rk3576", "filters_as_conv", make_dense},
    {"rk3576", "fully_connected_as_conv", make_image},
    // The RK3576's averages have other shifts and biases than a convolution, which rounds twice.
};

// Commands and constants; the host's conversion of tensors is not compared.
std::vector<Bytes> device_bytes(const char* chip, const ir::Graph& graph) {
  const auto program = driver().compile(npu::find_chip(chip).value(), graph, {.unproven = npu::Unproven::take});
  EXPECT_TRUE(program.ok()) << program.error().message;
  std::vector<Bytes> out;
  for (size_t i = 0; program.ok() && i < program->buffers.size(); ++i) {
    const SharedBytes& contents = program->buffers[i].contents;
    if (!contents.empty()) out.emplace_back(contents.begin(), contents.end());
  }
  return out;
}

// An operation, and another one that does not stand on the assumption, compile to the same program.
TEST(RockchipAssumptions, SomeAreBeyondWhatAChipCanTell) {
  for (const Twin& twin : kTwins) {
    const npu::Assumption& row = row_of(twin.chip, twin.assumption);
    const ir::Graph graph = ir::parse(row.probe).value();
    ir::Graph other = graph;
    twin.make(other);
    const npu::Support support = driver().supports(npu::find_chip(twin.chip).value(), other, 0);
    ASSERT_TRUE(support.ok) << twin.assumption << ": " << support.reason;
    EXPECT_EQ(std::ranges::count(support.stands_on, &row), 0) << twin.assumption;
    const auto bytes = device_bytes(twin.chip, graph);
    EXPECT_EQ(bytes.size(), 2U) << twin.assumption;
    EXPECT_EQ(bytes, device_bytes(twin.chip, other)) << twin.assumption;
  }
}

TEST(RockchipAssumptions, WhatIsRefusedStandsOnNothing) {
  const auto graph =
      ir::parse(text_of({"float32 1x4x4x16;float32 1x4x4x16;float32 1x4x4x16", "ADD in=[0 1] out=[2]", ""}));
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_TRUE(driver().supports(npu::find_chip("rk3588").value(), *graph, 0).stands_on.empty());
}

}  // namespace
}  // namespace skillet::npus::rockchip
