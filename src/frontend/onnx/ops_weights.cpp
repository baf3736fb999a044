// Convolutions, products with constant matrices, pools: windows and sums.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "frontend/onnx/layer_constants.h"

namespace skillet::onnx {
namespace {

using ir::OpKind;
using ir::TensorId;

// A window in two dimensions with ONNX's attributes. `top`, `left`: padding before the image; `bottom`, `right`: after
// it.
struct Window {
  int32_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int64_t top = 0, left = 0, bottom = 0, right = 0;
  int64_t skip_top = 0, skip_left = 0;  // rows and columns of the image before the first window
  bool none() const { return (top | left | bottom | right) == 0; }
};

int64_t covered(int64_t kernel, int64_t dilation) { return (kernel - 1) * dilation + 1; }

// Padding that the windows of one dimension need in total with auto_pad=SAME; below 0: they leave out pixels.
int64_t same_sum(int64_t size, int64_t kernel, int64_t stride, int64_t dilation) {
  const int64_t count = (size + stride - 1) / stride;
  return (count - 1) * stride + covered(kernel, dilation) - size;
}

// Padding of one dimension, before and after. An odd pixel is after.
std::pair<int64_t, int64_t> same_pads(int64_t size, int64_t kernel, int64_t stride, int64_t dilation) {
  const int64_t all = std::max<int64_t>(0, same_sum(size, kernel, stride, dilation));
  return {all / 2, all - all / 2};
}

// A sequence (N, C, L) is an image of one row.
constexpr size_t kSequence = 3, kImage = 4;

bool is_sequence(const Lowering& l) {
  const auto dims = l.input_dims(0);
  return dims.ok() && dims->size() == kSequence;
}
size_t rank_of(const Lowering& l) { return is_sequence(l) ? kSequence : kImage; }

std::vector<int32_t> as_image(std::vector<int32_t> dims, std::ptrdiff_t row_at = 2) {
  if (dims.size() == kSequence) dims.insert(dims.begin() + row_at, 1);
  return dims;
}

// An attribute with a number for rows and one for columns.
Result<std::array<int64_t, 2>> pair_of(const Lowering& l, const char* name) {
  std::vector<int64_t> given = ints_of(l.node(), name);
  if (given.empty()) return std::array<int64_t, 2>{1, 1};
  if (is_sequence(l)) given.insert(given.begin(), 1);
  const bool fits = given.size() == 2 && std::ranges::all_of(given, [](int64_t v) { return v >= 1 && v <= 1 << 15; });
  if (!fits) return error(ErrorCode::unsupported, "its {} are not two numbers from 1 to 32768", name);
  return std::array<int64_t, 2>{given[0], given[1]};
}

// Padding before rows and columns, then after them.
std::vector<int64_t> pads_of(const Lowering& l) {
  std::vector<int64_t> pads = ints_of(l.node(), "pads");
  if (pads.empty()) pads.assign(4, 0);
  if (is_sequence(l) && pads.size() == 2) pads = {0, pads[0], 0, pads[1]};
  return pads;
}

// `image`, `out`: the host's N, C, H, W. The padding at the end follows from the output's size, also with ceil_mode.
Result<Window> window_of(const Lowering& l, std::array<int64_t, 2> kernel, const std::vector<int32_t>& image,
                         const std::vector<int32_t>& out) {
  SK_TRY_ASSIGN(const auto stride, pair_of(l, "strides"));
  SK_TRY_ASSIGN(const auto dilation, pair_of(l, "dilations"));
  std::vector<int64_t> pads = pads_of(l);
  const auto fits = [](int64_t pad) { return pad >= 0 && pad <= 1 << 15; };
  if (pads.size() != 4 || !std::ranges::all_of(pads, fits))
    return error(ErrorCode::unsupported, "its pads are not four numbers from 0 to 32768");
  const std::string automatic = string_of(l.node(), "auto_pad", "NOTSET");
  for (size_t i = 0; i < 2; ++i) {
    const int64_t size = image[i + 2];
    if (automatic == "VALID") pads[i] = pads[i + 2] = 0;
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      std::tie(pads[i], pads[i + 2]) = same_pads(size, kernel[i], stride[i], dilation[i]);
      if (automatic == "SAME_LOWER") std::swap(pads[i], pads[i + 2]);
    }
    if (covered(kernel[i], dilation[i]) > size + pads[i] + pads[i + 2])
      return error(ErrorCode::unsupported, "its windows of {} are larger than its input with padding",
                   covered(kernel[i], dilation[i]));
    const int64_t needed = (out[i + 2] - 1) * stride[i] + covered(kernel[i], dilation[i]) - size - pads[i];
    if (needed > pads[i + 2] + stride[i])
      return error(ErrorCode::malformed, "its output of {} is larger than its windows allow", out[i + 2]);
    pads[i + 2] = std::max<int64_t>(needed, 0);  // pixels after the last window do not count
  }
  const auto narrow = [](int64_t v) { return static_cast<int32_t>(v); };
  return Window{narrow(kernel[0]),   narrow(kernel[1]), narrow(stride[0]), narrow(stride[1]), narrow(dilation[0]),
                narrow(dilation[1]), pads[0],           pads[1],           pads[2],           pads[3]};
}

ir::Padding padding_of(const Window& w, const std::vector<int32_t>& image, const std::vector<int32_t>& out) {
  const bool is_same = std::pair(w.top, w.bottom) == same_pads(image[2], w.kernel_h, w.stride_h, w.dilation_h) &&
                       std::pair(w.left, w.right) == same_pads(image[3], w.kernel_w, w.stride_w, w.dilation_w) &&
                       (image[2] + w.stride_h - 1) / w.stride_h == out[2] &&
                       (image[3] + w.stride_w - 1) / w.stride_w == out[3];
  return !w.none() && is_same ? ir::Padding::same : ir::Padding::valid;
}

// Pads with zeros, or with the stored value `value` (float: with the lowest float).
TensorId padded(Lowering& l, TensorId from, const Window& w, std::optional<int> value = {}) {
  const ir::Tensor image = l.graph.tensor(from);
  std::vector<int32_t> dims = image.shape.dims;
  const auto narrow = [](int64_t v) { return static_cast<int32_t>(v); };
  dims[1] += narrow(w.top + w.bottom);
  dims[2] += narrow(w.left + w.right);
  const TensorId margins =
      l.ints({0, 0, narrow(w.top), narrow(w.bottom), narrow(w.left), narrow(w.right), 0, 0}, {4, 2});
  const TensorId to = l.temporary(std::move(dims), image.quant);
  if (!value || (!image.quant.empty() && *value == image.quant.zero_point())) {
    l.emit(OpKind::pad, ir::NoAttrs{}, {from, margins}, to);
  } else if (l.is_float(from)) {
    Bytes least(4);
    store_le(least.data(), std::numeric_limits<float>::lowest());
    l.emit(OpKind::pad_v2, ir::NoAttrs{}, {from, margins, l.constant(image.dtype, {1}, std::move(least))}, to);
  } else {
    const TensorId filler = l.constant(l.type(), {1}, {static_cast<uint8_t>(*value)}, image.quant);
    l.emit(OpKind::pad_v2, ir::NoAttrs{}, {from, margins, filler}, to);
  }
  return to;
}

Result<std::vector<int32_t>> image_dims(const Lowering& l) {
  SK_TRY_ASSIGN(std::vector<int32_t> dims, l.input_dims(0));
  if (dims.size() != kSequence && dims.size() != kImage)
    return error(ErrorCode::unsupported, "its input has {} dimensions, not 3 or 4", dims.size());
  return as_image(std::move(dims));
}

Result<std::vector<int32_t>> output_dims(Lowering& l, size_t rank) {
  if (l.unit().outputs.size() != 1) return error(ErrorCode::unsupported, "it has {} outputs", l.unit().outputs.size());
  SK_TRY_ASSIGN(std::vector<int32_t> dims, l.dims(l.unit().outputs[0].value));
  if (dims.size() != rank) return error(ErrorCode::malformed, "its output has {} dimensions", dims.size());
  return dims;
}

Result<std::vector<int32_t>> output_image_dims(Lowering& l) {
  SK_TRY_ASSIGN(std::vector<int32_t> dims, output_dims(l, rank_of(l)));
  return as_image(std::move(dims));
}

Result<std::vector<int32_t>> filter_dims(const Lowering& l) {
  SK_TRY_ASSIGN(std::vector<int32_t> dims, l.input_dims(1));
  if (dims.size() != rank_of(l)) return error(ErrorCode::malformed, "its weights have {} dimensions", dims.size());
  return as_image(std::move(dims));
}

TensorId reshaped(Lowering& l, TensorId from, TensorId to) {
  if (from != to) l.reshape(from, to);
  return to;
}

// A tensor like `value`, but an image; `value` itself if it is one.
TensorId image_like(Lowering& l, TensorId value) {
  const ir::Tensor tensor = l.graph.tensor(value);
  return tensor.shape.rank() == kImage ? value : l.temporary(as_image(tensor.shape.dims, 1), tensor.quant);
}

Result<TensorId> read_image(Lowering& l) {
  SK_TRY_ASSIGN(const TensorId from, l.read(0, Layout::channels_last));
  return reshaped(l, from, image_like(l, from));
}

// The output, and the image that it is made of; finish() ends an operation that makes it.
struct Output {
  TensorId value, image;
};
Result<Output> write_image(Lowering& l) {
  SK_TRY_ASSIGN(const TensorId value, l.write(0, Layout::channels_last));
  return Output{value, image_like(l, value)};
}
Result<void> finish(Lowering& l, const Output& out) {
  reshaped(l, out.image, out.value);
  return {};
}

Result<void> conv(Lowering& l) {
  SK_TRY_ASSIGN(const auto image, image_dims(l));
  SK_TRY_ASSIGN(const auto filter, filter_dims(l));
  SK_TRY_ASSIGN(const auto out, output_image_dims(l));
  if (int_of(l.node(), "channels_last", 0) != 0) return error(ErrorCode::unsupported, "its channels are last");
  const int64_t groups = int_of(l.node(), "group", 1);
  if (groups < 1 || groups > image[1] || groups * filter[1] != image[1] || filter[0] % groups != 0)
    return error(ErrorCode::malformed, "{} groups of {} channels do not fit {}", groups, filter[1], image[1]);
  SK_TRY_ASSIGN(const Window w, window_of(l, {filter[2], filter[3]}, image, out));
  const bool depthwise = groups > 1 && filter[1] == 1;
  const int32_t channels = filter[0], h = filter[2], wide = filter[3];
  SK_TRY_ASSIGN(TensorId from, read_image(l));
  SK_TRY_ASSIGN(const TensorId by, depthwise ? weights(l, filter, {1, 2, 3, 0}, {1, h, wide, channels}, 3, 0)
                                             : weights(l, filter, {0, 2, 3, 1}, {channels, h, wide, filter[1]}, 0, 0));
  SK_TRY_ASSIGN(const TensorId plus, bias(l, 2, l.graph.tensor(from).quant, l.graph.tensor(by).quant, channels));
  ir::ConvAttrs attrs{.padding = padding_of(w, image, out),
                      .stride_h = w.stride_h,
                      .stride_w = w.stride_w,
                      .dilation_h = w.dilation_h,
                      .dilation_w = w.dilation_w,
                      .activation = l.unit().activation};
  if (depthwise) attrs.depth_multiplier = channels / image[1];
  if (attrs.padding == ir::Padding::valid && !w.none()) from = padded(l, from, w);
  SK_TRY_ASSIGN(const Output to, write_image(l));
  l.emit(depthwise ? OpKind::depthwise_conv_2d : OpKind::conv_2d, attrs, {from, by, plus}, to.image);
  return finish(l, to);
}

// Computes the windows' whole result, then slices off the pads; one operation if our padding is the same.
Result<void> conv_transpose(Lowering& l) {
  SK_TRY_ASSIGN(const auto image, image_dims(l));
  SK_TRY_ASSIGN(const auto filter, filter_dims(l));
  SK_TRY_ASSIGN(const auto out, output_image_dims(l));
  SK_TRY_ASSIGN(const auto stride, pair_of(l, "strides"));
  SK_TRY_ASSIGN(const auto dilation, pair_of(l, "dilations"));
  if (filter[0] != image[1] || filter[1] != out[1])
    return error(ErrorCode::unsupported, "its weights have groups, or do not fit");
  if (dilation != std::array<int64_t, 2>{1, 1} || string_of(l.node(), "auto_pad", "NOTSET") != "NOTSET")
    return error(ErrorCode::unsupported, "its windows are dilated, or its padding is automatic");
  std::vector<int64_t> pads = pads_of(l);
  const bool is_sized = !ints_of(l.node(), "output_shape").empty();  // gives the pads; "pads" is ignored
  if (is_sized) pads.assign(4, 0);
  if (pads.size() != 4) return error(ErrorCode::malformed, "it has {} pads", pads.size());
  if (is_sized && std::ranges::any_of(ints_of(l.node(), "output_padding"), [](int64_t v) { return v != 0; }))
    return error(ErrorCode::unsupported, "it has an output_shape and an output_padding");
  std::vector<int32_t> whole = {out[0], 0, 0, out[1]};
  bool is_same = true, is_all = true;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t full = (image[i + 2] - 1) * stride[i] + filter[i + 2];
    if (is_sized) pads[i] = (full - out[i + 2] + 1) / 2;  // an odd pixel is before
    if (full > INT32_MAX || pads[i] < 0 || pads[i] + out[i + 2] > full)
      return error(ErrorCode::unsupported, "its output is larger than its windows");
    whole[i + 1] = static_cast<int32_t>(full);
    is_all &= full == out[i + 2];
    is_same &= image[i + 2] == (out[i + 2] + stride[i] - 1) / stride[i] && pads[i] == (full - out[i + 2]) / 2;
  }
  SK_TRY_ASSIGN(const TensorId from, read_image(l));
  SK_TRY_ASSIGN(const TensorId by,
                weights(l, filter, {1, 2, 3, 0}, {filter[1], filter[2], filter[3], filter[0]}, 0, 1));
  SK_TRY_ASSIGN(const TensorId plus, bias(l, 2, l.graph.tensor(from).quant, l.graph.tensor(by).quant, filter[1]));
  SK_TRY_ASSIGN(const Output to, write_image(l));
  const bool is_cut = !is_all && !is_same;
  const TensorId made = is_cut ? l.temporary(whole, l.graph.tensor(to.value).quant) : to.image;
  const std::vector<int32_t> dims = l.graph.tensor(made).shape.dims;
  l.emit(OpKind::transpose_conv,
         ir::ConvAttrs{.padding = is_all || is_cut ? ir::Padding::valid : ir::Padding::same,
                       .stride_h = static_cast<int32_t>(stride[0]),
                       .stride_w = static_cast<int32_t>(stride[1])},
         {l.ints(dims), by, from, plus}, made);
  if (is_cut)
    l.emit(OpKind::slice, ir::NoAttrs{},
           {made, l.ints({0, static_cast<int32_t>(pads[0]), static_cast<int32_t>(pads[1]), 0}),
            l.ints(l.graph.tensor(to.image).shape.dims)},
           to.image);
  return finish(l, to);
}

