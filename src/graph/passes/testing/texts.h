// Graphs as text before each pass and after it.
// Called by rewrite_test.cpp.
// Must not know: how they are compared.
#pragma once

#include <iterator>
#include <vector>

#include "graph/passes/testing/texts_of_moves.h"

namespace skillet::passes {

inline const Row kOtherRows[] = {
    {"fuse_activations",
     "tensor 0 \"a\" uint8 1x4x4x2 scale=0.5 zero=3\n"
     "tensor 1 \"w\" uint8 1x1x1x2 scale=0.5 zero=3 const=[1 2]\n"
     "tensor 2 \"b\" uint8 1x4x4x1 scale=0.5 zero=3\n"
     "tensor 3 \"c\" uint8 1x4x4x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 3\n"
     "op 0 CONV_2D in=[0 1] out=[2]\n"
     "op 1 RELU6 in=[2] out=[3]\n",
     "op 0 CONV_2D in=[0 1] out=[3] activation=relu6\n", "CONV_2D takes RELU6 in"},
    {"fold_pads",
     "tensor 0 \"a\" uint8 1x4x4x1 scale=0.5 zero=3\n"
     "tensor 1 \"p\" int32 4x2 const=[0 0 0 1 0 1 0 0]\n"
     "tensor 2 \"b\" uint8 1x5x5x1 scale=0.5 zero=3\n"
     "tensor 3 \"w\" uint8 1x3x3x1 scale=0.5 zero=3 const=[1 2 3 4 5 6 7 8 9]\n"
     "tensor 4 \"c\" uint8 1x2x2x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 4\n"
     "op 0 PAD in=[0 1] out=[2]\n"
     "op 1 CONV_2D in=[2 3] out=[4] padding=valid stride_h=2 stride_w=2\n",
     "op 0 CONV_2D in=[0 3] out=[4] stride_h=2 stride_w=2 source=1\n", "CONV_2D pads its input itself"},
    {"fold_space_to_batch",
     "tensor 0 \"a\" uint8 1x4x6x1 scale=0.5 zero=3\n"
     "tensor 1 \"s\" int32 2 const=[2 3]\n"
     "tensor 2 \"p\" int32 2x2 const=[4 2 1 2]\n"
     "tensor 3 \"b\" uint8 6x5x3x1 scale=0.5 zero=3\n"
     "tensor 4 \"w\" uint8 1x3x2x1 scale=0.5 zero=3 const=[1 2 3 4 5 6]\n"
     "tensor 5 \"c\" uint8 6x3x2x1 scale=0.5 zero=3\n"
     "tensor 6 \"d\" uint8 1x4x6x1 scale=0.5 zero=3\n"
     "tensor 7 \"n\" int32 2x2 const=[2 0 0 0]\n"
     "inputs 0\noutputs 6\n"
     "op 0 SPACE_TO_BATCH_ND in=[0 1 2] out=[3]\n"
     "op 1 CONV_2D in=[3 4] out=[5] padding=valid\n"
     "op 2 BATCH_TO_SPACE_ND in=[5 1 7] out=[6]\n",
     "op 0 CONV_2D in=[0 4] out=[6] dilation_h=2 dilation_w=3 source=1\n", "CONV_2D of batches becomes dilation 2x3"},
    {"fold_space_to_batch",
     "tensor 0 \"a\" uint8 1x6x9x1 scale=0.5 zero=3\n"
     "tensor 1 \"s\" int32 2 const=[2 3]\n"
     "tensor 2 \"p\" int32 2x2 const=[0 0 0 0]\n"
     "tensor 3 \"b\" uint8 6x3x3x1 scale=0.5 zero=3\n"
     "tensor 4 \"w\" uint8 1x3x2x1 scale=0.5 zero=3 const=[1 2 3 4 5 6]\n"
     "tensor 5 \"c\" uint8 6x1x2x1 scale=0.5 zero=3\n"
     "tensor 6 \"d\" uint8 1x2x6x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 6\n"
     "op 0 SPACE_TO_BATCH_ND in=[0 1 2] out=[3]\n"
     "op 1 CONV_2D in=[3 4] out=[5] padding=valid\n"
     "op 2 BATCH_TO_SPACE_ND in=[5 1 2] out=[6]\n",
     "op 0 CONV_2D in=[0 4] out=[6] padding=valid dilation_h=2 dilation_w=3 source=1\n",
     "CONV_2D of batches becomes dilation 2x3"},
    {"expand_dilation",
     "tensor 0 \"a\" int8 1x4x4x1 scale=0.5 zero=3\n"
     "tensor 1 \"w\" int8 1x2x2x1 scale=0.5 zero=7 const=[1 2 3 4]\n"
     "tensor 2 \"b\" int8 1x4x4x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 2\n"
     "op 0 CONV_2D in=[0 1] out=[2] dilation_h=2 dilation_w=2\n",
     "tensor 3 \"w/dilated\" int8 1x3x3x1 scale=0.5 zero=7 const=[1 7 2 7 7 7 3 7 4]\n"
     "op 0 CONV_2D in=[0 3] out=[2]\n",
     "CONV_2D with dilation 2x2 becomes one of 3x3"},
    {"lower_depthwise_as_conv",
     "tensor 0 \"a\" uint8 1x1x1x2 scale=0.5 zero=3\n"
     "tensor 1 \"w\" uint8 1x1x1x4 scale=0.5 zero=9 const=[1 2 3 4]\n"
     "tensor 2 \"b\" uint8 1x1x1x4 scale=0.5 zero=3\n"
     "inputs 0\noutputs 2\n"
     "op 0 DEPTHWISE_CONV_2D in=[0 1] out=[2] depth_multiplier=2\n",
     "tensor 3 \"w/dense\" uint8 4x1x1x2 scale=0.5 zero=9 const=[1 9 2 9 9 3 9 4]\n"
     "op 0 CONV_2D in=[0 3] out=[2]\n",
     "DEPTHWISE_CONV_2D with 2 filters a channel becomes CONV_2D"},
    {"lower_depthwise_as_conv",
     "tensor 0 \"a\" int8 1x1x1x4 scale=0.5 zero=3\n"
     "tensor 1 \"w\" int8 2x1x1x2 scale=[0.5 0.25] zero=[0 0] axis=0 const=[1 2 3 4]\n"
     "tensor 2 \"b\" int8 1x1x1x2 scale=0.5 zero=3\n"
     "inputs 0\noutputs 2\n"
     "op 0 CONV_2D in=[0 1] out=[2]\n",
     "tensor 3 \"w/dense\" int8 2x1x1x4 scale=[0.5 0.25] zero=0 const=[1 2 0 0 0 0 3 4]\n"
     "op 0 CONV_2D in=[0 3] out=[2]\n",
     "CONV_2D of 2 groups becomes one of all channels"},
    {"lower_sequence_mean",
     "tensor 0 \"a\" uint8 1x3x2 scale=0.5 zero=3\n"
     "tensor 1 \"x\" int32 1 const=[1]\n"
     "tensor 2 \"b\" uint8 1x2 scale=0.5 zero=3\n"
     "inputs 0\noutputs 2\n"
     "op 0 MEAN in=[0 1] out=[2]\n",
     "tensor 3 \"a/row\" uint8 1x1x3x2 scale=0.5 zero=3\n"
     "tensor 4 \"a/row/shape\" int32 4 const=[1 1 3 2]\n"
     "tensor 5 \"b/axes\" int32 2 const=[1 2]\n"
     "op 0 RESHAPE in=[0 4] out=[3] shape=[1 1 3 2]\n"
     "op 1 MEAN in=[3 5] out=[2] source=0\n",
     "MEAN of a sequence becomes one of a row"},
    {"lower_average_as_depthwise",
     "tensor 0 \"a\" uint8 1x2x2x1 scale=0.5 zero=3\n"
     "tensor 1 \"b\" uint8 1x1x1x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 1\n"
     "op 0 AVERAGE_POOL_2D in=[0] out=[1] padding=valid filter_h=2 filter_w=2\n",
     "tensor 2 \"b/ones\" uint8 1x2x2x1 scale=0.00390625 zero=0 const=[64 64 64 64]\n"
     "tensor 3 \"b/half\" int32 1 scale=0.001953125 zero=0 const=[32]\n"
     "op 0 DEPTHWISE_CONV_2D in=[0 2 3] out=[1] padding=valid\n",
     "AVERAGE_POOL_2D becomes DEPTHWISE_CONV_2D 2x2"},
    {"lower_average_as_depthwise",
     "tensor 0 \"a\" uint8 1x2x3x1 scale=0.5 zero=3\n"
     "tensor 1 \"x\" int32 1 const=[1]\n"
     "tensor 2 \"b\" uint8 1x3x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 2\n"
     "op 0 MEAN in=[0 1] out=[2]\n",
     "tensor 3 \"b/ones\" uint8 1x2x1x1 scale=0.5 zero=0 const=[1 1]\n"
     "tensor 4 \"b/half\" int32 1 scale=0.25 zero=0 const=[0]\n"
     "tensor 5 \"b/image\" uint8 1x1x3x1 scale=0.5 zero=3\n"
     "tensor 6 \"b/shape\" int32 3 const=[1 3 1]\n"
     "op 0 DEPTHWISE_CONV_2D in=[0 3 4] out=[5] padding=valid\n"
     "op 1 RESHAPE in=[5 6] out=[2] shape=[1 3 1] source=0\n",
     "MEAN becomes DEPTHWISE_CONV_2D 2x1"},
    // Rounds half a step away from 0 on both sides of it: bytes from 3 - 128 up, and from 127 down.
    {"lower_resize_as_conv",
     "tensor 0 \"a\" int8 1x1x2x1 scale=0.5 zero=3\n"
     "tensor 1 \"s\" int32 2 const=[1 4]\n"
     "tensor 2 \"b\" int8 1x1x4x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 2\n"
     "op 0 RESIZE_BILINEAR in=[0 1] out=[2] half_pixel_centers=true\n",
     "tensor 3 \"a/planes\" int8 1x1x1x2 scale=0.5 zero=3\n"
     "tensor 4 \"a/pixels\" int8 1x1x1x2 scale=0.5 zero=3\n"
     "tensor 5 \"a/planes/order\" int32 4 const=[0 3 1 2]\n"
     "tensor 6 \"a/pixels/shape\" int32 4 const=[1 1 1 2]\n"
     "tensor 7 \"b/pixels\" int8 1x1x1x4 scale=0.5 zero=3\n"
     "tensor 8 \"b/above\" int8 1x1x1x4 scale=0.5 zero=-125\n"
     "tensor 9 \"b/below\" int8 1x1x1x4 scale=0.5 zero=127\n"
     "tensor 10 \"b/above/parts\" int8 4x1x1x2 scale=0.0625 zero=0 const=[16 0 12 4 4 12 0 16]\n"
     "tensor 11 \"b/above/bias\" int32 4 scale=0.03125 zero=0 const=[1 1 1 1]\n"
     "tensor 12 \"b/below/parts\" int8 4x1x1x2 scale=0.25 zero=0 const=[4 0 3 1 1 3 0 4]\n"
     "tensor 13 \"b/below/bias\" int32 4 scale=0.125 zero=0 const=[12 12 12 12]\n"
     "tensor 14 \"b/planes\" int8 1x1x1x4 scale=0.5 zero=3\n"
     "tensor 15 \"b/planes/shape\" int32 4 const=[1 1 1 4]\n"
     "tensor 16 \"b/order\" int32 4 const=[0 2 3 1]\n"
     "op 0 TRANSPOSE in=[0 5] out=[3]\n"
     "op 1 RESHAPE in=[3 6] out=[4] shape=[1 1 1 2] source=0\n"
     "op 2 CONV_2D in=[4 10 11] out=[8] padding=valid source=0\n"
     "op 3 CONV_2D in=[4 12 13] out=[9] padding=valid source=0\n"
     "op 4 ADD in=[8 9] out=[7] source=0\n"
     "op 5 RESHAPE in=[7 15] out=[14] shape=[1 1 1 4] source=0\n"
     "op 6 TRANSPOSE in=[14 16] out=[2] source=0\n",
     "RESIZE_BILINEAR becomes two CONV_2D 1x1 of 2 channels and ADD"},
    {"flatten_in_dense",
     "tensor 0 \"a\" int8 1x2x1x2 scale=0.5 zero=3\n"
     "tensor 1 \"s\" int32 2 const=[1 4]\n"
     "tensor 2 \"b\" int8 1x4 scale=0.5 zero=3\n"
     "tensor 3 \"w\" int8 1x4 scale=0.5 zero=0 const=[1 2 3 4]\n"
     "tensor 4 \"c\" int8 1x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 4\n"
     "op 0 RESHAPE in=[0 1] out=[2]\n"
     "op 1 FULLY_CONNECTED in=[2 3] out=[4]\n",
     "op 0 FULLY_CONNECTED in=[0 3] out=[4] source=1\n", "RESHAPE into FULLY_CONNECTED"},
    {"lower_concat_axis",
     "tensor 0 \"a\" uint8 1x2x1x2 scale=0.5 zero=3\n"
     "tensor 1 \"b\" uint8 1x1x1x2 scale=0.5 zero=3\n"
     "tensor 2 \"c\" uint8 1x3x1x2 scale=0.5 zero=3\n"
     "inputs 0 1\noutputs 2\n"
     "op 0 CONCATENATION in=[0 1] out=[2] axis=1\n",
     "tensor 3 \"c/flat\" uint8 1x1x1x6 scale=0.5 zero=3\n"
     "tensor 4 \"a/flat\" uint8 1x1x1x4 scale=0.5 zero=3\n"
     "tensor 5 \"b/flat\" uint8 1x1x1x2 scale=0.5 zero=3\n"
     "tensor 6 \"a/flat/shape\" int32 4 const=[1 1 1 4]\n"
     "tensor 7 \"b/flat/shape\" int32 4 const=[1 1 1 2]\n"
     "tensor 8 \"c/shape\" int32 4 const=[1 3 1 2]\n"
     "op 0 RESHAPE in=[0 6] out=[4] shape=[1 1 1 4]\n"
     "op 1 RESHAPE in=[1 7] out=[5] shape=[1 1 1 2] source=0\n"
     "op 2 CONCATENATION in=[4 5] out=[3] axis=3 source=0\n"
     "op 3 RESHAPE in=[3 8] out=[2] shape=[1 3 1 2] source=0\n",
     "CONCATENATION along axis 1 becomes CONCATENATION of channels"},
    {"lower_concat_axis",
     "tensor 0 \"a\" uint8 1x2x3 scale=0.5 zero=3\n"
     "tensor 1 \"begin\" int32 3 const=[0 1 0]\n"
     "tensor 2 \"size\" int32 3 const=[1 1 3]\n"
     "tensor 3 \"b\" uint8 1x1x3 scale=0.5 zero=3\n"
     "inputs 0\noutputs 3\n"
     "op 0 SLICE in=[0 1 2] out=[3]\n",
     "tensor 4 \"a/flat\" uint8 1x1x1x6 scale=0.5 zero=3\n"
     "tensor 5 \"a/flat/shape\" int32 4 const=[1 1 1 6]\n"
     "tensor 6 \"a/flat/0\" uint8 1x1x1x3 scale=0.5 zero=3\n"
     "tensor 7 \"a/flat/1\" uint8 1x1x1x3 scale=0.5 zero=3\n"
     "tensor 8 \"b/shape\" int32 3 const=[1 1 3]\n"
     "tensor 9 \"a/sizes\" int32 2 const=[3 3]\n"
     "tensor 10 \"a/axis\" int32 1 const=[3]\n"
     "op 0 RESHAPE in=[0 5] out=[4] shape=[1 1 1 6]\n"
     "op 1 SPLIT_V in=[4 9 10] out=[6 7] count=2 source=0\n"
     "op 2 RESHAPE in=[7 8] out=[3] shape=[1 1 3] source=0\n",
     "SLICE of what follows each other becomes SPLIT_V of channels"},
    {"copy_constants",
     "tensor 0 \"a\" uint8 1x1x2x1 scale=0.5 zero=3\n"
     "tensor 1 \"b\" uint8 1x1x2x1 scale=0.5 zero=3\n"
     "tensor 2 \"c\" uint8 1x1x2x1 scale=0.5 zero=3 const=[1 2]\n"
     "tensor 3 \"d\" uint8 1x1x2x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 3\n"
     "op 0 ADD in=[0 0] out=[1]\n"
     "op 1 ADD in=[1 2] out=[3]\n",
     "tensor 4 \"c/copy\" uint8 1x1x2x1 scale=0.5 zero=3\n"
     "tensor 5 \"c/copy/shape\" int32 4 const=[1 1 2 1]\n"
     "op 0 ADD in=[0 0] out=[1]\n"
     "op 1 RESHAPE in=[2 5] out=[4] shape=[1 1 2 1]\n"
     "op 2 ADD in=[1 4] out=[3] source=1\n",
     "the CPU writes the constant of ADD as a tensor"},
    {"lower_tile_as_resize",
     "tensor 0 \"a\" uint8 1x2x3x1 scale=0.5 zero=3\n"
     "tensor 1 \"b\" uint8 1x2x1x3x1 scale=0.5 zero=3\n"
     "tensor 2 \"m\" int32 5 const=[1 1 2 1 1]\n"
     "tensor 3 \"c\" uint8 1x2x2x3x1 scale=0.5 zero=3\n"
     "tensor 4 \"d\" uint8 1x4x3x1x1 scale=0.5 zero=3\n"
     "tensor 5 \"n\" int32 5 const=[1 1 1 3 1]\n"
     "tensor 6 \"e\" uint8 1x4x3x3x1 scale=0.5 zero=3\n"
     "tensor 7 \"f\" uint8 1x4x9x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 7\n"
     "op 0 RESHAPE in=[0] out=[1] shape=[1 2 1 3 1]\n"
     "op 1 TILE in=[1 2] out=[3]\n"
     "op 2 RESHAPE in=[3] out=[4] shape=[1 4 3 1 1]\n"
     "op 3 TILE in=[4 5] out=[6]\n"
     "op 4 RESHAPE in=[6] out=[7] shape=[1 4 9 1]\n",
     "tensor 8 \"f/size\" int32 2 const=[4 9]\n"
     "op 0 RESIZE_NEAREST_NEIGHBOR in=[0 8] out=[7] source=4\n",
     "TILEs that repeat rows and pixels become RESIZE_NEAREST_NEIGHBOR"},
    {"lower_rescale_as_depthwise",
     "tensor 0 \"a\" int8 1x1x1x1 scale=0.5 zero=3\n"
     "tensor 1 \"b\" int8 1x1x1x1 scale=0.25 zero=-4\n"
     "tensor 2 \"w\" int8 1x1x1x1 scale=0.5 zero=0 const=[2]\n"
     "tensor 3 \"c\" int8 1x1x1x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 3\n"
     "op 0 QUANTIZE in=[0] out=[1]\n"
     "op 1 CONV_2D in=[1 2] out=[3]\n",
     "tensor 4 \"b/factors\" int8 1x1x1x1 scale=1 zero=0 const=[1]\n"
     "op 0 DEPTHWISE_CONV_2D in=[0 4 -] out=[1] padding=valid\n"
     "op 1 CONV_2D in=[1 2] out=[3]\n",
     "QUANTIZE becomes DEPTHWISE_CONV_2D 1x1"},
    {"merge_transposes",
     "tensor 0 \"a\" uint8 1x2x3x4 scale=0.5 zero=3\n"
     "tensor 1 \"p\" int32 4 const=[0 3 1 2]\n"
     "tensor 2 \"b\" uint8 1x4x2x3 scale=0.5 zero=3\n"
     "tensor 3 \"q\" int32 4 const=[0 2 3 1]\n"
     "tensor 4 \"c\" uint8 1x2x3x4 scale=0.5 zero=3\n"
     "tensor 5 \"d\" uint8 1x2x3x4 scale=0.5 zero=3\n"
     "inputs 0\noutputs 5\n"
     "op 0 TRANSPOSE in=[0 1] out=[2]\n"
     "op 1 TRANSPOSE in=[2 3] out=[4]\n"
     "op 2 RELU in=[4] out=[5]\n",
     "op 0 RELU in=[0] out=[5] source=2\n", "two TRANSPOSE cancel out"},
    {"merge_transposes",
     "tensor 0 \"a\" uint8 1x2x3x4 scale=0.5 zero=3\n"
     "tensor 1 \"p\" int32 4 const=[0 -1 1 2]\n"
     "tensor 2 \"b\" uint8 1x4x2x3 scale=0.5 zero=3\n"
     "tensor 3 \"q\" int32 4 const=[0 2 -1 1]\n"
     "tensor 4 \"c\" uint8 1x2x3x4 scale=0.5 zero=3\n"
     "tensor 5 \"d\" uint8 1x2x3x4 scale=0.5 zero=3\n"
     "inputs 0\noutputs 5\n"
     "op 0 TRANSPOSE in=[0 1] out=[2]\n"
     "op 1 TRANSPOSE in=[2 3] out=[4]\n"
     "op 2 RELU in=[4] out=[5]\n",
     "op 0 RELU in=[0] out=[5] source=2\n", "two TRANSPOSE cancel out"},
    {"merge_reshapes",
     "tensor 0 \"a\" uint8 1x1x1x4 scale=0.5 zero=3\n"
     "tensor 1 \"b\" uint8 1x4 scale=0.5 zero=3\n"
     "inputs 0\noutputs 1\n"
     "op 0 SQUEEZE in=[0] out=[1] axes=[1 2]\n",
     "tensor 2 \"b/shape\" int32 2 const=[1 4]\n"
     "op 0 RESHAPE in=[0 2] out=[1] shape=[1 4]\n",
     "SQUEEZE becomes RESHAPE"},
    {"merge_quantizes",
     "tensor 0 \"a\" uint8 1x4 scale=0.5 zero=131\n"
     "tensor 1 \"b\" int8 1x4 scale=0.5 zero=3\n"
     "tensor 2 \"c\" int8 1x4 scale=0.25 zero=7\n"
     "inputs 0\noutputs 2\n"
     "op 0 QUANTIZE in=[0] out=[1]\n"
     "op 1 QUANTIZE in=[1] out=[2]\n",
     "op 0 QUANTIZE in=[0] out=[2] source=1\n", "two QUANTIZE become one"},
    {"merge_quantizes",
     "tensor 0 \"a\" uint8 1x1x1x4 scale=0.5 zero=3\n"
     "tensor 1 \"b\" float32 1x1x1x4\n"
     "tensor 2 \"c\" float32 1x2x2x1\n"
     "inputs 0\noutputs 2\n"
     "op 0 DEQUANTIZE in=[0] out=[1]\n"
     "op 1 DEPTH_TO_SPACE in=[1] out=[2] block_size=2\n",
     "tensor 3 \"a/moved\" uint8 1x2x2x1 scale=0.5 zero=3\n"
     "op 0 DEPTH_TO_SPACE in=[0] out=[3] block_size=2 source=1\n"
     "op 1 DEQUANTIZE in=[3] out=[2]\n",
     "DEPTH_TO_SPACE moves bytes, before DEQUANTIZE"},
    {"remove_strides",
     "tensor 0 \"a\" uint8 1x2x2x1 scale=0.5 zero=3\n"
     "tensor 1 \"w\" uint8 1x2x2x1 scale=0.5 zero=3 const=[1 2 3 4]\n"
     "tensor 2 \"b\" uint8 1x1x1x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 2\n"
     "op 0 CONV_2D in=[0 1] out=[2] padding=valid stride_h=3 stride_w=3\n",
     "op 0 CONV_2D in=[0 1] out=[2] padding=valid\n", "CONV_2D of one window needs no stride"},
    {"remove_strides",
     "tensor 0 \"a\" uint8 1x2x5x1 scale=0.5 zero=3\n"
     "tensor 1 \"w\" uint8 1x2x2x1 scale=0.5 zero=3 const=[1 2 3 4]\n"
     "tensor 2 \"b\" uint8 1x1x2x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 2\n"
     "op 0 CONV_2D in=[0 1] out=[2] padding=valid stride_h=3 stride_w=2\n",
     "op 0 CONV_2D in=[0 1] out=[2] padding=valid stride_w=2\n",
     "CONV_2D of one row or column of windows: strides of 1x2"},
    {"fold_constants",
     "tensor 0 \"a\" uint8 1x4 scale=0.5 zero=3\n"
     "tensor 1 \"k\" uint8 1x4 scale=0.5 zero=3 const=[1 2 3 4]\n"
     "tensor 2 \"r\" uint8 1x4 scale=0.5 zero=3\n"
     "tensor 3 \"b\" uint8 1x4 scale=0.5 zero=3\n"
     "inputs 0\noutputs 3\n"
     "op 0 RELU in=[1] out=[2]\n"
     "op 1 MAXIMUM in=[0 2] out=[3]\n",
     "tensor 4 \"r/constant\" uint8 1x4 scale=0.5 zero=3 const=[3 3 3 4]\n"
     "op 0 MAXIMUM in=[0 4] out=[3] source=1\n",
     "RELU of constants"},
    {"lower_dense_as_conv",
     "tensor 0 \"a\" uint8 2x2 scale=0.5 zero=3\n"
     "tensor 1 \"w\" uint8 1x2 scale=0.5 zero=3 const=[1 2]\n"
     "tensor 2 \"b\" uint8 2x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 2\n"
     "op 0 FULLY_CONNECTED in=[0 1] out=[2]\n",
     "tensor 3 \"a/pixels\" uint8 1x2x1x2 scale=0.5 zero=3\n"
     "tensor 4 \"w/1x1\" uint8 1x1x1x2 scale=0.5 zero=3 const=[1 2]\n"
     "tensor 5 \"b/pixels\" uint8 1x2x1x1 scale=0.5 zero=3\n"
     "tensor 6 \"a/pixels/shape\" int32 4 const=[1 2 1 2]\n"
     "tensor 7 \"b/shape\" int32 2 const=[2 1]\n"
     "op 0 RESHAPE in=[0 6] out=[3] shape=[1 2 1 2]\n"
     "op 1 CONV_2D in=[3 4 -] out=[5] padding=valid source=0\n"
     "op 2 RESHAPE in=[5 7] out=[2] shape=[2 1] source=0\n",
     "FULLY_CONNECTED of 2 rows becomes CONV_2D 1x1"},
    // Square if possible.
    {"lower_dense_as_conv",
     "tensor 0 \"a\" uint8 3x3x2 scale=0.5 zero=3\n"
     "tensor 1 \"w\" uint8 1x2 scale=0.5 zero=3 const=[1 2]\n"
     "tensor 2 \"b\" uint8 9x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 2\n"
     "op 0 FULLY_CONNECTED in=[0 1] out=[2]\n",
     "tensor 3 \"a/pixels\" uint8 1x3x3x2 scale=0.5 zero=3\n"
     "tensor 4 \"w/1x1\" uint8 1x1x1x2 scale=0.5 zero=3 const=[1 2]\n"
     "tensor 5 \"b/pixels\" uint8 1x3x3x1 scale=0.5 zero=3\n"
     "tensor 6 \"a/pixels/shape\" int32 4 const=[1 3 3 2]\n"
     "tensor 7 \"b/shape\" int32 2 const=[9 1]\n"
     "op 0 RESHAPE in=[0 6] out=[3] shape=[1 3 3 2]\n"
     "op 1 CONV_2D in=[3 4 -] out=[5] padding=valid source=0\n"
     "op 2 RESHAPE in=[5 7] out=[2] shape=[9 1] source=0\n",
     "FULLY_CONNECTED of 9 rows becomes CONV_2D 1x1"},
    // The two multiply differently: 0.1 * 0.3 / 0.7 is not the same number.
    {"lower_dense_as_conv",
     "tensor 0 \"a\" int8 2x2 scale=0.1 zero=3\n"
     "tensor 1 \"w\" int8 1x2 scale=0.3 const=[1 2]\n"
     "tensor 2 \"b\" int8 2x1 scale=0.7 zero=3\n"
     "inputs 0\noutputs 2\n"
     "op 0 FULLY_CONNECTED in=[0 1] out=[2]\n",
     "tensor 3 \"a/pixels\" int8 1x2x1x2 scale=0.1 zero=3\n"
     "tensor 4 \"w/1x1\" int8 1x1x1x2 scale=0.3 zero=0 const=[1 2]\n"
     "tensor 5 \"b/pixels\" int8 1x2x1x1 scale=0.7 zero=3\n"
     "tensor 6 \"a/pixels/shape\" int32 4 const=[1 2 1 2]\n"
     "tensor 7 \"b/shape\" int32 2 const=[2 1]\n"
     "op 0 RESHAPE in=[0 6] out=[3] shape=[1 2 1 2]\n"
     "op 1 CONV_2D in=[3 4 -] out=[5] padding=valid float_product=true source=0\n"
     "op 2 RESHAPE in=[5 7] out=[2] shape=[2 1] source=0\n",
     "FULLY_CONNECTED of 2 rows becomes CONV_2D 1x1"},
    {"split_batches",
     "tensor 0 \"a\" uint8 2x1x1x2 scale=0.5 zero=3\n"
     "tensor 1 \"w\" uint8 1x1x1x2 scale=0.5 zero=3 const=[1 2]\n"
     "tensor 2 \"b\" uint8 2x1x1x1 scale=0.5 zero=3\n"
     "tensor 3 \"c\" uint8 2x1x1x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 3\n"
     "op 0 CONV_2D in=[0 1] out=[2]\n"
     "op 1 ADD in=[2 2] out=[3]\n",
     "tensor 4 \"a/axis\" int32 scalar const=[0]\n"
     "tensor 5 \"a/image0\" uint8 1x1x1x2 scale=0.5 zero=3\n"
     "tensor 6 \"a/image1\" uint8 1x1x1x2 scale=0.5 zero=3\n"
     "tensor 7 \"b/image0\" uint8 1x1x1x1 scale=0.5 zero=3\n"
     "tensor 8 \"b/image1\" uint8 1x1x1x1 scale=0.5 zero=3\n"
     "tensor 9 \"c/image0\" uint8 1x1x1x1 scale=0.5 zero=3\n"
     "tensor 10 \"c/image1\" uint8 1x1x1x1 scale=0.5 zero=3\n"
     "op 0 SPLIT in=[4 0] out=[5 6] count=2\n"
     "op 1 CONV_2D in=[5 1] out=[7] source=0\n"
     "op 2 CONV_2D in=[6 1] out=[8] source=0\n"
     "op 3 ADD in=[7 7] out=[9] source=1\n"
     "op 4 ADD in=[8 8] out=[10] source=1\n"
     "op 5 CONCATENATION in=[9 10] out=[3] source=1\n",
     "CONV_2D of 2 images becomes one for eachADD of 2 images becomes one for each"},
    // 3x3 of stride 2, padding `same`: rows of phase 0 read the pixel before theirs by filter row 2.
    {"lower_transpose_conv",
     "tensor 0 \"s\" int32 4 const=[1 4 2 1]\n"
     "tensor 1 \"w\" int8 1x3x1x1 scale=0.5 zero=7 const=[1 2 3]\n"
     "tensor 2 \"a\" int8 1x2x1x1 scale=0.5 zero=3\n"
     "tensor 3 \"b\" int8 1x4x2x1 scale=0.5 zero=3\n"
     "inputs 2\noutputs 3\n"
     "op 0 TRANSPOSE_CONV in=[0 1 2] out=[3] stride_h=2 stride_w=2\n",
     "tensor 4 \"w/phases\" int8 4x3x1x1 scale=0.5 zero=7 const=[3 1 7 7 7 7 7 2 7 7 7 7]\n"
     "tensor 5 \"b/phases\" int8 1x2x1x4 scale=0.5 zero=3\n"
     "op 0 CONV_2D in=[2 4 -] out=[5]\n"
     "op 1 DEPTH_TO_SPACE in=[5] out=[3] block_size=2 source=0\n",
     "TRANSPOSE_CONV 3x1 becomes CONV_2D 3x1 and DEPTH_TO_SPACE"},
    {"lower_max_pool_as_sums",
     "tensor 0 \"a\" int8 1x2x1x1 scale=0.5 zero=3\n"
     "tensor 1 \"b\" int8 1x1x1x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 1\n"
     "op 0 MAX_POOL_2D in=[0] out=[1] padding=valid filter_h=2\n",
     "tensor 2 \"b/pixel\" int8 1x1x1x1 scale=0.5 zero=3\n"
     "tensor 3 \"b/pixel/picks\" int8 1x2x1x1 scale=0.015625 zero=0 const=[64 0]\n"
     "tensor 4 \"b/more\" int8 1x1x1x1 scale=0.5 zero=-128\n"
     "tensor 5 \"b/more/picks\" int8 1x2x1x1 scale=0.015625 zero=0 const=[-64 64]\n"
     "op 0 DEPTHWISE_CONV_2D in=[0 3 -] out=[2] padding=valid\n"
     "op 1 DEPTHWISE_CONV_2D in=[0 5 -] out=[4] padding=valid source=0\n"
     "op 2 ADD in=[2 4] out=[1] source=0\n",
     "MAX_POOL_2D 2x1 becomes 3 convolutions and sums"},
    {"lower_leaky_relu_as_sum",
     "tensor 0 \"a\" uint8 1x2x1x1 scale=0.5 zero=3\n"
     "tensor 1 \"b\" uint8 1x2x1x1 scale=0.25 zero=9\n"
     "inputs 0\noutputs 1\n"
     "op 0 LEAKY_RELU in=[0] out=[1] alpha=0.5\n",
     "tensor 2 \"b/above\" uint8 1x2x1x1 scale=0.25 zero=0\n"
     "tensor 3 \"b/above/factors\" uint8 1x1x1x1 scale=0.015625 zero=0 const=[64]\n"
     "tensor 4 \"b/below\" uint8 1x2x1x1 scale=0.25 zero=255\n"
     "tensor 5 \"b/below/factors\" uint8 1x1x1x1 scale=0.0078125 zero=0 const=[64]\n"
     "op 0 DEPTHWISE_CONV_2D in=[0 3 -] out=[2] padding=valid\n"
     "op 1 DEPTHWISE_CONV_2D in=[0 5 -] out=[4] padding=valid source=0\n"
     "op 2 ADD in=[2 4] out=[1] source=0\n",
     "LEAKY_RELU becomes the ADD of two DEPTHWISE_CONV_2D 1x1"},
    {"lower_sub_as_sum",
     "tensor 0 \"a\" int8 1x2x1x1 scale=0.5 zero=3\n"
     "tensor 1 \"b\" int8 1x2x1x1 scale=0.5 zero=3\n"
     "tensor 2 \"c\" int8 1x2x1x1 scale=0.5 zero=3\n"
     "inputs 0 1\noutputs 2\n"
     "op 0 MAXIMUM in=[0 1] out=[2]\n",
     "tensor 3 \"c/difference\" int8 1x2x1x1 scale=0.5 zero=-128\n"
     "tensor 4 \"b/negated\" int8 1x2x1x1 scale=0.5 zero=-4\n"
     "tensor 5 \"b/negated/factors\" int8 1x1x1x1 scale=0.015625 zero=0 const=[-64]\n"
     "op 0 DEPTHWISE_CONV_2D in=[1 5 -] out=[4] padding=valid\n"
     "op 1 ADD in=[0 4] out=[3] source=0\n"
     "op 2 ADD in=[1 3] out=[2] source=0\n",
     "MAXIMUM becomes two ADD and the DEPTHWISE_CONV_2D that negates"},
    {"rescale_concat",
     "tensor 0 \"a\" uint8 1x1x1x1 scale=0.5 zero=3\n"
     "tensor 1 \"b\" uint8 1x1x1x2 scale=0.5 zero=4\n"
     "tensor 2 \"c\" uint8 1x1x1x3 scale=0.5 zero=3\n"
     "inputs 0 1\noutputs 2\n"
     "op 0 CONCATENATION in=[0 1] out=[2] axis=3\n",
     "tensor 3 \"b/rescaled\" uint8 1x1x1x2 scale=0.5 zero=3\n"
     "tensor 4 \"b/rescaled/factors\" uint8 1x1x1x2 scale=0.015625 zero=0 const=[64 64]\n"
     "op 0 DEPTHWISE_CONV_2D in=[1 4 -] out=[3] padding=valid\n"
     "op 1 CONCATENATION in=[0 3] out=[2] axis=3 source=0\n",
     "CONCATENATION of other scales becomes one of 1 DEPTHWISE_CONV_2D 1x1"},
    {"fuse_byte_functions",  // SiLU, of one channel
     "tensor 0 \"a\" uint8 1x1x2x1 scale=0.0625 zero=128\n"
     "tensor 1 \"s\" uint8 1x1x2x1 scale=0.00390625 zero=0\n"
     "tensor 2 \"y\" uint8 1x1x2x1 scale=0.0625 zero=128\n"
     "inputs 0\noutputs 2\n"
     "op 0 LOGISTIC in=[0] out=[1]\n"
     "op 1 MUL in=[0 1] out=[2]\n",
     "tensor 3 \"y/table\" uint8 256 const=xxh3:d3522fcc931d6d01:256\n"
     "op 0 BYTE_TABLE in=[0 3] out=[2] source=1\n",
     "LOGISTIC, MUL: one table of 256 bytes"},
    {"fuse_byte_functions",  // tensors with other readers stay; HARD_SWISH in parts
     "tensor 0 \"a\" int8 1x1x2x1 scale=0.0625 zero=0\n"
     "tensor 1 \"three\" int8 1 scale=0.03125 zero=0 const=[96]\n"
     "tensor 2 \"b\" int8 1x1x2x1 scale=0.0625 zero=0\n"
     "tensor 3 \"c\" int8 1x1x2x1 scale=0.03125 zero=-128\n"
     "tensor 4 \"y\" int8 1x1x2x1 scale=0.25 zero=-64\n"
     "inputs 0\noutputs 4 2\n"
     "op 0 ADD in=[0 1] out=[2]\n"
     "op 1 RELU6 in=[2] out=[3]\n"
     "op 2 MUL in=[3 0] out=[4]\n",
     "tensor 5 \"y/table\" int8 256 const=xxh3:aa2e678aef105341:256\n"
     "op 0 ADD in=[0 1] out=[2]\n"
     "op 1 BYTE_TABLE in=[0 5] out=[4] source=2\n",
     "ADD, RELU6, MUL: one table of 256 bytes"},
    {"fuse_byte_functions",  // floats in between
     "tensor 0 \"a\" int8 1x1x2x1 scale=0.0625 zero=0\n"
     "tensor 1 \"f\" float32 1x1x2x1\n"
     "tensor 2 \"g\" float32 1x1x2x1\n"
     "tensor 3 \"y\" int8 1x1x2x1 scale=0.0078125 zero=0\n"
     "inputs 0\noutputs 3\n"
     "op 0 DEQUANTIZE in=[0] out=[1]\n"
     "op 1 SIN in=[1] out=[2]\n"
     "op 2 QUANTIZE in=[2] out=[3]\n",
     "tensor 4 \"y/table\" int8 256 const=xxh3:0014a7cb3ca3dead:256\n"
     "op 0 BYTE_TABLE in=[0 4] out=[3] source=2\n",
     "DEQUANTIZE, SIN, QUANTIZE: one table of 256 bytes"},
};
inline const std::vector<Row> kRows = [] {
  std::vector<Row> out(std::begin(kOtherRows), std::end(kOtherRows));
  out.insert(out.end(), std::begin(kRowsOfMoves), std::end(kRowsOfMoves));
  return out;
}();

}  // namespace skillet::passes
