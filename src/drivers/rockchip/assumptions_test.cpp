// What each kind of operation stands on, and that nothing is listed in vain.
#include "drivers/rockchip/assumptions.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "driver/driver.h"

namespace skillet::drivers::rockchip {

const driver::Driver& driver();

namespace {

// Tensors "id type shape [more]", separated by ;, and an operation with its inputs and outputs as ir text has them.
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
     "scales_per_channel,signed_by_128"},
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
    {"uint8 1x4x4x16;uint8 1x4x4x16;uint8 1x4x4x16", "ADD in=[0 1] out=[2]", "add_as_diagonal_conv"},
    {"uint8 1x4x4x16;uint8 1x4x4x16;uint8 1x4x4x16", "SUB in=[0 1] out=[2]", "add_as_diagonal_conv"},
    {"uint8 1x8x8x16;uint8 1x4x4x16",
     "AVERAGE_POOL_2D in=[0] out=[1] padding=valid stride_h=2 stride_w=2 filter_h=2 filter_w=2",
     "average_as_depthwise"},
    {"uint8 1x8x8x16;uint8 1x8x8x16", "AVERAGE_POOL_2D in=[0] out=[1] padding=same filter_h=3 filter_w=3",
     "average_as_depthwise,average_in_parts"},
    {"uint8 1x8x8x16;uint8 1x4x4x16",
     "MAX_POOL_2D in=[0] out=[1] padding=valid stride_h=2 stride_w=2 filter_h=2 filter_w=2", "maximum_of_moved_images"},
    {"uint8 1x4x4x16;uint8 1x4x4x16;uint8 1x4x4x16", "MINIMUM in=[0 1] out=[2]", "elementwise_selection"},
    {"uint8 1x4x4x16;uint8 1x4x4x16 scale=2 zero=0", "QUANTIZE in=[0] out=[1]", "copy_as_conv"},
    {"uint8 1x4x4x16;int32 4x2 const=[0 0 1 1 1 1 0 0];uint8 1x6x6x16", "PAD in=[0 1] out=[2]", "pad_folded_or_copied"},
    {"uint8 1x4x4x16;uint8 1x4x4x16;uint8 1x4x4x32", "CONCATENATION in=[0 1] out=[2] axis=3", "concat_in_place"},
    {"uint8 1x4x4x16;uint8 1x4x4x16;uint8 1x8x4x16", "CONCATENATION in=[0 1] out=[2] axis=1", "moved_rectangles"},
    {"int32 scalar const=[3];uint8 1x4x4x32;uint8 1x4x4x16;uint8 1x4x4x16", "SPLIT in=[0 1] out=[2 3] count=2",
     "split_as_view"},
    {"uint8 1x4x4x16;uint8 1x2x8x16", "RESHAPE in=[0] out=[1]", "same_bytes"},
    {"uint8 1x2x2x64;uint8 1x16x16", "RESHAPE in=[0] out=[1]", "channels_as_pixels"},
    {"uint8 1x4x4x16;uint8 1x2x2x64", "SPACE_TO_DEPTH in=[0] out=[1] block_size=2", "blocks_as_conv"},
    {"uint8 1x2x2x64;uint8 1x4x4x16", "DEPTH_TO_SPACE in=[0] out=[1] block_size=2", "channels_as_pixels"},
    {"uint8 1x2x2x16;int32 2 const=[4 4];uint8 1x4x4x16", "RESIZE_NEAREST_NEIGHBOR in=[0 1] out=[2]",
     "repeated_by_strides"},
    {"uint8 1x4x4x16;uint8 1x1x1x16 scale=1 zero=0 const=zeros;uint8 1x4x4x16", "MUL in=[0 1] out=[2]",
     "constant_as_depthwise"},
    {"uint8 1x4x4x16;uint8 1x4x4x16;uint8 1x4x4x16", "MUL in=[0 1] out=[2]", "product_of_tensors"},
    {"uint8 1x4x4x16;uint8 1x4x4x16 scale=0.00390625 zero=0", "LOGISTIC in=[0] out=[1]", "byte_table"},
    {"uint8 1x4x4x16;uint8 1x4x4x16", "LEAKY_RELU in=[0] out=[1] alpha=0.1", "leaky_as_sum"},
};

TEST(RockchipAssumptions, EachIsWhatSomeOperationStandsOn) {
  const driver::Chip chip = driver::find_chip("rk3588").value();
  std::set<std::string> seen;
  for (const Case& c : kCases) {
    const auto graph = ir::parse(text_of(c));
    ASSERT_TRUE(graph.ok()) << graph.error().message << "\n" << text_of(c);
    const driver::Support support = driver().supports(chip, *graph, 0);
    ASSERT_TRUE(support.ok) << support.reason << "\n" << text_of(c);
    std::string names;
    for (const driver::Assumption* one : support.stands_on) {
      names += fmt::format("{}{}", names.empty() ? "" : ",", one->name);
      seen.emplace(one->name);
    }
    EXPECT_EQ(names, fmt::format("{}{}rule_values,joined_tasks", c.stands_on, *c.stands_on == '\0' ? "" : ",")) << c.op;
  }
  for (const driver::Assumption& one : assumptions()) {
    EXPECT_TRUE(seen.contains(std::string(one.name))) << one.name << ": no operation of this test stands on it";
    EXPECT_FALSE(one.what.empty() || one.sections.empty()) << one.name;
  }
}

TEST(RockchipAssumptions, WhatIsRefusedStandsOnNothing) {
  const auto graph =
      ir::parse(text_of({"float32 1x4x4x16;float32 1x4x4x16;float32 1x4x4x16", "ADD in=[0 1] out=[2]", ""}));
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_TRUE(driver().supports(driver::find_chip("rk3588").value(), *graph, 0).stands_on.empty());
}

}  // namespace
}  // namespace skillet::drivers::rockchip