// An image flattened to rows keeps its order (channels last); the rows of the weights are permuted instead.
Result<void> dense(Lowering& l, bool transposed, bool keeps_rank) {
  SK_TRY_ASSIGN(const auto in, l.input_dims(0));
  SK_TRY_ASSIGN(const auto matrix, l.input_dims(1));
  if (matrix.size() != 2 || in.empty())
    return error(ErrorCode::unsupported, "its weights have {} dimensions, not 2", matrix.size());
  SK_TRY_ASSIGN(const auto out, output_dims(l, in.size()));
  const int32_t channels = matrix[transposed ? 0 : 1], depth = matrix[transposed ? 1 : 0];
  if (in.back() != depth || out.back() != channels) return error(ErrorCode::malformed, "its matrices do not fit");
  const auto image = l.image_of(l.input(0)->value);
  const bool rows = image && l.has(l.input(0)->value, Layout::rows);
  SK_TRY_ASSIGN(const TensorId from, l.read(0, rows ? Layout::rows : Layout::plain));
  std::vector<int32_t> dims = transposed ? std::vector{channels, depth} : std::vector{depth, channels};
  std::vector<int> perm = transposed ? std::vector{0, 1} : std::vector{1, 0};
  if (rows) {  // channels, then pixels: permuted to pixels, then channels
    const int32_t c = (*image)[1];
    dims = transposed ? std::vector{channels, c, depth / c} : std::vector{c, depth / c, channels};
    perm = transposed ? std::vector{0, 2, 1} : std::vector{2, 1, 0};
  }
  SK_TRY_ASSIGN(const TensorId by, weights(l, dims, perm, {channels, depth}, 0, transposed ? 0 : 1));
  SK_TRY_ASSIGN(const TensorId plus, bias(l, 2, l.graph.tensor(from).quant, l.graph.tensor(by).quant, channels));
  SK_TRY_ASSIGN(const TensorId to, l.write(0, Layout::plain));
  l.emit(OpKind::fully_connected,
         ir::FullyConnectedAttrs{.activation = l.unit().activation, .keep_num_dims = keeps_rank}, {from, by, plus}, to);
  return {};
}

