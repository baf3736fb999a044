// Parameters of builtin operations as in TfLiteNode::builtin_data.
// Included by node_attrs.cpp. Fields have the names of the schema of model files, by which node_attrs.cpp reads them.
// Must not know: the IR.
//
// Fields that later versions appended are left out, except those that we need. Those are read only from the op version
// that introduced them, because older hosts allocated less.
#pragma once

#include <cstdint>

#include "frontend/tflite_delegate/tflite_abi.h"

extern "C" {

constexpr TfLiteEnum kTfLitePaddingSame = 1, kTfLitePaddingValid = 2;

struct TfLiteConvParams {
  TfLiteEnum padding;
  int stride_w;
  int stride_h;
  TfLiteEnum fused_activation_function;
  int dilation_w_factor;
  int dilation_h_factor;
};
struct TfLiteDepthwiseConvParams {
  TfLiteEnum padding;
  int stride_w;
  int stride_h;
  int depth_multiplier;
  TfLiteEnum fused_activation_function;
  int dilation_w_factor;
  int dilation_h_factor;
};
struct TfLiteTransposeConvParams {
  TfLiteEnum padding;
  int stride_w;
  int stride_h;
  TfLiteEnum fused_activation_function;  // from version 4 on
};
struct TfLitePoolParams {
  TfLiteEnum padding;
  int stride_w;
  int stride_h;
  int filter_width;
  int filter_height;
  TfLiteEnum fused_activation_function;
};
struct TfLiteFullyConnectedParams {
  TfLiteEnum fused_activation_function;
  TfLiteEnum weights_format;
  bool keep_num_dims;
  bool asymmetric_quantize_inputs;
};
// ADD, SUB, MUL, DIV
struct TfLiteArithmeticParams {
  TfLiteEnum fused_activation_function;
};
struct TfLiteConcatenationParams {
  int axis;
  TfLiteEnum fused_activation_function;
};
struct TfLiteShortList {
  int values[8];
  int count;
};
struct TfLiteReshapeParams {
  TfLiteShortList new_shape;
};
struct TfLiteSqueezeParams {
  TfLiteShortList squeeze_dims;
};
struct TfLiteStridedSliceParams {
  int begin_mask;
  int end_mask;
  int ellipsis_mask;
  int new_axis_mask;
  int shrink_axis_mask;
  bool offset;  // from version 8 on
};
struct TfLiteSplitParams {  // SPLIT_V too
  int num_splits;
};
struct TfLitePackParams {
  int values_count;
  int axis;
};
struct TfLiteUnpackParams {
  int num;
  int axis;
};
struct TfLiteLeakyReluParams {
  float alpha;
};
struct TfLiteSoftmaxParams {
  float beta;
};
struct TfLiteReducerParams {
  bool keep_dims;
};
struct TfLiteResizeParams {  // bilinear and nearest neighbour
  bool align_corners;
  bool half_pixel_centers;
};
struct TfLiteMirrorPadParams {
  TfLiteEnum mode;  // 1 reflect, 2 symmetric
};
struct TfLiteGatherParams {
  int axis;
  int batch_dims;  // from version 5 on
};
struct TfLiteGeluParams {
  bool approximate;
};
struct TfLiteOneHotParams {
  int axis;
};
struct TfLiteCumsumParams {
  bool exclusive;
  bool reverse;
};
struct TfLiteBatchMatMulParams {
  bool adj_x;
  bool adj_y;
  bool asymmetric_quantize_inputs;
};
struct TfLiteLocalResponseNormParams {
  int radius;
  float bias;
  float alpha;
  float beta;
};
struct TfLiteReverseSequenceParams {
  int seq_dim;
  int batch_dim;
};
struct TfLiteLstmParams {
  TfLiteEnum fused_activation_function;
  float cell_clip;
  float proj_clip;
  TfLiteEnum kernel_type;  // 0: 20 or 24 operands
  bool asymmetric_quantize_inputs;
};
struct TfLiteSVDFParams {
  int rank;
  TfLiteEnum fused_activation_function;
  bool asymmetric_quantize_inputs;
};
struct TfLiteSequenceLstmParams {
  TfLiteEnum fused_activation_function;
  float cell_clip;
  float proj_clip;
  bool time_major;
  bool asymmetric_quantize_inputs;
};
struct TfLiteBlockParams {  // SPACE_TO_DEPTH, DEPTH_TO_SPACE
  int block_size;
};

}  // extern "C"
