// Commands of Skillet's own streams that simulated chips do not read, or whose order the simulator keeps anyway: banks
// of on-chip memory, types of sums, overlap of operations, waits.
#include <gtest/gtest.h>

#include <cstring>

#include "npu/driver.h"
#include "npus/ethosu/hw/ethosu.h"

namespace skillet::npus::ethosu {
namespace {

namespace hw = ::skillet::ethosu::hw;

constexpr uint32_t kShown[] = {hw::OpKernelWait::kAddress,  hw::OpDmaWait::kAddress,    hw::OpDmaStart::kAddress,
                               hw::OpConv::kAddress,        hw::OpDepthwise::kAddress,  hw::OpPool::kAddress,
                               hw::OpElementwise::kAddress, hw::IfmIbEnd::kAddress,     hw::AbStart::kAddress,
                               hw::Ifm2IbStart::kAddress,   hw::AccFormat::kAddress,    hw::Blockdep::kAddress,
                               hw::OpbScale::kAddress,      hw::ParallelMode::kAddress, hw::OfmBlkHeightM1::kAddress,
                               hw::OfmBlkWidthM1::kAddress, hw::OfmBlkDepthM1::kAddress};

// "name value, ..." in the order of the stream; fields without information are left out.
std::string shown(std::span<const uint32_t> words) {
  std::string out;
  for (size_t at = 0; at < words.size(); at += hw::words_of_code(hw::code_of(words[at]))) {
    const uint32_t code = hw::code_of(words[at]);
    if (std::ranges::find(kShown, code) == std::end(kShown)) continue;
    const bits::Descriptor* const row = hw::find_command(code);
    const bool is_long = hw::words_of_code(code) == 2;
    const std::array<uint32_t, 2> both = {words[at] & ~(hw::kCodeMask | hw::kReservedMask),
                                          is_long ? words[at + 1] : 0};
    out += fmt::format("{}{}", out.empty() ? "" : ", ", row->name);
    for (const bits::Row& field : row->rows) {
      if (field.codec.kind != bits::CodecKind::always) out += fmt::format(" {}", bits::read_field(field, both).integer);
    }
  }
  return out;
}

struct Known {
  const char *chip, *graph, *shown;
};
#define SK_CONV(type)                                                                        \
  "tensor 0 \"x\" " type                                                                     \
  " 1x8x8x16 scale=0.5 zero=0\ntensor 1 \"w\" int8 16x3x3x16 scale=0.5 zero=0 const=zeros\n" \
  "tensor 2 \"y\" " type                                                                     \
  " 1x8x8x16 scale=99 zero=0\ninputs 0\noutputs 2\nop 0 CONV_2D in=[0 1 -] out=[2] padding=same\n"
#define SK_DEPTHWISE(type)                                                                  \
  "tensor 0 \"x\" " type                                                                    \
  " 1x8x8x16 scale=0.5 zero=0\ntensor 1 \"w\" int8 1x3x3x16 scale=0.5 zero=0 const=zeros\n" \
  "tensor 2 \"y\" " type                                                                    \
  " 1x8x8x16 scale=99 zero=0\ninputs 0\noutputs 2\n"                                        \
  "op 0 DEPTHWISE_CONV_2D in=[0 1 -] out=[2] padding=same\n"
#define SK_PAIR(op, type, scale)                                                                     \
  "tensor 0 \"x\" " type " 1x8x8x16 scale=0.5 zero=0\ntensor 1 \"z\" " type " 1x8x8x16 scale=" scale \
  " zero=0\n"                                                                                        \
  "tensor 2 \"y\" " type " 1x8x8x16 scale=1 zero=0\ninputs 0 1\noutputs 2\nop 0 " op " in=[0 1] out=[2]\n"
#define SK_FUNCTION(op, scale)                                                                \
  "tensor 0 \"x\" int8 1x8x8x16 scale=0.05 zero=0\ntensor 1 \"y\" int8 1x8x8x16 scale=" scale \
  "\n"                                                                                        \
  "inputs 0\noutputs 1\nop 0 " op " in=[0] out=[1]\n"
const Known kKnown[] = {
    {"ethos-u55-32", SK_CONV("int8"),
     "ofm_blk_height_m1 8, ofm_blk_width_m1 8, ofm_blk_depth_m1 16, ifm_ib_end 6, ab_start 8, acc_format 0, blockdep "
     "0, op_conv, op_kernel_wait 0, op_dma_wait 0, op_dma_start, op_dma_wait 0"},
    {"ethos-u55-64", SK_CONV("int8"),
     "ofm_blk_height_m1 8, ofm_blk_width_m1 8, ofm_blk_depth_m1 16, ifm_ib_end 6, ab_start 8, acc_format 0, blockdep "
     "0, op_conv, op_kernel_wait 0, op_dma_wait 0, op_dma_start, op_dma_wait 0"},
    {"ethos-u55-128", SK_CONV("int8"),
     "ofm_blk_height_m1 8, ofm_blk_width_m1 8, ofm_blk_depth_m1 16, ifm_ib_end 6, ab_start 14, acc_format 0, blockdep "
     "0, op_conv, op_kernel_wait 0, op_dma_wait 0, op_dma_start, op_dma_wait 0"},
    {"ethos-u65-512", SK_CONV("int8"),
     "parallel_mode 1, ofm_blk_height_m1 8, ofm_blk_width_m1 8, ofm_blk_depth_m1 16, ifm_ib_end 10, ab_start 30, "
     "acc_format 0, blockdep 0, op_kernel_wait 1, op_dma_start, op_dma_wait 0, op_conv, op_kernel_wait 0, op_dma_wait "
     "0, op_dma_start, op_dma_wait 0"},
    {"ethos-u55-64", SK_CONV("int16"),
     "ofm_blk_height_m1 6, ofm_blk_width_m1 8, ofm_blk_depth_m1 16, ifm_ib_end 8, ab_start 8, acc_format 1, blockdep "
     "0, op_conv, op_kernel_wait 0, op_dma_wait 0, op_dma_start, op_dma_wait 0"},
    {"ethos-u65-256", SK_CONV("int16"),
     "parallel_mode 0, ofm_blk_height_m1 8, ofm_blk_width_m1 8, ofm_blk_depth_m1 16, ifm_ib_end 10, ab_start 26, "
     "acc_format 1, blockdep 0, op_kernel_wait 1, op_dma_start, op_dma_wait 0, op_conv, op_kernel_wait 0, op_dma_wait "
     "0, op_dma_start, op_dma_wait 0"},
    {"ethos-u65-256", SK_DEPTHWISE("int8"),
     "parallel_mode 0, ofm_blk_height_m1 8, ofm_blk_width_m1 8, ofm_blk_depth_m1 16, ifm_ib_end 10, ab_start 30, "
     "acc_format 0, blockdep 0, op_kernel_wait 1, op_dma_start, op_dma_wait 0, op_depthwise, op_kernel_wait 0, "
     "op_dma_wait 0, op_dma_start, op_dma_wait 0"},
    {"ethos-u55-64", SK_PAIR("ADD", "int8", "0.5"),
     "opb_scale 0 0, ofm_blk_height_m1 8, ofm_blk_width_m1 8, ofm_blk_depth_m1 16, ifm_ib_end 16, ab_start 16, "
     "acc_format 0, ifm2_ib_start 4, blockdep 0, op_elementwise 1, op_kernel_wait 0, op_dma_wait 0, op_dma_start, "
     "op_dma_wait 0"},
    {"ethos-u55-64", SK_PAIR("SUB", "int8", "0.25"),
     "opb_scale 0 0, ofm_blk_height_m1 8, ofm_blk_width_m1 8, ofm_blk_depth_m1 16, ifm_ib_end 16, ab_start 16, "
     "acc_format 0, ifm2_ib_start 4, blockdep 0, op_elementwise 2, op_kernel_wait 0, op_dma_wait 0, op_dma_start, "
     "op_dma_wait 0"},
    {"ethos-u55-128", SK_PAIR("ADD", "int16", "0.3"),
     "opb_scale 0 0, ofm_blk_height_m1 8, ofm_blk_width_m1 8, ofm_blk_depth_m1 16, ifm_ib_end 22, ab_start 22, "
     "acc_format 1, ifm2_ib_start 6, blockdep 0, op_elementwise 1, op_kernel_wait 0, op_dma_wait 0, op_dma_start, "
     "op_dma_wait 0"},
    {"ethos-u55-128", SK_PAIR("MUL", "int16", "0.25"),
     "ofm_blk_height_m1 8, ofm_blk_width_m1 8, ofm_blk_depth_m1 16, ifm_ib_end 22, ab_start 22, acc_format 1, "
     "ifm2_ib_start 6, blockdep 0, op_elementwise 0, op_kernel_wait 0, op_dma_wait 0, op_dma_start, op_dma_wait 0"},
    {"ethos-u55-32", SK_FUNCTION("LOGISTIC", "0.00390625 zero=-128"),
     "op_kernel_wait 0, op_dma_start, op_dma_wait 0, ofm_blk_height_m1 5, ofm_blk_width_m1 7, ofm_blk_depth_m1 16, "
     "ifm_ib_end 4, ab_start 6, acc_format 0, blockdep 0, op_pool 1, op_kernel_wait 0, op_dma_wait 0, op_dma_start, "
     "op_dma_wait 0"},
    {"ethos-u55-64", SK_FUNCTION("TANH", "0.0078125 zero=0"),
     "op_kernel_wait 0, op_dma_start, op_dma_wait 0, ofm_blk_height_m1 5, ofm_blk_width_m1 7, ofm_blk_depth_m1 16, "
     "ifm_ib_end 4, ab_start 6, acc_format 0, blockdep 0, op_pool 1, op_kernel_wait 0, op_dma_wait 0, op_dma_start, "
     "op_dma_wait 0"},
    {"ethos-u55-256", SK_FUNCTION("LOGISTIC", "0.00390625 zero=-128"),
     "op_kernel_wait 0, op_dma_start, op_dma_wait 0, ofm_blk_height_m1 6, ofm_blk_width_m1 6, ofm_blk_depth_m1 16, "
     "ifm_ib_end 10, ab_start 30, acc_format 0, blockdep 0, op_pool 1, op_kernel_wait 0, op_dma_wait 0, op_dma_start, "
     "op_dma_wait 0"},
};

TEST(EthosuOwnStream, BanksTypesAndWaitsAreThoseOfTheSpecification) {
  for (const Known& row : kKnown) {
    SCOPED_TRACE(fmt::format("{}: {}", row.chip, row.graph));
    const npu::Chip chip = npu::find_chip(row.chip).value();
    const auto graph = ir::parse(fmt::format("graph \"\"\n{}", row.graph));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const auto program = npu::driver_of(chip).value()->compile(chip, *graph, {});
    ASSERT_TRUE(program.ok()) << program.error().message;
    const auto bytes = npu::bytes_of(*program, program->jobs.at(0).commands.at(0));
    std::vector<uint32_t> words(bytes.size() / 4);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    EXPECT_EQ(shown(words), row.shown);
  }
}

}  // namespace
}  // namespace skillet::npus::ethosu