Result<void> gemm(Lowering& l) {
  const Node& node = l.node();
  if (float_of(node, "alpha", 1) != 1 || float_of(node, "beta", 1) != 1 || int_of(node, "transA", 0) != 0)
    return error(ErrorCode::unsupported, "its alpha or beta is not 1, or its input is transposed");
  return dense(l, int_of(node, "transB", 0) != 0, false);
}

Result<void> matmul(Lowering& l) {
  SK_TRY_ASSIGN(const auto matrix, l.input_dims(1));
  if (l.model().value(l.input(1)->value).is_constant && matrix.size() == 2) {
    SK_TRY_ASSIGN(const auto in, l.input_dims(0));
    return dense(l, false, in.size() != 2);
  }
  if (l.unit().activation != ir::Activation::none) return error(ErrorCode::unsupported, "a Relu or Clip follows it");
  SK_TRY_ASSIGN(const TensorId a, l.read(0, Layout::plain));
  SK_TRY_ASSIGN(const TensorId b, l.read(1, Layout::plain));
  SK_TRY_ASSIGN(const TensorId to, l.write(0, Layout::plain));
  l.emit(OpKind::batch_matmul, ir::BatchMatmulAttrs{}, {a, b}, to);
  return {};
}

ir::PoolAttrs pool_attrs(const Window& w, ir::Padding padding) {
  return {.padding = padding,
          .stride_h = w.stride_h,
          .stride_w = w.stride_w,
          .filter_h = w.kernel_h,
          .filter_w = w.kernel_w};
}

