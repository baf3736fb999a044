// Operations that the chip refuses: a row for each reason, next to the nearest graph that the chip runs.
#include "npus/vivante/compiler/support.h"

#include <gtest/gtest.h>

#include <array>

#include "npus/vivante/compiler/addition.h"
#include "npus/vivante/compiler/lower.h"
#include "npus/vivante/compiler/test_graphs.h"
#include "npus/vivante/compiler/vivante_driver.h"

namespace skillet::npus::vivante {
namespace {

const hw::ChipRow& a311d() { return *hw::find_chip("a311d"); }

std::string title(const Row& row) { return fmt::format("'{}' -> '{}': {}", row.find, row.refused, row.reason); }

constexpr Row kActivationRows[] = {
    {kRelu, "uint8;zero=128", "int16;zero=127", "int8;zero=127", "the chip works on 8-bit tensors"},
    {kRelu, "\"out\" uint8", "\"out\" int16", "\"out\" uint8", "'out' is int16"},
    {kRelu, " scale=1 zero=128", "", " scale=1 zero=128", "'in' is not quantized"},
    {kRelu, "scale=1 zero=128", "scale=[1 1 1 1] zero=0 axis=1", "scale=[1] zero=[0]", "quantized per channel"},
    {kRelu, "scale=1 zero=128", "scale=bits:7fc00000 zero=128", "scale=1 zero=0", "are invalid"},
    {kRelu, "scale=1 zero=128", "scale=bits:7f800000 zero=128", "scale=2 zero=0", "are invalid"},
    {kRelu, "scale=1 zero=128", "scale=0 zero=128", "scale=3 zero=0", "are invalid"},
    {kRelu, "scale=1 zero=128", "scale=-1 zero=128", "scale=4 zero=0", "are invalid"},
    {kRelu, "scale=1", "scale=1e-40", "scale=1.2e-38", "are invalid"},
    {kRelu, "scale=1 zero=128", "scale=1 zero=256", "scale=1 zero=255", "are invalid"},
    {kRelu, "scale=1 zero=128", "scale=1 zero=-1", "scale=1 zero=0", "are invalid"},
    {kRelu, "uint8;zero=128", "int8;zero=128", "int8;zero=127", "are invalid"},
    {kRelu, "uint8;zero=128", "int8;zero=-129", "int8;zero=-128", "are invalid"},
    {kRelu, "1x4x4x8", "1x4x0x8", "1x4x1x8", "has no elements"},
    {kRelu, "1x4x4x8", "2x4x4x8", "1x1x4x4x8", "the chip runs batch 1"},
    {kRelu, "scale=1 zero=0", "scale=1 zero=0 variable", "scale=1 zero=0", "keeps its value between runs"},
    {kRelu, "RELU", "SOFTMAX", "ABS", "divides or compares"},
    {kRelu, "RELU", "\"Custom\"", "RELU", "no known program of the NPU computes Custom"},
};

// Every input of every kind of op: constants that are refused or required.
constexpr Row kOperandRows[] = {
    {kConv, "1x8x8x4 scale=0.5 zero=128;inputs 0", "1x8x8x4 scale=0.5 zero=128 const=zeros;inputs",
     "1x8x8x4 scale=0.5 zero=128;inputs 0", "'in' is constant"},
    {kConv, "zero=127 const=zeros;inputs 0", "zero=127;inputs 0 1", "zero=126 const=zeros;inputs 0",
     "'filter' is not constant"},
    {kConv, "zero=0 const=zeros;inputs 0", "zero=0;inputs 0 2", "zero=0 const=zeros;inputs 0",
     "'bias' is not constant"},
    {kConv, "in=[0 1 2]", "in=[- 1 2]", "in=[0 1 -]", "input 0 is missing"},
    {kConv, "in=[0 1 2]", "in=[0 - 2]", "in=[0 1]", "input 1 is missing"},
    {kDepthwise, "scale=0.5 zero=128;inputs 0", "scale=0.5 zero=128 const=zeros;inputs", "scale=0.5 zero=128;inputs 0",
     "'in' is constant"},
    {kDepthwise, "zero=127 const=zeros;inputs 0", "zero=127;inputs 0 1", "zero=126 const=zeros;inputs 0",
     "'filter' is not constant"},
    {kFullyConnected, "scale=0.5 zero=3;inputs 0", "scale=0.5 zero=3 const=zeros;inputs", "scale=0.5 zero=3;inputs 0",
     "'in' is constant"},
    {kFullyConnected, "zero=0 const=zeros;inputs 0", "zero=0;inputs 0 1", "zero=0 const=zeros;inputs 0",
     "'filter' is not constant"},
    {kFullyConnected, "in=[0 1 -]", "in=[0 -]", "in=[0 1]", "input 1 is missing"},
    {kAdd, "scale=1 zero=128;inputs 0 1", "scale=1 zero=128 const=zeros;inputs 1", "scale=1 zero=129;inputs 0 1",
     "'a' is constant"},
    {kAdd, "scale=1 zero=127;inputs 0 1", "scale=1 zero=127 const=zeros;inputs 0", "scale=1 zero=126;inputs 0 1",
     "'b' is constant"},
    {kAdd, "in=[0 1]", "in=[0 -]", "in=[0 0]", "input 1 is missing"},
    {kConcatenation, "\"b\" uint8 1x4x4x8 scale=1 zero=128;inputs 0 1",
     "\"b\" uint8 1x4x4x8 scale=1 zero=128 const=zeros;inputs 0", "\"b\" uint8 1x4x4x8 scale=1 zero=128;inputs 0 1",
     "'b' is constant"},
    {kConcatenation, "in=[0 1]", "in=[0 -]", "in=[1 0]", "input 1 is missing"},
    {kSplit, "\"in\" uint8 1x4x4x8 scale=1 zero=128;inputs 1",
     "\"in\" uint8 1x4x4x8 scale=1 zero=128 const=zeros;inputs", "\"in\" uint8 1x4x4x8 scale=1 zero=128;inputs 1",
     "'in' is constant"},
    {kSplit, "const=[3];inputs 1", ";inputs 0 1", "const=[3];inputs 1", "'axis' is not constant"},
    {kPad, "1x4x4x8 scale=1 zero=128;inputs 0", "1x4x4x8 scale=1 zero=128 const=zeros;inputs",
     "1x4x4x8 scale=1 zero=128;inputs 0", "'in' is constant"},
    {kPad, "const=[0 0 1 1 1 1 0 0];inputs 0", ";inputs 0 1", "const=[0 0 0 2 2 0 0 0];inputs 0",
     "'paddings' is not constant"},
    {kReshape, "1x4x4x8 scale=1 zero=128;inputs 0", "1x4x4x8 scale=1 zero=128 const=zeros;inputs",
     "1x4x4x8 scale=1 zero=128;inputs 0", "'in' is constant"},
    {kReshape, "const=[1 128];inputs 0;in=[0 1]", ";inputs 0 1;in=[0 1]", "const=[1 128];inputs 0;in=[0 -]",
     "'shape' is not constant"},
    {kTranspose, "\"in\" uint8 1x4x4x4 scale=1 zero=128;inputs 0",
     "\"in\" uint8 1x4x4x4 scale=1 zero=128 const=zeros;inputs", "\"in\" uint8 1x4x4x4 scale=1 zero=128;inputs 0",
     "'in' is constant"},
    {kTranspose, "const=[0 3 1 2];inputs 0", ";inputs 0 1", "const=[0 3 1 2];inputs 0",
     "'permutation' is not constant"},
    {kRelu, "scale=1 zero=128;inputs 0", "scale=1 zero=128 const=zeros;inputs", "scale=1 zero=128;inputs 0",
     "'in' is constant"},
    {kLogistic, "scale=1 zero=128;inputs 0", "scale=1 zero=128 const=zeros;inputs", "scale=1 zero=128;inputs 0",
     "'in' is constant"},
    {kRelu, "in=[0]", "in=[-]", "in=[0]", "input 0 is missing"},
};

constexpr Row kConvRows[] = {
    {kConv, "\"filter\" uint8", "\"filter\" int8", "\"filter\" uint8",
     "input, filter 'filter' and output are uint8, int8"},
    {kFullyConnected, "\"out\" int8", "\"out\" uint8", "\"out\" int8", "and output are int8, int8 and uint8"},
    {kConv, " scale=0.25 zero=127", "", " scale=0.25 zero=126", "filter 'filter' is not quantized"},
    {kConv, "scale=0.25 zero=127", "scale=[1 1 1 1 1 1 1 2] zero=127 axis=0", "scale=[1 1 1 1 1 1 1 1] zero=127 axis=0",
     "quantized per channel"},
    {kConv, "scale=0.25 zero=127", "scale=[1 1 1 1 1 1 1 1] zero=[7 7 7 7 7 7 7 8] axis=0",
     "scale=[1 1 1 1 1 1 1 1] zero=[7 7 7 7 7 7 7 7] axis=0", "quantized per channel"},
    {kConv, "scale=0.25 zero=127", "scale=[1 1 1 1 1 1 1 0] zero=127 axis=0", "scale=[1 1 1 1 1 1 1 1] zero=127 axis=0",
     "a channel with scale 0"},
    {kConv, "scale=0.25 zero=127", "scale=1e-40 zero=127", "scale=0.25 zero=255", "filter 'filter' has scale"},
    {kConv, "scale=0.25 zero=127", "scale=0.25 zero=256", "scale=0.25 zero=0", "filter 'filter' has scale"},
    {kConv, "\"bias\" int32", "\"bias\" int64", "\"bias\" int32", "bias 'bias' is int64"},
    {kConv, "int32 8", "int32 7", "int32 8", "bias 'bias' has 7 elements"},
    {kConv, "int32 8", "int32 9", "int32 8", "bias 'bias' has 9 elements"},
    // scale 8: 6 is 1 step; scale 6/255: 255 steps
    {kConv, "out=[3]", "out=[3] activation=relu_n1_to_1", "out=[3] activation=relu", "fused activation relu_n1_to_1"},
    {kConv, "out=[3]", "out=[3] activation=tanh", "out=[3]", "fused activation tanh"},
    {kConv, "scale=8 zero=7;out=[3]", "scale=0.0237 zero=0;out=[3] activation=relu6",
     "scale=0.0235 zero=0;out=[3] activation=relu6", "reaches beyond 6"},
    {kConv, "scale=8 zero=7;out=[3]", "scale=0.0237 zero=1;out=[3] activation=relu6",
     "scale=0.0237 zero=2;out=[3] activation=relu6", "reaches beyond 6"},
    {kFullyConnected, "scale=8 zero=7;out=[2]", "scale=0.0237 zero=-127;out=[2] activation=relu6",
     "scale=0.0237 zero=-126;out=[2] activation=relu6", "reaches beyond 6"},
    {kFullyConnected, "out=[2]", "out=[2] activation=sign_bit", "out=[2] activation=relu", "fused activation"},
    {kConv, "out=[3]", "out=[3] dilation_h=2", "out=[3] dilation_h=1", "dilation 2x1"},
    {kConv, "out=[3]", "out=[3] dilation_w=2", "out=[3] dilation_w=1", "dilation 1x2"},
    {kConv, "1x8x8x8;out=[3]", "1x3x3x8;out=[3] stride_h=3 stride_w=3", "1x4x4x8;out=[3] stride_h=2 stride_w=2",
     "stride 3x3"},
    {kConv, "1x8x8x8;out=[3]", "1x8x4x8;out=[3] stride_h=1 stride_w=2", "1x4x4x8;out=[3] stride_h=2 stride_w=2",
     "stride 1x2"},
    {kConv, "1x8x8x8;out=[3]", "1x4x8x8;out=[3] stride_h=2 stride_w=1", "1x8x8x8;out=[3] stride_h=1 stride_w=1",
     "stride 2x1"},
    {kConv, "8x3x3x4", "8x3x3x2", "8x3x3x4", "grouped convolution"},
    {kFullyConnected, "1x40;1x10", "2x40;2x10", "1x1x40;1x10", "more than one row of input"},
    {kConv, "1x8x8x4;1x8x8x8", "1x8x8192x4;1x8x8192x8", "1x8x8191x4;1x8x8191x8", "image larger than 8191 px"},
    {kConv, "1x8x8x4;1x8x8x8", "1x8192x8x4;1x8192x8x8", "1x8191x8x4;1x8191x8x8", "image larger than 8191 px"},
    {kPointwise, "1x1x1x4;1x1x1x8;out=[2]", "1x1x8191x4;1x1x4096x8;out=[2] stride_h=2 stride_w=2",
     "1x1x8190x4;1x1x4095x8;out=[2] stride_h=2 stride_w=2", "image larger than 8191 px"},
    {kPointwise, "1x1x1x4;1x1x1x8;out=[2]", "1x8191x1x4;1x4096x1x8;out=[2] stride_h=2 stride_w=2",
     "1x8190x1x4;1x4095x1x8;out=[2] stride_h=2 stride_w=2", "image larger than 8191 px"},
    {kConv, "1x8x8x4;1x8x8x8;out=[3]", "1x8x16382x4;1x4x8191x8;out=[3] stride_h=2 stride_w=2",
     "1x8x16380x4;1x4x8190x8;out=[3] stride_h=2 stride_w=2", "image larger than 8191 px"},
    {kPointwise, "1x1x1x4;8x1x1x4", "1x1x1x16384;8x1x1x16384", "1x1x1x16383;8x1x1x16383", "more than 16383 channels"},
    {kPointwise, "8x1x1x4;1x1x1x8", "16384x1x1x4;1x1x1x16384", "16383x1x1x4;1x1x1x16383", "more than 16383 channels"},
    {kConv, "1x8x8x4;8x3x3x4;1x8x8x8;out=[3]", "1x2x2x4096;8x3x3x4096;1x1x1x8;out=[3] stride_h=2 stride_w=2",
     "1x2x2x4095;8x3x3x4095;1x1x1x8;out=[3] stride_h=2 stride_w=2", "more than 16383 channels"},
    {kFullyConnected, "scale=0.25;scale=8", "scale=2;scale=1.52587890625e-05", "scale=2;scale=1.5258789e-03",
     "requantization scale 65536"},
    {kFullyConnected, "1x40;10x40", "1x16384;10x16384", "1x16383;10x16383", "more than 16383 channels"},
    {kConv, "8x3x3x4", "8x12x3x4", "8x11x3x4", "filter larger than 11 px"},
    {kConv, "8x3x3x4", "8x3x12x4", "8x3x11x4", "filter larger than 11 px"},
    {kConv, "8x3x3x4;1x8x8x8;out=[3]", "8x23x3x4;1x4x4x8;out=[3] stride_h=2 stride_w=2",
     "8x22x3x4;1x4x4x8;out=[3] stride_h=2 stride_w=2", "filter larger than 11 px"},
    {kDepthwise, "1x9x9x4;1x3x3x4", "1x9x9x15448;1x3x3x15448", "1x9x9x15446;1x3x3x15446",
     "more than 2147483647 weights"},
    // Scales: input 0.5.
    {kPointwise, "scale=0.5;scale=0.25;scale=8", "scale=1e-20;scale=1e-19;scale=1e-36",
     "scale=1e-20;scale=1e-17;scale=1e-36", "not a normal number"},
    {kPointwise, "scale=0.5;scale=0.25", "scale=1e20;scale=1e20", "scale=1;scale=1", "not a normal number"},
    {kPointwise, "scale=0.25;scale=8", "scale=0.25;scale=1.29807421e+33", "scale=0.25;scale=6.49037107e+32",
     "requantization scale"},
    {kPointwise, "scale=0.25 zero=127;scale=8", "scale=2 zero=0;scale=1.52587890625e-05",
     "scale=2 zero=0;scale=1.5258791e-05", "requantization scale 65536"},
    // Sums. Four products of up to 128 * 127 are 65024; at scale 2^15 there are 15 bits for them, at 2^14 16.
    {kPointwise, "scale=0.25;scale=8", "scale=2;scale=3.0517578125e-05", "scale=2;scale=6.103515625e-05",
     "sums can exceed 32 bits"},
    // n products of 255 * 255: up to 33025. The values of the weights count, not only their number.
    {kPointwise, "1x1x1x4;8x1x1x4;zero=128;zero=127;out=[2]",
     "1x3x3x3670;8x3x3x3670;zero=0;zero=255;out=[2] padding=valid",
     "1x3x3x3669;8x3x3x3669;zero=0;zero=255;out=[2] padding=valid", "sums can exceed 32 bits"},
    {kPointwise, "1x1x1x4;8x1x1x4;zero=128;zero=127;out=[2]",
     "1x3x3x3670;8x3x3x3670;zero=255;zero=255;out=[2] padding=valid",
     "1x3x3x3670;8x3x3x3670;zero=0;zero=0;out=[2] padding=valid", "sums can exceed 32 bits"},
    // 36 products of -127 with -128..127: the bias may reach 2^31 - 256 minus 585216, and -2^31 + 256 plus 580644.
    {kConv, "zero=0 const=zeros", "zero=0 const=[0 2146898177 0 0 0 0 0 0]", "zero=0 const=[0 2146898176 0 0 0 0 0 0]",
     "sums can exceed 32 bits"},
    {kConv, "zero=0 const=zeros", "zero=0 const=[0 0 0 0 0 0 0 -2146902749]",
     "zero=0 const=[0 0 0 0 0 0 0 -2146902748]", "sums can exceed 32 bits"},
    // Depthwise: the weights of a channel are added to the bias of the same channel.
    {kDepthwise, "1x9x9x4;1x3x3x4;zero=127 const=zeros;[0 1 -] out=[2];outputs 2;tensor 2",
     "1x9x9x2;1x1x1x2;zero=0 const=[0 255];[0 1 2] out=[3];outputs 3;tensor 2 \"b\" int32 2 const=[0 "
     "2147483392]\ntensor 3",
     "1x9x9x2;1x1x1x2;zero=0 const=[255 0];[0 1 2] out=[3];outputs 3;tensor 2 \"b\" int32 2 const=[0 "
     "2147483392]\ntensor 3",
     "sums can exceed 32 bits"},
    {kDepthwise, "1x9x9x4;1x3x3x4;zero=127 const=zeros;[0 1 -] out=[2];outputs 2;tensor 2",
     "1x9x9x2;1x1x1x2;zero=0 const=[0 0];[0 1 2] out=[3];outputs 3;tensor 2 \"b\" int32 2 const=[0 2147483393]\ntensor "
     "3",
     "1x9x9x2;1x1x1x2;zero=0 const=[0 0];[0 1 2] out=[3];outputs 3;tensor 2 \"b\" int32 2 const=[0 2147483392]\ntensor "
     "3",
     "sums can exceed 32 bits"},
};

constexpr Row kAddRows[] = {
    {kAdd, "1x4x4x8 scale=1 zero=127", "1x1x4x8 scale=1 zero=127", "1x4x4x8 scale=1 zero=126", "does not broadcast"},
    {kAdd, "out=[2]", "out=[2] activation=relu_n1_to_1", "out=[2] activation=relu", "fused activation relu_n1_to_1"},
    {kAdd, "scale=2 zero=0;out=[2]", "scale=2 zero=1;out=[2] activation=relu", "scale=2 zero=1;out=[2]",
     "output zero point is not the lowest value"},
    {kAdd, "scale=2 zero=0;out=[2]", "scale=0.0237 zero=0;out=[2] activation=relu6",
     "scale=0.0235 zero=0;out=[2] activation=relu6", "reaches beyond 6"},
    {kAdd, "scale=1 zero=128;scale=1 zero=127", "scale=1e-20 zero=128;scale=1e+20 zero=127",
     "scale=1e-20 zero=128;scale=1 zero=127", "too far apart"},
    {kAdd, "scale=1;scale=2", "scale=3.3e+32;scale=3.3e+32", "scale=3.2e+32;scale=3.2e+32", "is not a number"},
    {kAdd, "scale=1;scale=2", "scale=bits:75800000;scale=3.2e+32", "scale=bits:757fffff;scale=3.2e+32",
     "is not a number"},
    {kAdd, "scale=1;scale=2", "scale=1;scale=3.3e+32", "scale=255;scale=3.2e+32", "is not a number"},
    // 255 * 2^-112 is the smallest ratio of an operand's scale to the output's.
    {kAdd, "scale=1;scale=2", "scale=4e-31;scale=8.2e+0", "scale=4e-31;scale=8.1e+0", "requantization scale"},
    {kAdd, "scale=1;scale=2", "scale=2.9e-36;scale=1e-30", "scale=3.1e-36;scale=1e-30", "requantization scale"},
    {kAdd, "scale=1;scale=2", "scale=1;scale=2.38e-07", "scale=1;scale=2.39e-07", "sums can exceed 32 bits"},
    // A ratio of 2.5 / 255 makes the error of the smaller weight half a step: a quarter of the larger scale over the
    // output's scale, at zero points in the middle; twice that at the ends.
    {kAdd, "scale=1 zero=127;scale=2", "scale=0.00980392 zero=127;scale=0.147", "scale=0.00980392 zero=127;scale=0.148",
     "8-bit weights"},
    {kAdd, "scale=1 zero=128;scale=2", "scale=0.00980392 zero=128;scale=0.147", "scale=0.00980392 zero=128;scale=0.148",
     "8-bit weights"},
    {kAdd, "scale=1 zero=128;scale=1 zero=127;scale=2", "scale=1 zero=0;scale=0.00980392 zero=255;scale=0.29",
     "scale=1 zero=0;scale=0.00980392 zero=255;scale=0.3", "8-bit weights"},
    {kAdd, "1x4x4x8", "1x1x8209x8191", "1x1x8191x8191", "cannot be divided"},
    {kAdd, "1x4x4x8", "1x1x1x8209", "1x1x1x8208", "cannot be divided"},
};

constexpr Row kLayoutRows[] = {
    {kConcatenation, "axis=3", "axis=2", "axis=-1", "only allows concatenating channels"},
    {kConcatenation, "axis=3", "axis=-2", "axis=3", "only allows concatenating channels"},
    {kConcatenation, "axis=3", "axis=3 activation=relu", "axis=3 activation=none", "fused activation relu"},
    {kConcatenation, "1x4x4x16 scale=1", "1x4x4x16 scale=2", "1x4x4x16 scale=1", "quantized differently"},
    {kConcatenation, "1x4x4x16 scale=1 zero=128", "1x4x4x16 scale=1 zero=127", "1x4x4x16 scale=1 zero=128",
     "quantized differently"},
    {kConcatenation, "\"b\" uint8 1x4x4x8 scale=1", "\"b\" uint8 1x4x4x8 scale=2", "\"b\" uint8 1x4x4x8 scale=1",
     "'b' is quantized differently"},
    {kSplit, "const=[3]", "const=[2]", "const=[-1]", "only allows splitting channels"},
    {kSplit, "const=[3]", "const=[1]", "const=[3]", "only allows splitting channels"},
    {kSplit, "int32 scalar const=[3]", "int32 2 const=[3 3]", "int32 1 const=[3]", "only allows splitting channels"},
    {kSplit, "\"b\" uint8 1x4x4x4 scale=1", "\"b\" uint8 1x4x4x4 scale=2", "\"b\" uint8 1x4x4x4 scale=1",
     "'b' is quantized differently"},
    {kSplit, "\"b\" uint8;zero=128", "\"b\" int8;zero=0", "\"b\" uint8;zero=0", "'b' is quantized differently"},
    {kPad, "1x6x6x8 scale=1", "1x6x6x8 scale=2", "1x6x6x8 scale=1", "quantized differently"},
    {kPad, "1x6x6x8 scale=1 zero=128", "1x6x6x8 scale=1 zero=0", "1x6x6x8 scale=1 zero=128", "quantized differently"},
    {kPad, "[0 0 1 1 1 1 0 0]", "[1 0 1 1 1 1 0 0]", "[0 0 0 2 1 1 0 0]", "pads the batch"},
    {kPad, "[0 0 1 1 1 1 0 0]", "[0 1 1 1 1 1 0 0]", "[0 0 2 0 2 0 0 0]", "pads the batch"},
    {kPad, "[0 0 1 1 1 1 0 0]", "[0 0 3 0 1 1 0 0]", "[0 0 2 0 1 1 0 0]", "pads by 3"},
    {kPad, "[0 0 1 1 1 1 0 0]", "[0 0 0 3 1 1 0 0]", "[0 0 0 2 1 1 0 0]", "pads by 3"},
    {kPad, "[0 0 1 1 1 1 0 0]", "[0 0 1 1 3 0 0 0]", "[0 0 1 1 2 0 0 0]", "pads by 3"},
    {kPad, "[0 0 1 1 1 1 0 0]", "[0 0 1 1 0 3 0 0]", "[0 0 1 1 0 2 0 0]", "pads by 3"},
    {kPad, "[0 0 1 1 1 1 0 0];1x6x6x8", "[0 0 1 1 1 1 3 0];1x6x6x11", "[0 0 1 1 1 1 2 0];1x6x6x10", "pads by 3"},
    {kPad, "[0 0 1 1 1 1 0 0];1x6x6x8", "[0 0 1 1 1 1 0 3];1x6x6x11", "[0 0 1 1 1 1 0 2];1x6x6x10", "pads by 3"},
    {kPad, "1x4x4x8;1x6x6x8", "1x4x32767x8;1x6x32769x8", "1x4x32766x8;1x6x32768x8", "larger than 32768 after padding"},
    {kPad, "1x4x4x8;1x6x6x8", "1x32767x4x8;1x32769x6x8", "1x32766x4x8;1x32768x6x8", "larger than 32768 after padding"},
    {kPad, "1x4x4x8;1x6x6x8", "1x4x4x32769;1x6x6x32769", "1x4x4x32768;1x6x6x32768", "larger than 32768 after padding"},
    {kPad, "int32 4x2;[0 0 1 1 1 1 0 0]", "int64 4x2;[0 0 1 1 3 0 0 0]", "int64 4x2;[0 0 1 1 2 0 0 0]", "pads by 3"},
    {kPad, "4x2 const=[0 0 1 1 1 1 0 0];1x4x4x8;1x6x6x8", "2x2 const=[0 0 3 0];4x8;4x11",
     "2x2 const=[0 0 2 0];4x8;4x10", "pads by 3"},
    {kPad, "4x2 const=[0 0 1 1 1 1 0 0];1x4x4x8;1x6x6x8", "2x2 const=[0 3 0 0];4x8;7x8", "2x2 const=[0 2 0 0];4x8;6x8",
     "pads by 3"},
    {kReshape, "1x128 scale=1", "1x128 scale=2", "1x128 scale=1", "quantized differently"},
    {kReshape, "1x128 scale=1 zero=128", "1x128 scale=1 zero=127", "1x128 scale=1 zero=128", "quantized differently"},
    {kReshape, "int32 2 const=[1 128];1x128;shape=[1 128]", "int32 4 const=[128 1 1 1];128x1x1x1;shape=[128 1 1 1]",
     "int32 1 const=[128];128;shape=[128]", "batch 1"},
    {kTranspose, "\"out\" uint8 1x4x4x4 scale=1", "\"out\" uint8 1x4x4x4 scale=2", "\"out\" uint8 1x4x4x4 scale=1",
     "quantized differently"},
    {kTranspose, "in\" uint8 1x4x4x4;out\" uint8 1x4x4x4;[0 3 1 2]",
     "in\" uint8 1x1x4x40000;out\" uint8 1x40000x4x1;[0 3 2 1]",
     "in\" uint8 1x1x4x32768;out\" uint8 1x32768x4x1;[0 3 2 1]", "rows beyond 32768"},
};

class SupportRows : public testing::TestWithParam<std::span<const Row>> {};

TEST_P(SupportRows, RefusesAndCompilesTheNeighbour) {
  for (const Row& row : GetParam()) {
    SCOPED_TRACE(title(row));
    const auto graph = graph_of(row, row.refused), neighbour = graph_of(row, row.accepted);
    if (!graph || !neighbour) continue;
    const npu::Support refused = supports(a311d(), *graph, 0);
    EXPECT_FALSE(refused.ok);
    EXPECT_NE(refused.reason.find(row.reason), std::string::npos) << refused.reason;
    if (const auto fine = ir::verify(*neighbour); !fine.ok()) ADD_FAILURE() << row.accepted << fine.error().message;
    const npu::Support accepted = supports(a311d(), *neighbour, 0);
    EXPECT_TRUE(accepted.ok) << row.accepted << ": " << accepted.reason;
    for (const auto tuning : {npu::Tuning::proven, npu::Tuning::tuned}) {
      const auto program = driver().compile(driver().chips()[0], *neighbour, {.tuning = tuning});
      EXPECT_TRUE(program.ok()) << program.error().message;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, SupportRows,
                         testing::Values(std::span<const Row>(kActivationRows), std::span<const Row>(kOperandRows),
                                         std::span<const Row>(kConvRows), std::span<const Row>(kAddRows),
                                         std::span<const Row>(kLayoutRows), std::span<const Row>(kTableRows)));

// Operations that are taken but unproven (`refused` and `reason`), next to proven ones.
constexpr Row kUnprovenRows[] = {
    {kDepthwise, "1x3x3x4;1x9x9x4 scale=8;out=[2]", "1x3x3x8;1x9x9x8 scale=8;out=[2] depth_multiplier=2",
     "1x3x3x4;1x9x9x4 scale=8;out=[2]", "depth multiplier"},
    {kConv, "8x3x3x4", "8x6x6x4", "8x5x5x4", "filters beyond 5x5"},
    {kConv, "8x3x3x4;1x8x8x8;out=[3]", "8x11x11x4;1x4x4x8;out=[3] stride_h=2 stride_w=2",
     "8x10x10x4;1x4x4x8;out=[3] stride_h=2 stride_w=2", "filters beyond 5x5"},
    {kConv, "8x3x3x4", "8x3x2x4", "8x2x2x4", "filters that are not square"},
    {kConv, "1x8x8x4;1x8x8x8", "1x8x9x4;1x8x9x8", "1x9x9x4;1x9x9x8", "images that are not square"},
    {kPointwise, "8x1x1x4;1x1x1x8;out=[2]", "9x1x1x4;1x1x1x9;out=[2] activation=relu",
     "8x1x1x4;1x1x1x8;out=[2] activation=relu", "other than 0"},
    {kPointwise, "8x1x1x4;1x1x1x8 scale=8 zero=7;out=[2]", "9x1x1x4;1x1x1x9 scale=8 zero=1;out=[2] activation=relu",
     "9x1x1x4;1x1x1x9 scale=8 zero=0;out=[2] activation=relu", "other than 0"},
    {kReshape, "1x4x4x8;const=[1 128];int32 2;1x128;shape=[1 128]",
     "1x1x1x32769;const=[1 3 1 10923];int32 4;1x3x1x10923;shape=[1 3 1 10923]",
     "1x1x1x32768;const=[1 2 1 16384];int32 4;1x2x1x16384;shape=[1 2 1 16384]", "never recorded"},
    // The recorded layout change: back to NHWC within a height and a width x channels of 32768.
    {kRelu, "1x4x4x8", "1x4x128x257", "1x4x128x256", "never recorded"},
    {kRelu, "1x4x4x8", "1x32769x1x1", "1x32768x1x1", "never recorded"},
    {kRelu, "1x4x4x8", "1x1x1x32769", "1x1x1x32768", "never recorded"},
    {kRelu, "1x4x4x8", "1x1x32769x1", "1x1x32768x1", "never recorded"},
};

TEST(Support, SaysWhatIsUnproven) {
  for (const Row& row : kUnprovenRows) {
    SCOPED_TRACE(title(row));
    const auto graph = graph_of(row, row.refused), neighbour = graph_of(row, row.accepted);
    if (!graph || !neighbour) continue;
    const npu::Support unproven = supports(a311d(), *graph, 0), proven = supports(a311d(), *neighbour, 0);
    EXPECT_TRUE(unproven.ok && unproven.unproven) << unproven.reason;
    EXPECT_FALSE(unproven.stands_on.empty()) << title(row);
    EXPECT_NE(unproven.reason.find(row.reason), std::string::npos) << unproven.reason;
    EXPECT_TRUE(proven.ok && !proven.unproven && proven.stands_on.empty()) << proven.reason;
  }
  for (const char* text : {kFullyConnected, kSplit}) {
    const npu::Support support = supports(a311d(), *ir::parse(text), 0);
    EXPECT_TRUE(support.ok && support.unproven) << text;
  }
  for (const char* text : {kConv, kPointwise, kDepthwise, kAdd, kConcatenation, kPad, kReshape, kTranspose, kRelu}) {
    const npu::Support support = supports(a311d(), *ir::parse(text), 0);
    EXPECT_TRUE(support.ok && !support.unproven) << text << support.reason;
    EXPECT_TRUE(supports(*hw::find_chip("s905d3"), *ir::parse(text), 0).unproven) << text;
  }
}

// A wide tensor between two ops that both use planes never changes its layout; before a reshape it does.
TEST(Support, LayoutsCountWhereTheyChange) {
  constexpr const char* kChain = R"(graph ""
tensor 0 "in" uint8 1x260x260x8 scale=0.5 zero=128
tensor 1 "f1" uint8 256x1x1x8 scale=0.25 zero=127 const=zeros
tensor 2 "wide" uint8 1x260x260x256 scale=8 zero=7
tensor 3 "f2" uint8 8x1x1x256 scale=0.25 zero=127 const=zeros
tensor 4 "out" uint8 1x260x260x8 scale=8 zero=7
inputs 0
outputs 4
op 0 CONV_2D in=[0 1 -] out=[2]
op 1 CONV_2D in=[2 3 -] out=[4]
)";
  // Read by the caller, by the CPU, by an op that uses NHWC order.
  constexpr const char* kSecond = "op 1 CONV_2D in=[2 3 -] out=[4];outputs 4;1x260x260x8 scale=8";
  const Row rows[] = {
      {kChain, kSecond, "op 1 CONV_2D in=[2 3 -] out=[4];outputs 4 2;1x260x260x8 scale=8", "", ""},
      {kChain, kSecond, "op 1 SOFTMAX in=[2] out=[4];outputs 4;1x260x260x256 scale=8", "", ""},
      {kChain, kSecond, "op 1 RESHAPE in=[2] out=[4] shape=[1 1 67600 256];outputs 4;1x1x67600x256 scale=8", "", ""},
  };
  const ir::Graph inside = *ir::parse(kChain);
  for (const ir::OpId op : {0, 1}) {
    const npu::Support support = supports(a311d(), inside, op);
    EXPECT_TRUE(support.ok && !support.unproven) << support.reason;
  }
  EXPECT_TRUE(lower(a311d(), inside, {}).ok());
  // The readers of other tensors do not matter.
  const Row other{kChain, "inputs 0;outputs 4;in=[2 3 -] out=[4]\n", "", "", ""};
  const auto beside = graph_of(other,
                               "tensor 5 \"t\" uint8 1x260x260x8 scale=8 zero=7\ninputs 0;outputs 5;"
                               "in=[2 3 -] out=[4]\nop 2 SOFTMAX in=[4] out=[5]\n");
  ASSERT_TRUE(beside && ir::verify(*beside).ok());
  EXPECT_FALSE(supports(a311d(), *beside, 0).unproven);
  for (const Row& row : rows) {
    SCOPED_TRACE(row.refused);
    const auto graph = graph_of(row, row.refused);
    ASSERT_TRUE(graph && ir::verify(*graph).ok());
    const npu::Support support = supports(a311d(), *graph, 0);
    EXPECT_TRUE(support.ok && support.unproven) << support.reason;
  }
}

ConvShape conv_of(const Image& in, int32_t kernel, int32_t stride, bool depthwise) {
  ConvShape s{.in = in, .kernel_height = kernel, .kernel_width = kernel, .stride = stride, .depthwise = depthwise};
  s.pointwise = kernel == 1;
  return s;
}

TEST(Support, GeometryFollowsTheRecordedRules) {
  struct StrideCase {
    int32_t height, width, kernel, stride;
    bool depthwise;
    StrideMethod method;
  };
  const StrideCase strides[] = {
      {8, 8, 3, 1, false, StrideMethod::none},        {8, 8, 3, 1, true, StrideMethod::none},
      {8, 8, 1, 2, false, StrideMethod::first_pixel}, {8, 8, 2, 2, false, StrideMethod::reshuffle},
      {8, 8, 3, 2, true, StrideMethod::first_pixel},  {8, 8, 1, 2, true, StrideMethod::first_pixel},
      {7, 8, 3, 2, true, StrideMethod::reshuffle},    {8, 7, 3, 2, true, StrideMethod::reshuffle},
      {3, 8, 3, 2, true, StrideMethod::reshuffle},    {2, 2, 3, 2, true, StrideMethod::first_pixel},
      {8, 2, 3, 2, true, StrideMethod::first_pixel},  {3, 3, 1, 2, true, StrideMethod::reshuffle}};
  for (const StrideCase& c : strides) {
    const ConvShape s = conv_of({c.width, c.height, 4}, c.kernel, c.stride, c.depthwise);
    EXPECT_EQ(stride_method(a311d(), s), c.method) << c.height << "x" << c.width << ", filter " << c.kernel;
  }
  ConvShape tall{.in = {8, 8, 4}, .kernel_height = 3, .kernel_width = 1, .stride = 2};
  EXPECT_EQ(stride_method(a311d(), tall), StrideMethod::reshuffle);
  std::swap(tall.kernel_height, tall.kernel_width);
  EXPECT_EQ(stride_method(a311d(), tall), StrideMethod::reshuffle);

  struct AddCase {
    ir::Shape shape;
    int32_t width, height;
  };
  const AddCase additions[] = {{{1, 16, 16, 4}, 8, 128},   {{1, 8, 8, 3}, 3, 64},          {{1, 4, 8, 2}, 2, 32},
                               {{1, 5, 5, 2}, 2, 25},      {{1, 9, 14, 2}, 4, 63},         {{1, 1, 1, 8191}, 8191, 1},
                               {{1, 1, 1, 8192}, 4096, 2}, {{1, 112, 112, 128}, 7168, 224}};
  for (const AddCase& c : additions) {
    const auto size = addition_geometry(a311d(), image_of(c.shape));
    ASSERT_TRUE(size) << c.shape.to_string();
    EXPECT_EQ(std::pair(size->in.width, size->in.height), std::pair(c.width, c.height)) << c.shape.to_string();
  }
}

TEST(Support, GeometryOfV8FollowsTheRecordedRules) {
  const hw::ChipRow& v8 = *hw::find_chip("imx8mp");
  struct StrideCase {
    Image in;
    int32_t kernel;
    bool depthwise;
    StrideMethod method;
  };
  const StrideCase strides[] = {
      {{8, 8, 4}, 1, false, StrideMethod::first_pixel}, {{8, 3, 2}, 1, false, StrideMethod::first_pixel},
      {{8, 2, 4}, 1, false, StrideMethod::reshuffle},   {{8, 8, 1}, 1, false, StrideMethod::reshuffle},
      {{8, 8, 4}, 3, false, StrideMethod::reshuffle},   {{4, 4, 4}, 3, true, StrideMethod::first_pixel},
      {{7, 7, 4}, 5, true, StrideMethod::first_pixel}};
  for (const StrideCase& c : strides) {
    const ConvShape s = conv_of(c.in, c.kernel, 2, c.depthwise);
    EXPECT_EQ(stride_method(v8, s), c.method) << c.in.width << "x" << c.in.height << "x" << c.in.channels;
  }

  struct AddCase {
    Image operand, in, out;
    int32_t kernel_height;
  };
  const AddCase additions[] = {{{8, 6, 4}, {32, 4, 3}, {32, 1, 6}, 4},
                               {{8, 7, 6}, {56, 3, 4}, {56, 1, 6}, 3},
                               {{8, 7, 5}, {8, 7, 10}, {8, 7, 5}, 1},
                               {{112, 112, 128}, {112, 112, 256}, {112, 112, 128}, 1},
                               {{1, 1, 16382}, {8191, 1, 4}, {8191, 1, 2}, 1}};
  for (const AddCase& c : additions) {
    const auto g = addition_geometry(v8, c.operand);
    ASSERT_TRUE(g);
    const auto sizes = [](const Image& i) { return std::array{i.width, i.height, i.channels}; };
    EXPECT_EQ(sizes(g->in), sizes(c.in)) << c.operand.height;
    EXPECT_EQ(sizes(g->out), sizes(c.out)) << c.operand.height;
    EXPECT_EQ(std::pair(g->kernel_height, g->recorded), std::pair(c.kernel_height, c.operand.channels <= 2048));
    EXPECT_EQ(g->in.bytes(), 2 * c.operand.bytes()) << c.operand.height;
  }
  EXPECT_FALSE(addition_geometry(v8, {1, 1, 8209})) << "a prime beyond the fields";
}

// The finer an addition's output is than its operands, the larger is its error.
TEST(Support, StatesItsTolerances) {
  const struct {
    Row row;
    int steps;
  } rows[] = {{{kConv, "1x8x8x4", "", "1x8x8x4", ""}, 1},
              {{kAdd, "scale=1 zero=127;scale=2", "", "scale=0.00980392 zero=127;scale=2", ""}, 1},
              {{kAdd, "scale=1 zero=127;scale=2", "", "scale=0.00980392 zero=127;scale=0.37", ""}, 1},
              {{kAdd, "scale=1 zero=127;scale=2", "", "scale=0.00980392 zero=127;scale=0.34", ""}, 2},
              {{kAdd, "scale=1 zero=127;scale=2", "", "scale=0.00980392 zero=127;scale=0.148", ""}, 2}};
  for (const auto& one : rows) {
    const auto graph = graph_of(one.row, one.row.accepted);
    ASSERT_TRUE(graph);
    EXPECT_TRUE(supports(a311d(), *graph, 0).ok) << one.row.accepted;
    EXPECT_EQ(tolerance(a311d(), *graph, 0), one.steps) << one.row.accepted;
  }
}

// A caller may check less with supports() than compile() gets: every fault of a graph is an error in compile() too.
TEST(Lower, RefusesWhatHasNoPlaceInDeviceMemory) {
  const Row rows[] = {
      {kConv, "1x8x8x4 scale=0.5 zero=128;inputs 0", "1x8x8x4 scale=0.5 zero=128 const=zeros;inputs", "",
       "is constant"},
      {kRelu, "outputs 1;scale=1 zero=0",
       "outputs 1 2;scale=1 zero=0\ntensor 2 \"c\" uint8 4 scale=1 zero=0 const=zeros", "", "is not in device memory"},
      {kRelu, "inputs 0;scale=1 zero=0", "inputs 0 2;scale=1 zero=0\ntensor 2 \"f\" float32 4", "", "is not 8-bit"},
      {kRelu, "in=[0]", "in=[7]", "", "outside the 2 tensors"},
      {kRelu, "in=[0]", "in=[-]", "", "input 0 is missing"},
      {kRelu, "in=[0]", "in=[1]", "", "before anything produces it"},
      {kRelu, "out=[1]", "out=[0]", "", "already has a value"},
      {kRelu, "inputs 0", "inputs", "", "before anything produces it"},
      {kRelu, "inputs 0;zero=128", "inputs;zero=128 variable", "", "keeps its value between runs"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(title(row));
    const auto graph = graph_of(row, row.refused);
    if (!graph) continue;
    for (const auto tuning : {npu::Tuning::proven, npu::Tuning::tuned}) {
      const auto program = driver().compile(driver().chips()[0], *graph, {.tuning = tuning});
      ASSERT_FALSE(program.ok());
      EXPECT_NE(program.error().message.find(row.reason), std::string::npos) << program.error().message;
    }
  }
}

}  // namespace
}  // namespace skillet::npus::vivante
