// Graphs as text before each pass and after it, for passes that move pixels and channels.
// Called by texts.h.
// Must not know: how they are compared.
#pragma once

namespace skillet::passes {

struct Row {
  const char *pass, *before, *after, *said;  // tensors and ops; ops and added tensors
};
inline const Row kRowsOfMoves[] = {
    {"split_batches",
     "tensor 0 \"s\" int32 4 const=[2 2 2 1]\n"
     "tensor 1 \"w\" int8 1x1x1x1 scale=0.5 zero=7 const=[1]\n"
     "tensor 2 \"a\" int8 2x2x2x1 scale=0.5 zero=3\n"
     "tensor 3 \"b\" int8 2x2x2x1 scale=0.5 zero=3\n"
     "inputs 2\noutputs 3\n"
     "op 0 TRANSPOSE_CONV in=[0 1 2] out=[3]\n",
     "tensor 4 \"s\" int32 4 const=[1 2 2 1]\n"
     "tensor 5 \"a/axis\" int32 scalar const=[0]\n"
     "tensor 6 \"a/image0\" int8 1x2x2x1 scale=0.5 zero=3\n"
     "tensor 7 \"a/image1\" int8 1x2x2x1 scale=0.5 zero=3\n"
     "tensor 8 \"b/image0\" int8 1x2x2x1 scale=0.5 zero=3\n"
     "tensor 9 \"b/image1\" int8 1x2x2x1 scale=0.5 zero=3\n"
     "op 0 SPLIT in=[5 2] out=[6 7] count=2\n"
     "op 1 TRANSPOSE_CONV in=[4 1 6] out=[8] source=0\n"
     "op 2 TRANSPOSE_CONV in=[4 1 7] out=[9] source=0\n"
     "op 3 CONCATENATION in=[8 9] out=[3] source=0\n",
     "TRANSPOSE_CONV of 2 images becomes one for each"},
    {"split_batches",
     "tensor 0 \"a\" int8 2x2x2x1 scale=0.5 zero=3\n"
     "tensor 1 \"axes\" int32 2 const=[1 2]\n"
     "tensor 2 \"b\" int8 2x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 2\n"
     "op 0 MEAN in=[0 1] out=[2]\n",
     "tensor 3 \"a/axis\" int32 scalar const=[0]\n"
     "tensor 4 \"a/image0\" int8 1x2x2x1 scale=0.5 zero=3\n"
     "tensor 5 \"a/image1\" int8 1x2x2x1 scale=0.5 zero=3\n"
     "tensor 6 \"b/image0\" int8 1x1 scale=0.5 zero=3\n"
     "tensor 7 \"b/image1\" int8 1x1 scale=0.5 zero=3\n"
     "op 0 SPLIT in=[3 0] out=[4 5] count=2\n"
     "op 1 MEAN in=[4 1] out=[6] source=0\n"
     "op 2 MEAN in=[5 1] out=[7] source=0\n"
     "op 3 CONCATENATION in=[6 7] out=[2] source=0\n",
     "MEAN of 2 images becomes one for each"},
    {"lower_dilation_as_phases",
     "tensor 0 \"a\" int8 1x1x4x1 scale=0.5 zero=3\n"
     "tensor 1 \"w\" int8 1x3x3x1 scale=0.5 zero=0 const=[1 2 3 4 5 6 7 8 9]\n"
     "tensor 2 \"b\" int8 1x1x4x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 2\n"
     "op 0 CONV_2D in=[0 1] out=[2] dilation_h=2 dilation_w=2\n",
     "tensor 3 \"w/middle\" int8 1x1x3x1 scale=0.5 zero=0 const=[4 5 6]\n"
     "tensor 4 \"a/phases\" int8 1x1x5x1 scale=0.5 zero=3\n"
     "tensor 5 \"b/phases\" int8 1x1x5x1 scale=0.5 zero=3\n"
     "tensor 6 \"a/phases/rows\" int8 1x4x1x1 scale=0.5 zero=3\n"
     "tensor 7 \"a/phases/rows/order\" int32 4 const=[0 2 3 1]\n"
     "tensor 8 \"a/phases/by_rows\" int8 1x4x1x1 scale=0.5 zero=3\n"
     "tensor 9 \"a/phases/by_rows/parts\" int8 1x1x1x1 scale=0.015625 zero=0 const=[64]\n"
     "tensor 10 \"a/phases/columns\" int8 1x1x1x4 scale=0.5 zero=3\n"
     "tensor 11 \"a/phases/columns/order\" int32 4 const=[0 2 3 1]\n"
     "tensor 12 \"a/phases/by_columns\" int8 1x1x1x5 scale=0.5 zero=3\n"
     "tensor 13 \"a/phases/by_columns/parts\" int8 5x1x1x4 scale=0.015625 zero=0 const=xxh3:8b14eaccc4bae1ea:20\n"
     "tensor 14 \"a/phases/order\" int32 4 const=[0 2 3 1]\n"
     "tensor 15 \"b/rows\" int8 1x5x1x1 scale=0.5 zero=3\n"
     "tensor 16 \"b/rows/order\" int32 4 const=[0 2 3 1]\n"
     "tensor 17 \"b/by_rows\" int8 1x5x1x1 scale=0.5 zero=3\n"
     "tensor 18 \"b/by_rows/parts\" int8 1x1x1x1 scale=0.015625 zero=0 const=[64]\n"
     "tensor 19 \"b/columns\" int8 1x1x1x5 scale=0.5 zero=3\n"
     "tensor 20 \"b/columns/order\" int32 4 const=[0 2 3 1]\n"
     "tensor 21 \"b/by_columns\" int8 1x1x1x4 scale=0.5 zero=3\n"
     "tensor 22 \"b/by_columns/parts\" int8 4x1x1x5 scale=0.015625 zero=0 const=xxh3:cc8d87d4cb5c7eef:20\n"
     "tensor 23 \"b/order\" int32 4 const=[0 2 3 1]\n"
     "op 0 TRANSPOSE in=[0 7] out=[6]\n"
     "op 1 CONV_2D in=[6 9 -] out=[8] padding=valid source=0\n"
     "op 2 TRANSPOSE in=[8 11] out=[10] source=0\n"
     "op 3 CONV_2D in=[10 13 -] out=[12] padding=valid source=0\n"
     "op 4 TRANSPOSE in=[12 14] out=[4] source=0\n"
     "op 5 CONV_2D in=[4 3] out=[5] source=0\n"
     "op 6 TRANSPOSE in=[5 16] out=[15] source=0\n"
     "op 7 CONV_2D in=[15 18 -] out=[17] padding=valid source=0\n"
     "op 8 TRANSPOSE in=[17 20] out=[19] source=0\n"
     "op 9 CONV_2D in=[19 22 -] out=[21] padding=valid source=0\n"
     "op 10 TRANSPOSE in=[21 23] out=[2] source=0\n",
     "CONV_2D of 3x3 with dilation 2x2 sees the image by 1x3CONV_2D with dilation 1x2 becomes one of 1x5 pixels, side "
     "by "
     "side"},
    {"remove_strides",
     "tensor 0 \"a\" uint8 1x4x8x1 scale=0.5 zero=3\n"
     "tensor 1 \"w\" uint8 1x4x4x1 scale=0.5 zero=3 const=[0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]\n"
     "tensor 2 \"b\" uint8 1x1x2x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 2\n"
     "op 0 CONV_2D in=[0 1] out=[2] padding=valid stride_h=4 stride_w=4\n",
     "tensor 3 \"a/blocks/picks\" uint8 4x2x2x1 scale=1 zero=0 const=[1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1]\n"
     "tensor 4 \"a/blocks\" uint8 1x2x4x4 scale=0.5 zero=3\n"
     "tensor 5 \"w/blocks\" uint8 1x2x2x4 scale=0.5 zero=3 const=[0 1 4 5 2 3 6 7 8 9 12 13 10 11 14 15]\n"
     "op 0 CONV_2D in=[0 3 -] out=[4] padding=valid stride_h=2 stride_w=2\n"
     "op 1 CONV_2D in=[4 5] out=[2] padding=valid stride_h=2 stride_w=2 source=0\n",
     "CONV_2D of stride 4 becomes 2, the last of stride 2"},
    {"remove_strides",
     "tensor 0 \"a\" uint8 1x5x5x1 scale=0.5 zero=3\n"
     "tensor 1 \"w\" uint8 1x2x3x1 scale=0.5 zero=9 const=[1 2 3 4 5 6]\n"
     "tensor 2 \"b\" uint8 1x2x2x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 2\n"
     "op 0 CONV_2D in=[0 1] out=[2] stride_h=4 stride_w=4\n",
     "tensor 3 \"a/blocks/picks\" uint8 4x2x2x1 scale=1 zero=0 const=[1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1]\n"
     "tensor 4 \"a/blocks\" uint8 1x3x3x4 scale=0.5 zero=3\n"
     "tensor 5 \"w/blocks\" uint8 1x1x3x4 scale=0.5 zero=9 const=[9 1 9 4 2 3 5 6 9 9 9 9]\n"
     "op 0 CONV_2D in=[0 3 -] out=[4] stride_h=2 stride_w=2\n"
     "op 1 CONV_2D in=[4 5] out=[2] stride_h=2 stride_w=2 source=0\n",
     "CONV_2D of stride 4 becomes 2, the last of stride 2"},
    {"lower_conv1d",  // taps of the second column of each block, from the previous block on
     "tensor 0 \"a\" int8 1x1x8x1 scale=0.5 zero=3\n"
     "tensor 1 \"w\" int8 1x1x3x1 scale=0.5 zero=7 const=[1 2 3]\n"
     "tensor 2 \"b\" int8 1x1x4x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 2\n"
     "op 0 CONV_2D in=[0 1] out=[2] stride_h=1 stride_w=2 dilation_w=2\n",
     "tensor 3 \"a/blocks\" int8 1x1x4x2 scale=0.5 zero=3\n"
     "tensor 4 \"a/blocks/shape\" int32 4 const=[1 1 4 2]\n"
     "tensor 5 \"w/blocks\" int8 1x1x3x2 scale=0.5 zero=7 const=[7 1 7 2 7 3]\n"
     "op 0 RESHAPE in=[0 4] out=[3] shape=[1 1 4 2]\n"
     "op 1 CONV_2D in=[3 5 -] out=[2] source=0\n",
     "CONV_2D 1x3 becomes CONV_2D of blocks of 2 columns"},
    {"lower_slice_as_conv",
     "tensor 0 \"a\" uint8 1x2x2x1 scale=0.5 zero=3\n"
     "tensor 1 \"b\" uint8 1x1x1x4 scale=0.5 zero=3\n"
     "inputs 0\noutputs 1\n"
     "op 0 SPACE_TO_DEPTH in=[0] out=[1] block_size=2\n",
     "tensor 2 \"b/picks\" uint8 4x2x2x1 scale=1 zero=0 const=[1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1]\n"
     "op 0 CONV_2D in=[0 2 -] out=[1] padding=valid\n",
     "SPACE_TO_DEPTH becomes CONV_2D 2x2"},
    {"lower_slice_as_conv",
     "tensor 0 \"a\" uint8 1x1x2x3 scale=0.5 zero=3\n"
     "tensor 1 \"sizes\" int32 2 const=[1 2]\n"
     "tensor 2 \"axis\" int32 1 const=[3]\n"
     "tensor 3 \"b\" uint8 1x1x2x1 scale=0.5 zero=3\n"
     "tensor 4 \"c\" uint8 1x1x2x2 scale=0.5 zero=3\n"
     "inputs 0\noutputs 3 4\n"
     "op 0 SPLIT_V in=[0 1 2] out=[3 4] count=2\n",
     "tensor 5 \"b/picks\" uint8 1x1x1x3 scale=1 zero=0 const=[1 0 0]\n"
     "tensor 6 \"c/picks\" uint8 2x1x1x3 scale=1 zero=0 const=[0 1 0 0 0 1]\n"
     "op 0 CONV_2D in=[0 5 -] out=[3] padding=valid\n"
     "op 1 CONV_2D in=[0 6 -] out=[4] padding=valid source=0\n",
     "SPLIT_V becomes CONV_2D 1x1, CONV_2D 1x1"},
    {"lower_slice_as_conv",  // of a sequence
     "tensor 0 \"a\" uint8 1x2x3 scale=0.5 zero=3\n"
     "tensor 1 \"sizes\" int32 2 const=[1 2]\n"
     "tensor 2 \"axis\" int32 1 const=[2]\n"
     "tensor 3 \"b\" uint8 1x2x1 scale=0.5 zero=3\n"
     "tensor 4 \"c\" uint8 1x2x2 scale=0.5 zero=3\n"
     "inputs 0\noutputs 3 4\n"
     "op 0 SPLIT_V in=[0 1 2] out=[3 4] count=2\n",
     "tensor 5 \"a/image\" uint8 1x2x1x3 scale=0.5 zero=3\n"
     "tensor 6 \"a/image/shape\" int32 4 const=[1 2 1 3]\n"
     "tensor 7 \"b/image\" uint8 1x2x1x1 scale=0.5 zero=3\n"
     "tensor 8 \"b/image/picks\" uint8 1x1x1x3 scale=1 zero=0 const=[1 0 0]\n"
     "tensor 9 \"b/shape\" int32 3 const=[1 2 1]\n"
     "tensor 10 \"c/image\" uint8 1x2x1x2 scale=0.5 zero=3\n"
     "tensor 11 \"c/image/picks\" uint8 2x1x1x3 scale=1 zero=0 const=[0 1 0 0 0 1]\n"
     "tensor 12 \"c/shape\" int32 3 const=[1 2 2]\n"
     "op 0 RESHAPE in=[0 6] out=[5] shape=[1 2 1 3]\n"
     "op 1 CONV_2D in=[5 8 -] out=[7] padding=valid source=0\n"
     "op 2 RESHAPE in=[7 9] out=[3] shape=[1 2 1] source=0\n"
     "op 3 CONV_2D in=[5 11 -] out=[10] padding=valid source=0\n"
     "op 4 RESHAPE in=[10 12] out=[4] shape=[1 2 2] source=0\n",
     "SPLIT_V becomes CONV_2D 1x1, CONV_2D 1x1"},
    {"lower_slice_as_conv",  // channels 0 1 2 3 as 0 2 1 3
     "tensor 0 \"a\" uint8 1x1x2x4 scale=0.5 zero=3\n"
     "tensor 1 \"s\" int32 5 const=[1 1 2 2 2]\n"
     "tensor 2 \"b\" uint8 1x1x2x2x2 scale=0.5 zero=3\n"
     "tensor 3 \"p\" int32 5 const=[0 1 2 4 3]\n"
     "tensor 4 \"c\" uint8 1x1x2x2x2 scale=0.5 zero=3\n"
     "tensor 5 \"t\" int32 4 const=[1 1 2 4]\n"
     "tensor 6 \"d\" uint8 1x1x2x4 scale=0.5 zero=3\n"
     "inputs 0\noutputs 6\n"
     "op 0 RESHAPE in=[0 1] out=[2]\n"
     "op 1 TRANSPOSE in=[2 3] out=[4]\n"
     "op 2 RESHAPE in=[4 5] out=[6]\n",
     "tensor 7 \"d/picks\" uint8 4x1x1x4 scale=1 zero=0 const=[1 0 0 0 0 0 1 0 0 1 0 0 0 0 0 1]\n"
     "op 0 CONV_2D in=[0 7 -] out=[6] padding=valid source=2\n",
     "3 operations that shuffle channels become CONV_2D 1x1"},
    {"fold_space_to_batch",  // a sequence whose batches two convolutions read
     "tensor 0 \"a\" int8 1x6x1 scale=0.5 zero=3\n"
     "tensor 1 \"s\" int32 1 const=[2]\n"
     "tensor 2 \"p\" int32 1x2 const=[0 0]\n"
     "tensor 3 \"b\" int8 2x3x1 scale=0.5 zero=3\n"
     "tensor 4 \"i\" int8 2x1x3x1 scale=0.5 zero=3\n"
     "tensor 5 \"w\" int8 1x1x2x1 scale=0.5 zero=0 const=[1 2]\n"
     "tensor 6 \"c\" int8 2x1x2x1 scale=0.5 zero=3\n"
     "tensor 7 \"d\" int8 2x2x1 scale=0.5 zero=3\n"
     "tensor 8 \"e\" int8 1x4x1 scale=0.5 zero=3\n"
     "tensor 9 \"f\" int8 2x1x2x1 scale=0.25 zero=3\n"
     "tensor 10 \"g\" int8 2x2x1 scale=0.25 zero=3\n"
     "tensor 11 \"h\" int8 1x4x1 scale=0.25 zero=3\n"
     "tensor 12 \"to_image\" int32 4 const=[2 1 3 1]\n"
     "tensor 13 \"to_rows\" int32 3 const=[2 2 1]\n"
     "inputs 0\noutputs 8 11\n"
     "op 0 SPACE_TO_BATCH_ND in=[0 1 2] out=[3]\n"
     "op 1 RESHAPE in=[3 12] out=[4]\n"
     "op 2 CONV_2D in=[4 5] out=[6] padding=valid\n"
     "op 3 RESHAPE in=[6 13] out=[7]\n"
     "op 4 CONV_2D in=[4 5] out=[9] padding=valid\n"
     "op 5 RESHAPE in=[9 13] out=[10]\n"
     "op 6 BATCH_TO_SPACE_ND in=[7 1 2] out=[8]\n"
     "op 7 BATCH_TO_SPACE_ND in=[10 1 2] out=[11]\n",
     "tensor 14 \"a/image\" int8 1x1x6x1 scale=0.5 zero=3\n"
     "tensor 15 \"e/image\" int8 1x1x4x1 scale=0.5 zero=3\n"
     "tensor 16 \"a/image/shape\" int32 4 const=[1 1 6 1]\n"
     "tensor 17 \"e/shape\" int32 3 const=[1 4 1]\n"
     "tensor 18 \"a/image\" int8 1x1x6x1 scale=0.5 zero=3\n"
     "tensor 19 \"h/image\" int8 1x1x4x1 scale=0.25 zero=3\n"
     "tensor 20 \"a/image/shape\" int32 4 const=[1 1 6 1]\n"
     "tensor 21 \"h/shape\" int32 3 const=[1 4 1]\n"
     "op 0 RESHAPE in=[0 16] out=[14] shape=[1 1 6 1] source=2\n"
     "op 1 CONV_2D in=[14 5] out=[15] padding=valid dilation_w=2 source=2\n"
     "op 2 RESHAPE in=[15 17] out=[8] shape=[1 4 1]\n"
     "op 3 RESHAPE in=[0 20] out=[18] shape=[1 1 6 1] source=4\n"
     "op 4 CONV_2D in=[18 5] out=[19] padding=valid dilation_w=2\n"
     "op 5 RESHAPE in=[19 21] out=[11] shape=[1 4 1] source=4\n",
     "CONV_2D of batches becomes dilation 1x2CONV_2D of batches becomes dilation 1x2"},
    {"lower_slice_as_box",  // the last step of a sequence
     "tensor 0 \"a\" int8 1x3x2 scale=0.5 zero=3\n"
     "tensor 1 \"b\" int32 3 const=[0 -1 0]\n"
     "tensor 2 \"e\" int32 3 const=[0 0 0]\n"
     "tensor 3 \"s\" int32 3 const=[1 1 1]\n"
     "tensor 4 \"c\" int8 1x2 scale=0.5 zero=3\n"
     "inputs 0\noutputs 4\n"
     "op 0 STRIDED_SLICE in=[0 1 2 3] out=[4] begin_mask=5 end_mask=5 shrink_axis_mask=2\n",
     "tensor 5 \"c/box\" int8 1x1x2 scale=0.5 zero=3\n"
     "tensor 6 \"c/box/begin\" int32 3 const=[0 2 0]\n"
     "tensor 7 \"c/box/size\" int32 3 const=[1 1 2]\n"
     "tensor 8 \"c/shape\" int32 2 const=[1 2]\n"
     "op 0 SLICE in=[0 6 7] out=[5]\n"
     "op 1 RESHAPE in=[5 8] out=[4] shape=[1 2] source=0\n",
     "STRIDED_SLICE of a box becomes SLICE"},
    {"slice_before_transpose",  // boxes and classes of a detector
     "tensor 0 \"a\" int8 1x1x2x6 scale=0.5 zero=3\n"
     "tensor 1 \"n\" int32 3 const=[1 2 6]\n"
     "tensor 2 \"b\" int8 1x2x6 scale=0.5 zero=3\n"
     "tensor 3 \"p\" int32 3 const=[0 2 1]\n"
     "tensor 4 \"c\" int8 1x6x2 scale=0.5 zero=3\n"
     "tensor 5 \"e\" int32 3 const=[0 0 0]\n"
     "tensor 6 \"s\" int32 3 const=[1 4 2]\n"
     "tensor 7 \"d\" int8 1x4x2 scale=0.5 zero=3\n"
     "tensor 8 \"m\" int32 4 const=[1 2 2 2]\n"
     "tensor 9 \"f\" int8 1x2x2x2 scale=0.5 zero=3\n"
     "tensor 10 \"q\" int32 4 const=[0 3 1 2]\n"
     "tensor 11 \"g\" int8 1x2x2x2 scale=0.5 zero=3\n"
     "tensor 12 \"t\" int32 3 const=[0 4 0]\n"
     "tensor 13 \"u\" int32 3 const=[1 2 2]\n"
     "tensor 14 \"h\" int8 1x2x2 scale=0.5 zero=3\n"
     "inputs 0\noutputs 11 14\n"
     "op 0 RESHAPE in=[0 1] out=[2] shape=[1 2 6]\n"
     "op 1 TRANSPOSE in=[2 3] out=[4]\n"
     "op 2 SLICE in=[4 5 6] out=[7]\n"
     "op 3 RESHAPE in=[7 8] out=[9] shape=[1 2 2 2]\n"
     "op 4 TRANSPOSE in=[9 10] out=[11]\n"
     "op 5 SLICE in=[4 12 13] out=[14]\n",
     "tensor 15 \"d/whole\" int8 1x2x1x6 scale=0.5 zero=3\n"
     "tensor 16 \"d/taken\" int8 1x2x1x4 scale=0.5 zero=3\n"
     "tensor 17 \"d/before\" int8 1x2x4 scale=0.5 zero=3\n"
     "tensor 18 \"d/whole/shape\" int32 4 const=[1 2 1 6]\n"
     "tensor 19 \"d/taken/begin\" int32 4 const=[0 0 0 0]\n"
     "tensor 20 \"d/taken/size\" int32 4 const=[1 2 1 4]\n"
     "tensor 21 \"d/before/shape\" int32 3 const=[1 2 4]\n"
     "tensor 22 \"d/order\" int32 3 const=[0 2 1]\n"
     "tensor 23 \"g/shape\" int32 4 const=[1 2 2 2]\n"
     "tensor 24 \"h/whole\" int8 1x2x1x6 scale=0.5 zero=3\n"
     "tensor 25 \"h/taken\" int8 1x2x1x2 scale=0.5 zero=3\n"
     "tensor 26 \"h/before\" int8 1x2x2 scale=0.5 zero=3\n"
     "tensor 27 \"h/whole/shape\" int32 4 const=[1 2 1 6]\n"
     "tensor 28 \"h/taken/begin\" int32 4 const=[0 0 0 4]\n"
     "tensor 29 \"h/taken/size\" int32 4 const=[1 2 1 2]\n"
     "tensor 30 \"h/before/shape\" int32 3 const=[1 2 2]\n"
     "tensor 31 \"h/order\" int32 3 const=[0 2 1]\n"
     "op 0 RESHAPE in=[0 1] out=[2] shape=[1 2 6]\n"
     "op 1 RESHAPE in=[2 18] out=[15] shape=[1 2 1 6] source=2\n"
     "op 2 SLICE in=[15 19 20] out=[16]\n"
     "op 3 RESHAPE in=[16 23] out=[11] shape=[1 2 2 2] source=4\n"
     "op 4 RESHAPE in=[2 27] out=[24] shape=[1 2 1 6] source=5\n"
     "op 5 SLICE in=[24 28 29] out=[25]\n"
     "op 6 RESHAPE in=[25 30] out=[26] shape=[1 2 2] source=5\n"
     "op 7 TRANSPOSE in=[26 31] out=[14] source=5\n",
     "SLICE comes before TRANSPOSETRANSPOSE, RESHAPE and TRANSPOSE become RESHAPESLICE comes before TRANSPOSE"},
    {"drop_unit_mul",  // the factor of attention
     "tensor 0 \"a\" int8 1x4 scale=0.5\n"
     "tensor 1 \"b\" int8 1x4 scale=0.00390625 zero=-128\n"
     "tensor 2 \"k\" int8 1 scale=0.25 const=[2]\n"
     "tensor 3 \"c\" int8 1x4 scale=0.001953125 zero=-128\n"
     "tensor 4 \"d\" int8 1x4 scale=0.00390625 zero=-128\n"
     "inputs 0\noutputs 4\n"
     "op 0 SOFTMAX in=[0] out=[1]\n"
     "op 1 MUL in=[1 2] out=[3]\n"
     "op 2 SOFTMAX in=[3] out=[4]\n",
     "tensor 5 \"c/shape\" int32 2 const=[1 4]\n"
     "op 0 SOFTMAX in=[0] out=[1]\n"
     "op 1 RESHAPE in=[1 5] out=[3] shape=[1 4]\n"
     "op 2 SOFTMAX in=[3] out=[4]\n",
     "MUL changes no byte, between operations of the CPU"},
    {"repeat_operands",
     "tensor 0 \"a\" uint8 1x2x1x2 scale=0.5 zero=3\n"
     "tensor 1 \"b\" uint8 1x2x1x1 scale=0.25 zero=4\n"
     "tensor 2 \"c\" uint8 1x2x1x2 scale=0.5 zero=3\n"
     "inputs 0 1\noutputs 2\n"
     "op 0 ADD in=[0 1] out=[2]\n",
     "tensor 3 \"b/channels\" uint8 1x2x1x2 scale=0.25 zero=4\n"
     "tensor 4 \"b/channels/ones\" uint8 2x1x1x1 scale=1 zero=0 const=[1 1]\n"
     "op 0 CONV_2D in=[1 4 -] out=[3] padding=valid\n"
     "op 1 ADD in=[0 3] out=[2] source=0\n",
     "operands of ADD are repeated to 1x2x1x2"},
    {"copy_constants",  // a row for all rows
     "tensor 0 \"a\" uint8 1x2x2x1 scale=0.5 zero=3\n"
     "tensor 1 \"b\" uint8 1x2x2x1 scale=0.5 zero=3\n"
     "tensor 2 \"c\" uint8 2x1 scale=0.5 zero=3 const=[1 2]\n"
     "tensor 3 \"d\" uint8 1x2x2x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 3\n"
     "op 0 ADD in=[0 0] out=[1]\n"
     "op 1 ADD in=[1 2] out=[3]\n",
     "tensor 4 \"c/whole\" uint8 1x2x2x1 scale=0.5 zero=3 const=[1 2 1 2]\n"
     "tensor 5 \"c/whole/copy\" uint8 1x2x2x1 scale=0.5 zero=3\n"
     "tensor 6 \"c/whole/copy/shape\" int32 4 const=[1 2 2 1]\n"
     "op 0 ADD in=[0 0] out=[1]\n"
     "op 1 RESHAPE in=[4 6] out=[5] shape=[1 2 2 1]\n"
     "op 2 ADD in=[1 5] out=[3] source=1\n",
     "the CPU writes the constant of ADD as a tensor"},
    {"fold_channel_order",
     "tensor 0 \"a\" int8 1x1x1x2 scale=0.5 zero=3\n"
     "tensor 1 \"w\" int8 3x1x1x2 scale=[0.5 0.25 0.125] zero=[0 0 0] axis=0 const=[1 2 3 4 5 6]\n"
     "tensor 2 \"bias\" int32 3 const=[7 8 9]\n"
     "tensor 3 \"b\" int8 1x1x1x3 scale=0.5 zero=3\n"
     "tensor 4 \"i\" int32 3 const=[2 0 1]\n"
     "tensor 5 \"c\" int8 1x1x1x3 scale=0.5 zero=3\n"
     "inputs 0\noutputs 5\n"
     "op 0 CONV_2D in=[0 1 2] out=[3]\n"
     "op 1 GATHER in=[3 4] out=[5] axis=3\n",
     "tensor 6 \"w/ordered\" int8 3x1x1x2 scale=[0.125 0.5 0.25] zero=0 const=[5 6 1 2 3 4]\n"
     "tensor 7 \"bias/ordered\" int32 3 const=[9 7 8]\n"
     "op 0 CONV_2D in=[0 6 7] out=[5]\n",
     "CONV_2D computes channels in the order of GATHER"},
    {"split_pad",
     "tensor 0 \"a\" uint8 1x2x2x1 scale=0.5 zero=3\n"
     "tensor 1 \"p\" int32 4x2 const=[0 0 3 0 0 1 0 0]\n"
     "tensor 2 \"b\" uint8 1x5x3x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 2\n"
     "op 0 PAD in=[0 1] out=[2]\n",
     "tensor 3 \"a/margins\" int32 4x2 const=[0 0 2 0 0 1 0 0]\n"
     "tensor 4 \"a/padded\" uint8 1x4x3x1 scale=0.5 zero=3\n"
     "tensor 5 \"a/padded/margins\" int32 4x2 const=[0 0 1 0 0 0 0 0]\n"
     "op 0 PAD in=[0 3] out=[4]\n"
     "op 1 PAD in=[4 5] out=[2] source=0\n",
     "PAD by 3 becomes 2 of at most 2"},
    {"split_pad",
     "tensor 0 \"a\" uint8 1x1x4x1 scale=0.5 zero=3\n"
     "tensor 1 \"w\" uint8 1x1x8x1 scale=0.5 zero=7 const=[1 2 3 4 5 6 7 8]\n"
     "tensor 2 \"b\" uint8 1x1x4x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 2\n"
     "op 0 CONV_2D in=[0 1] out=[2]\n",
     "tensor 3 \"a/margin\" uint8 1x1x11x1 scale=0.5 zero=3\n"
     "tensor 4 \"a/margins\" int32 4x2 const=[0 0 0 0 2 2 0 0]\n"
     "tensor 5 \"a/padded\" uint8 1x1x8x1 scale=0.5 zero=3\n"
     "tensor 6 \"a/padded/margins\" int32 4x2 const=[0 0 0 0 1 2 0 0]\n"
     "op 0 PAD in=[0 4] out=[5]\n"
     "op 1 PAD in=[5 6] out=[3] source=0\n"
     "op 2 CONV_2D in=[3 1] out=[2] padding=valid source=0\n",
     "CONV_2D with up to 4 of padding becomes PAD and one without"},
    {"lower_average_as_pointwise",
     "tensor 0 \"a\" uint8 1x1x3x4 scale=0.5 zero=3\n"
     "tensor 1 \"b\" uint8 1x1x1x4 scale=0.5 zero=3\n"
     "inputs 0\noutputs 1\n"
     "op 0 AVERAGE_POOL_2D in=[0] out=[1] padding=valid filter_h=1 filter_w=3\n",
     "tensor 2 \"a/planes\" uint8 1x4x1x3 scale=0.5 zero=3\n"
     "tensor 3 \"a/pixels\" uint8 1x2x2x3 scale=0.5 zero=3\n"
     "tensor 4 \"b/pixels\" uint8 1x2x2x1 scale=0.5 zero=3\n"
     "tensor 5 \"b/order\" int32 4 const=[0 3 1 2]\n"
     "tensor 6 \"b/ones\" uint8 1x1x1x3 scale=0.0052083335 zero=0 const=[64 64 64]\n"
     "tensor 7 \"b/half\" int32 1 scale=0.0026041667 zero=0 const=[0]\n"
     "tensor 8 \"a/pixels/shape\" int32 4 const=[1 2 2 3]\n"
     "tensor 9 \"b/shape\" int32 4 const=[1 1 1 4]\n"
     "op 0 TRANSPOSE in=[0 5] out=[2]\n"
     "op 1 RESHAPE in=[2 8] out=[3] shape=[1 2 2 3] source=0\n"
     "op 2 CONV_2D in=[3 6 7] out=[4] padding=valid source=0\n"
     "op 3 RESHAPE in=[4 9] out=[1] shape=[1 1 1 4] source=0\n",
     "AVERAGE_POOL_2D of 3 pixels becomes CONV_2D 1x1 of 3 channels"},
    {"lower_average_as_pointwise",
     "tensor 0 \"a\" uint8 1x1x3x8 scale=0.5 zero=3\n"
     "tensor 1 \"b\" uint8 1x1x1x8 scale=0.5 zero=3\n"
     "inputs 0\noutputs 1\n"
     "op 0 AVERAGE_POOL_2D in=[0] out=[1] padding=valid filter_h=1 filter_w=3\n",
     "tensor 2 \"a/planes\" uint8 1x8x1x3 scale=0.5 zero=3\n"
     "tensor 3 \"a/pixels\" uint8 1x2x2x6 scale=0.5 zero=3\n"
     "tensor 4 \"b/pixels\" uint8 1x2x2x2 scale=0.5 zero=3\n"
     "tensor 5 \"b/order\" int32 4 const=[0 3 1 2]\n"
     "tensor 6 \"b/ones\" uint8 2x1x1x6 scale=0.0052083335 zero=0 const=[64 64 64 0 0 0 0 0 0 64 64 64]\n"
     "tensor 7 \"b/half\" int32 2 scale=0.0026041667 zero=0 const=[0 0]\n"
     "tensor 8 \"a/pixels/shape\" int32 4 const=[1 2 2 6]\n"
     "tensor 9 \"b/shape\" int32 4 const=[1 1 1 8]\n"
     "op 0 TRANSPOSE in=[0 5] out=[2]\n"
     "op 1 RESHAPE in=[2 8] out=[3] shape=[1 2 2 6] source=0\n"
     "op 2 CONV_2D in=[3 6 7] out=[4] padding=valid source=0\n"
     "op 3 RESHAPE in=[4 9] out=[1] shape=[1 1 1 8] source=0\n",
     "AVERAGE_POOL_2D of 3 pixels becomes CONV_2D 1x1 of 6 channels"},
    {"lower_average_as_pointwise",
     "tensor 0 \"a\" int8 1x3x4 scale=0.5 zero=3\n"
     "tensor 1 \"x\" int32 1 const=[-1]\n"
     "tensor 2 \"b\" int8 1x3x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 2\n"
     "op 0 MEAN in=[0 1] out=[2] keep_dims=true\n",
     "tensor 3 \"a/pixels\" int8 1x3x1x4 scale=0.5 zero=3\n"
     "tensor 4 \"a/pixels/shape\" int32 4 const=[1 3 1 4]\n"
     "tensor 5 \"b/pixels\" int8 1x3x1x1 scale=0.5 zero=3\n"
     "tensor 6 \"b/ones\" int8 1x1x1x4 scale=0.25 zero=0 const=[1 1 1 1]\n"
     "tensor 7 \"b/half\" int32 1 scale=0.125 zero=0 const=[0]\n"
     "tensor 8 \"b/shape\" int32 3 const=[1 3 1]\n"
     "op 0 RESHAPE in=[0 4] out=[3] shape=[1 3 1 4]\n"
     "op 1 CONV_2D in=[3 6 7] out=[5] padding=valid source=0\n"
     "op 2 RESHAPE in=[5 8] out=[2] shape=[1 3 1] source=0\n",
     "MEAN of 4 channels becomes CONV_2D 1x1"},
    {"lower_average_as_pointwise",
     "tensor 0 \"a\" uint8 1x2x2x3 scale=0.5 zero=3\n"
     "tensor 1 \"x\" int32 1 const=[3]\n"
     "tensor 2 \"b\" uint8 1x2x2x1 scale=1.25 zero=5\n"
     "inputs 0\noutputs 2\n"
     "op 0 SUM in=[0 1] out=[2] keep_dims=true\n",
     "tensor 3 \"b/ones\" uint8 1x1x1x3 scale=0.015625 zero=0 const=[64 64 64]\n"
     "tensor 4 \"b/half\" int32 1 scale=0.0078125 zero=0 const=[0]\n"
     "op 0 CONV_2D in=[0 3 4] out=[2] padding=valid\n",
     "SUM of 3 channels becomes CONV_2D 1x1"},
    {"lower_sub_as_sum",
     "tensor 0 \"a\" int8 3x4 scale=0.5 zero=3\n"
     "tensor 1 \"b\" int8 3x4 scale=0.5 zero=3\n"
     "tensor 2 \"c\" int8 3x4 scale=0.5 zero=3\n"
     "inputs 0 1\noutputs 2\n"
     "op 0 SUB in=[0 1] out=[2]\n",
     "tensor 3 \"c/image\" int8 1x2x2x3 scale=0.5 zero=3\n"
     "tensor 4 \"a/image\" int8 1x2x2x3 scale=0.5 zero=3\n"
     "tensor 5 \"a/image/shape\" int32 4 const=[1 2 2 3]\n"
     "tensor 6 \"b/image\" int8 1x2x2x3 scale=0.5 zero=3\n"
     "tensor 7 \"b/image/shape\" int32 4 const=[1 2 2 3]\n"
     "tensor 8 \"b/image/negated\" int8 1x2x2x3 scale=0.5 zero=-4\n"
     "tensor 9 \"b/image/negated/factors\" int8 1x1x1x3 scale=0.015625 zero=0 const=[-64 -64 -64]\n"
     "tensor 10 \"c/shape\" int32 2 const=[3 4]\n"
     "op 0 RESHAPE in=[0 5] out=[4] shape=[1 2 2 3]\n"
     "op 1 RESHAPE in=[1 7] out=[6] shape=[1 2 2 3] source=0\n"
     "op 2 DEPTHWISE_CONV_2D in=[6 9 -] out=[8] padding=valid source=0\n"
     "op 3 ADD in=[4 8] out=[3] source=0\n"
     "op 4 RESHAPE in=[3 10] out=[2] shape=[3 4] source=0\n",
     "SUB becomes ADD of what DEPTHWISE_CONV_2D negates"},
    {"lower_average_as_depthwise",
     "tensor 0 \"a\" uint8 1x4x2x1 scale=0.5 zero=3\n"
     "tensor 1 \"b\" uint8 1x1x2x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 1\n"
     "op 0 AVERAGE_POOL_2D in=[0] out=[1] padding=valid stride_h=4 filter_h=4\n",
     "tensor 2 \"b/ones\" uint8 1x4x1x1 scale=0.00390625 zero=0 const=[64 64 64 64]\n"
     "tensor 3 \"b/half\" int32 1 scale=0.001953125 zero=0 const=[32]\n"
     "op 0 DEPTHWISE_CONV_2D in=[0 2 3] out=[1] padding=valid\n",
     "AVERAGE_POOL_2D becomes DEPTHWISE_CONV_2D 4x1"},
    {"lower_uneven_stride",
     "tensor 0 \"a\" uint8 1x4x2x1 scale=0.5 zero=3\n"
     "tensor 1 \"w\" uint8 1x1x2x1 scale=0.5 zero=9 const=[1 2]\n"
     "tensor 2 \"b\" uint8 1x2x2x1 scale=0.5 zero=3\n"
     "inputs 0\noutputs 2\n"
     "op 0 CONV_2D in=[0 1] out=[2] stride_h=2\n",
     "tensor 3 \"b/columns\" uint8 1x2x1x2 scale=0.5 zero=3\n"
     "tensor 4 \"w/columns\" uint8 2x1x3x1 scale=0.5 zero=9 const=[1 2 9 9 1 2]\n"
     "tensor 5 \"b/shape\" int32 4 const=[1 2 2 1]\n"
     "op 0 CONV_2D in=[0 4] out=[3] stride_h=2 stride_w=2\n"
     "op 1 RESHAPE in=[3 5] out=[2] shape=[1 2 2 1] source=0\n",
     "CONV_2D of stride 2x1 becomes one of 2x2 with two columns as channels, and RESHAPE"},
};

}  // namespace skillet::passes