Result<Window> pool_window(Lowering& l, const std::vector<int32_t>& image, const std::vector<int32_t>& out) {
  SK_TRY_ASSIGN(const auto kernel, pair_of(l, "kernel_shape"));
  SK_TRY_ASSIGN(Window w, window_of(l, kernel, image, out));
  if (w.dilation_h != 1 || w.dilation_w != 1) return error(ErrorCode::unsupported, "its window is dilated");
  // If the strides leave out pixels, hosts begin inside the image, which is a negative padding.
  const std::string automatic = string_of(l.node(), "auto_pad", "NOTSET");
  if (!automatic.starts_with("SAME")) return w;
  const auto skipped = [&](int64_t size, int64_t kernel_size, int64_t stride) {
    const int64_t sum = same_sum(size, kernel_size, stride, 1);
    return std::max<int64_t>(0, -(automatic == "SAME_LOWER" ? sum + 1 : sum) / 2);
  };
  w.skip_top = skipped(image[2], w.kernel_h, w.stride_h), w.skip_left = skipped(image[3], w.kernel_w, w.stride_w);
  return w;
}

// The image of a pool without the pixels before its first window.
Result<TensorId> pooled(Lowering& l, const Window& w) {
  SK_TRY_ASSIGN(const TensorId from, read_image(l));
  if (w.skip_top == 0 && w.skip_left == 0) return from;
  const auto top = static_cast<int32_t>(w.skip_top), left = static_cast<int32_t>(w.skip_left);
  std::vector<int32_t> dims = l.graph.tensor(from).shape.dims;
  dims[1] -= top, dims[2] -= left;
  const TensorId to = l.temporary(dims, l.graph.tensor(from).quant);
  l.emit(OpKind::slice, ir::NoAttrs{}, {from, l.ints({0, top, left, 0}), l.ints(dims)}, to);
  return to;
}

