// The fields of each attribute struct with their names in the text form: one row per field, used both ways.
// Called by print.cpp and parse.cpp.
// Must not know: how values are written or read.
#pragma once

#include "graph/ir/op.h"

namespace skillet::ir {

// visit(name, field) for each field; A is the struct, const or not.
template <typename A, typename Visit>
void for_each_field(A& attrs, Visit visit) {
  using T = std::remove_const_t<A>;
  if constexpr (std::is_same_v<T, ConvAttrs> || std::is_same_v<T, PoolAttrs>) {
    visit("padding", attrs.padding);
    visit("rows", attrs.rows);
    visit("stride_h", attrs.stride_h);
    visit("stride_w", attrs.stride_w);
  }
  if constexpr (std::is_same_v<T, ConvAttrs>) {
    visit("dilation_h", attrs.dilation_h);
    visit("dilation_w", attrs.dilation_w);
    visit("depth_multiplier", attrs.depth_multiplier);
    visit("float_product", attrs.float_product);
  }
  if constexpr (std::is_same_v<T, PoolAttrs>) {
    visit("filter_h", attrs.filter_h);
    visit("filter_w", attrs.filter_w);
  }
  if constexpr (std::is_same_v<T, ConcatAttrs> || std::is_same_v<T, PackAttrs> || std::is_same_v<T, GatherAttrs> ||
                std::is_same_v<T, OneHotAttrs> || std::is_same_v<T, ReverseSequenceAttrs>)
    visit("axis", attrs.axis);
  if constexpr (requires { attrs.activation; }) visit("activation", attrs.activation);
  if constexpr (std::is_same_v<T, ActivationAttrs>) visit("pot_scale_int16", attrs.pot_scale_int16);
  if constexpr (std::is_same_v<T, FullyConnectedAttrs>) visit("keep_num_dims", attrs.keep_num_dims);
  if constexpr (requires { attrs.asymmetric_inputs; }) visit("asymmetric_inputs", attrs.asymmetric_inputs);
  if constexpr (std::is_same_v<T, SplitAttrs> || std::is_same_v<T, PackAttrs>) visit("count", attrs.count);
  if constexpr (std::is_same_v<T, ReshapeAttrs>) visit("shape", attrs.shape);
  if constexpr (std::is_same_v<T, SqueezeAttrs>) visit("axes", attrs.axes);
  if constexpr (std::is_same_v<T, StridedSliceAttrs>) {
    visit("begin_mask", attrs.begin_mask);
    visit("end_mask", attrs.end_mask);
    visit("ellipsis_mask", attrs.ellipsis_mask);
    visit("new_axis_mask", attrs.new_axis_mask);
    visit("shrink_axis_mask", attrs.shrink_axis_mask);
    visit("offset", attrs.offset);
  }
  if constexpr (std::is_same_v<T, LeakyReluAttrs>) visit("alpha", attrs.alpha);
  if constexpr (std::is_same_v<T, SoftmaxAttrs>) visit("beta", attrs.beta);
  if constexpr (std::is_same_v<T, ReduceAttrs>) visit("keep_dims", attrs.keep_dims);
  if constexpr (std::is_same_v<T, ResizeAttrs>) {
    visit("align_corners", attrs.align_corners);
    visit("half_pixel_centers", attrs.half_pixel_centers);
  }
  if constexpr (std::is_same_v<T, BlockAttrs>) visit("block_size", attrs.block_size);
  if constexpr (std::is_same_v<T, MirrorPadAttrs>) visit("symmetric", attrs.symmetric);
  if constexpr (std::is_same_v<T, GatherAttrs>) visit("batch_dims", attrs.batch_dims);
  if constexpr (std::is_same_v<T, GeluAttrs>) visit("approximate", attrs.approximate);
  if constexpr (std::is_same_v<T, CumsumAttrs>) {
    visit("exclusive", attrs.exclusive);
    visit("reverse", attrs.reverse);
  }
  if constexpr (std::is_same_v<T, BatchMatmulAttrs>) {
    visit("transpose_a", attrs.transpose_a);
    visit("transpose_b", attrs.transpose_b);
  }
  if constexpr (std::is_same_v<T, LstmAttrs>) {
    visit("cell_clip", attrs.cell_clip);
    visit("projection_clip", attrs.projection_clip);
    visit("time_major", attrs.time_major);
    visit("hidden_scale", attrs.hidden_scale);
    visit("hidden_zero_point", attrs.hidden_zero_point);
  }
  if constexpr (std::is_same_v<T, ReverseSequenceAttrs>) visit("batch_axis", attrs.batch_axis);
  if constexpr (std::is_same_v<T, LocalResponseNormalizationAttrs>) {
    visit("radius", attrs.radius);
    visit("bias", attrs.bias);
    visit("alpha", attrs.alpha);
    visit("beta", attrs.beta);
  }
  if constexpr (std::is_same_v<T, DetectionAttrs>) {
    visit("max_detections", attrs.max_detections);
    visit("max_classes_per_detection", attrs.max_classes_per_detection);
    visit("detections_per_class", attrs.detections_per_class);
    visit("num_classes", attrs.num_classes);
    visit("regular_nms", attrs.regular_nms);
    visit("score_threshold", attrs.score_threshold);
    visit("iou_threshold", attrs.iou_threshold);
    visit("y_scale", attrs.y_scale);
    visit("x_scale", attrs.x_scale);
    visit("h_scale", attrs.h_scale);
    visit("w_scale", attrs.w_scale);
  }
}

}  // namespace skillet::ir