Result<void> max_pool_of(Lowering& l, const Window& w, ir::Padding padding) {
  SK_TRY_ASSIGN(TensorId from, pooled(l, w));
  if (padding == ir::Padding::valid && !w.none()) from = padded(l, from, w, l.least());
  SK_TRY_ASSIGN(const Output to, write_image(l));
  const TensorId same = l.before_requantize(to.image, l.graph.tensor(from).quant);
  l.emit(OpKind::max_pool_2d, pool_attrs(w, padding), {from}, same);
  l.requantize(same, to.image);
  return finish(l, to);
}

Result<void> max_pool(Lowering& l) {
  SK_TRY_ASSIGN(const auto image, image_dims(l));
  SK_TRY_ASSIGN(const auto out, output_image_dims(l));
  SK_TRY_ASSIGN(const Window w, pool_window(l, image, out));
  return max_pool_of(l, w, padding_of(w, image, out));
}

Result<void> global_max_pool(Lowering& l) {
  SK_TRY_ASSIGN(const auto image, image_dims(l));
  return max_pool_of(l, {.kernel_h = image[2], .kernel_w = image[3]}, ir::Padding::valid);
}

// A depthwise convolution with equal weights rounds once, even if the output has another scale.
Result<void> average_by_weights(Lowering& l, TensorId from, TensorId to, const Window& w) {
  constexpr int32_t kWindowMax = 1 << 8;
  constexpr int64_t kMostTaps = 1 << 24;
  if (w.kernel_h > kWindowMax || w.kernel_w > kWindowMax ||
      int64_t{w.kernel_h} * w.kernel_w * l.graph.tensor(to).shape.dims[3] > kMostTaps)
    return error(ErrorCode::unsupported, "its window is larger than {}x{}", kWindowMax, kWindowMax);
  const int32_t channels = l.graph.tensor(to).shape.dims[3];
  const float share = 1.0F / static_cast<float>(w.kernel_h * w.kernel_w);
  const int zero = l.type() == ir::DType::int8 ? 0 : 128;
  Bytes ones(static_cast<size_t>(channels) * static_cast<size_t>(w.kernel_h * w.kernel_w),
             static_cast<uint8_t>(zero + 1));
  const TensorId by = l.constant(l.type(), {1, w.kernel_h, w.kernel_w, channels}, std::move(ones),
                                 {.scales = {share}, .zero_points = {zero}});
  l.emit(OpKind::depthwise_conv_2d,
         ir::ConvAttrs{.padding = ir::Padding::valid, .stride_h = w.stride_h, .stride_w = w.stride_w},
         {from, by, ir::kNoTensor}, to);
  return {};
}

Result<void> average_pool(Lowering& l) {
  SK_TRY_ASSIGN(const auto image, image_dims(l));
  SK_TRY_ASSIGN(const auto out, output_image_dims(l));
  if (int_of(l.node(), "channels_last", 0) != 0) return error(ErrorCode::unsupported, "its channels are last");
  SK_TRY_ASSIGN(const Window w, pool_window(l, image, out));
  SK_TRY_ASSIGN(TensorId from, pooled(l, w));
  SK_TRY_ASSIGN(const Output to, write_image(l));
  const bool counts = int_of(l.node(), "count_include_pad", 0) != 0;
  const ir::Quant quant = l.graph.tensor(from).quant;
  if (!w.none() && !counts) {
    if (padding_of(w, image, out) != ir::Padding::same)
      return error(ErrorCode::unsupported, "its padding is not that of SAME_UPPER");
    SK_TRY(l.emit_rounded(OpKind::average_pool_2d, pool_attrs(w, ir::Padding::same), {from}, quant, to.image));
    return finish(l, to);
  }
  if (int_of(l.node(), "ceil_mode", 0) != 0 && !w.none())
    return error(ErrorCode::unsupported, "its last windows reach beyond the padding");
  if (!w.none()) from = padded(l, from, w);
  if (l.graph.tensor(to.value).quant != quant) {
    SK_TRY(average_by_weights(l, from, to.image, w));
  } else {
    l.emit(OpKind::average_pool_2d, pool_attrs(w, ir::Padding::valid), {from}, to.image);
  }
  return finish(l, to);
}

Result<void> mean_of_image(Lowering& l) {
  SK_TRY_ASSIGN(const auto image, image_dims(l));
  SK_TRY_ASSIGN(const auto out, l.dims(l.unit().outputs.at(0).value));
  SK_TRY_ASSIGN(const TensorId from, read_image(l));
  const bool keeps = out.size() > 2;
  SK_TRY_ASSIGN(const TensorId to, l.write(0, keeps ? Layout::channels_last : Layout::plain));
  const TensorId mean = keeps ? image_like(l, to) : to;
  l.emit(OpKind::mean, ir::ReduceAttrs{.keep_dims = keeps}, {from, l.ints({1, 2})}, mean);
  return finish(l, {to, mean});
}

Result<void> global_average_pool(Lowering& l) {
  if (int_of(l.node(), "channels_last", 0) != 0) return error(ErrorCode::unsupported, "its channels are last");
  SK_TRY(output_image_dims(l));
  return mean_of_image(l);
}

Result<void> reduce_mean(Lowering& l) {
  std::vector<int64_t> axes = ints_of(l.node(), "axes");
  SK_TRY_ASSIGN(const auto given, l.list(1));
  if (given) axes = *given;
  for (int64_t& axis : axes) axis += axis < 0 ? 4 : 0;
  std::ranges::sort(axes);
  if (is_sequence(l) || axes != std::vector<int64_t>{2, 3} || l.unit().outputs.size() != 1)
    return error(ErrorCode::unsupported, "it is a mean over axes other than rows and columns");
  return mean_of_image(l);
}

constexpr std::array kRows = {
    LowerRow{"Conv", conv, true},
    LowerRow{"ConvTranspose", conv_transpose},
    LowerRow{"Gemm", gemm, true},
    LowerRow{"MatMul", matmul, true},
    LowerRow{"MaxPool", max_pool},
    LowerRow{"AveragePool", average_pool},
    LowerRow{"GlobalAveragePool", global_average_pool},
    LowerRow{"GlobalMaxPool", global_max_pool},
    LowerRow{"ReduceMean", reduce_mean},
};

}  // namespace

std::span<const LowerRow> weighted_ops() { return kRows; }

}  // namespace skillet::onnx
