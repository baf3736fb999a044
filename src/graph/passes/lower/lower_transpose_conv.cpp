// TRANSPOSE_CONV becomes a convolution that computes all phases of the output as channels, and DEPTH_TO_SPACE that puts
// them in place; RESHAPE if only columns have phases, or images are one column wide. The filter of a phase covers a
// window of the image centred at its pixel. If the output ends elsewhere, the image is padded at its end, and a
// convolution with a single 1 per filter cuts off the surplus. If only rows have phases, adjacent columns become
// channels first, as many as a row has phases, so that columns have as many phases.
#include <algorithm>
#include <utility>

#include "base/int_math.h"
#include "graph/passes/rewrite.h"

namespace skillet::passes {
namespace {

constexpr int64_t kBytesMax = 1 << 25;  // of the filters
constexpr int32_t kStrideMax = 16;

// One dimension, rows or columns. Output o = stride * q + phase is the sum over taps t of input q + t - reach times
// weight phase + pad - stride * (t - reach) - part of the filter, if it exists.
struct Axis {
  int32_t stride = 1, kernel = 1, pad = 0, inputs = 0, outputs = 0;
  int32_t parts = 1;  // `stride` if so many adjacent pixels are an input, as channels; the operation has stride 1 then

  int32_t blocks() const { return static_cast<int32_t>(ceil_div(int64_t{outputs}, stride)); }
  int32_t more() const { return std::max(blocks() - inputs, 0); }  // pixels of padding at the image's end
  int32_t cut() const { return (inputs + more()) * stride - outputs; }
  int32_t reach() const {
    const int32_t before = kernel - 1 - pad + parts - 1, after = stride - 1 + pad;
    return std::max({before > 0 ? before / stride : 0, after / stride, 0});
  }
  int32_t taps() const { return 2 * reach() + 1; }
  // Of the filter; -1: it has no such weight.
  int32_t at(int32_t phase, int32_t tap, int32_t part = 0) const {
    const int32_t place = phase + pad - stride * (tap - reach()) - part;
    return place < kernel ? std::max(place, -1) : -1;
  }
};

Axis axis_of(const ir::ConvAttrs& attrs, int32_t stride, int32_t kernel, int32_t inputs, int32_t outputs,
             int32_t parts = 1) {
  Axis axis{.stride = stride * parts, .kernel = kernel, .inputs = inputs / parts, .outputs = outputs, .parts = parts};
  if (attrs.padding == ir::Padding::same) axis.pad = same_pads(outputs, kernel, stride, 1).before;
  return axis;
}

// [output][row][column][input] for each phase of rows and of columns.
Bytes phases(const ir::Tensor& filter, const Axis& rows, const Axis& columns) {
  const auto inputs = static_cast<size_t>(filter.shape[3]);
  const int32_t outputs = filter.shape[0];
  Bytes out;
  for (int32_t phase_y = 0; phase_y < rows.stride; ++phase_y)
    for (int32_t phase_x = 0; phase_x < columns.stride; ++phase_x)
      for (int32_t output = 0; output < outputs; ++output)
        for (int32_t y = 0; y < rows.taps(); ++y)
          for (int32_t x = 0; x < columns.taps() * columns.parts; ++x) {
            const int32_t row = rows.at(phase_y, y);
            const int32_t column = columns.at(phase_x, x / columns.parts, x % columns.parts);
            if (row < 0 || column < 0) {
              out.insert(out.end(), inputs, static_cast<uint8_t>(filter.quant.zero_point()));
              continue;
            }
            const int64_t first = (int64_t{output} * rows.kernel + row) * columns.kernel + column;
            const auto from = filter.data.begin() + static_cast<ptrdiff_t>(first * filter.shape[3]);
            out.insert(out.end(), from, from + filter.shape[3]);
          }
  return out;
}

// Copies the bytes without the last rows and columns.
ir::Op cut_off(Rewriter& rewriter, ir::TensorId from, ir::TensorId to, int32_t rows, int32_t columns) {
  const ir::Tensor out = rewriter.tensor(to);
  const int32_t channels = out.shape[3];
  Bytes one(static_cast<size_t>(channels) * static_cast<size_t>(rows + 1) * static_cast<size_t>(columns + 1), 0);
  std::fill_n(one.begin(), channels, 1);
  ir::Op op{.kind = ir::OpKind::depthwise_conv_2d, .attrs = ir::ConvAttrs{.padding = ir::Padding::valid}};
  op.inputs = {from,
               rewriter.add_constant(out.name + "/first", out.dtype, {1, rows + 1, columns + 1, channels},
                                     std::move(one), {{1.0F}, {0}, 0}),
               ir::kNoTensor};
  op.outputs = {to};
  return op;
}

bool is_plain(const ir::Tensor& in, const ir::Tensor& filter, const ir::Tensor& out) {
  const std::vector<int32_t>& zeros = filter.quant.zero_points;
  return is_computed_byte(in) && is_computed_byte(out) && in.dtype == out.dtype && filter.is_constant() &&
         ir::is_8bit(filter.dtype) && in.shape.elems() > 0 && out.shape.elems() > 0 && filter.shape.elems() > 0 &&
         !zeros.empty() && std::ranges::count(zeros, zeros[0]) == std::ssize(zeros);
}

// The bias, repeated for each phase.
ir::TensorId bias_of(Rewriter& rewriter, const ir::Op& old, int32_t block) {
  if (old.input(3) == ir::kNoTensor) return ir::kNoTensor;
  ir::Tensor bias = rewriter.tensor(old.inputs[3]);
  Bytes bytes;
  for (int32_t i = 0; i < block; ++i) bytes.insert(bytes.end(), bias.data.begin(), bias.data.end());
  bias.quant = repeated(std::move(bias.quant), block);
  return rewriter.add_constant(bias.name + "/phases", ir::DType::int32,
                               {rewriter.tensor(old.inputs[1]).shape[0] * block}, std::move(bytes),
                               std::move(bias.quant));
}

// The convolution of all phases, over an image that ends where `out` does.
ir::Op convolution(Rewriter& rewriter, const ir::Op& old, ir::TensorId image, const Axis& rows, const Axis& columns) {
  const ir::Tensor filter = rewriter.tensor(old.inputs[1]);
  const int32_t block = rows.stride * columns.stride;
  ir::Quant quant = repeated(filter.quant, block);
  const ir::Shape shape{filter.shape[0] * block, rows.taps(), columns.taps(), filter.shape[3] * columns.parts};
  const ir::ConvAttrs attrs{.activation = old.as<ir::ConvAttrs>().activation};
  ir::Op op{.kind = ir::OpKind::conv_2d, .attrs = attrs};
  op.inputs = {image,
               rewriter.add_constant(filter.name + "/phases", filter.dtype, shape, phases(filter, rows, columns),
                                     std::move(quant)),
               ir::kNoTensor};
  op.inputs[2] = bias_of(rewriter, old, block);
  return op;
}

// True if the phases are contiguous in memory.
bool reshapes(const Axis& rows, const Axis& columns) {
  return rows.stride == 1 || (columns.stride == 1 && columns.inputs + columns.more() == 1);
}

// Puts the phases in their places.
ir::Op places(Rewriter& rewriter, ir::TensorId apart, ir::TensorId result, const Axis& rows, const Axis& columns) {
  if (rows.stride != columns.stride) return rewriter.reshape(apart, result);
  return {
      .kind = ir::OpKind::depth_to_space, .attrs = ir::BlockAttrs{rows.stride}, .inputs = {apart}, .outputs = {result}};
}

// The image with adjacent columns as channels, and with padding at its end.
ir::TensorId input_of(Rewriter& rewriter, ir::TensorId image, const Axis& rows, const Axis& columns,
                      std::vector<ir::Op>& ops) {
  ir::Tensor in = rewriter.tensor(image);
  if (columns.parts > 1) {
    const ir::TensorId joined =
        rewriter.add_like(in, "/joined", {in.shape[0], in.shape[1], columns.inputs, in.shape[3] * columns.parts});
    ops.push_back(rewriter.reshape(image, joined));
    image = joined;
    in = rewriter.tensor(image);
  }
  if (rows.more() + columns.more() == 0) return image;
  const ir::TensorId longer = rewriter.add_like(
      in, "/longer", {in.shape[0], in.shape[1] + rows.more(), in.shape[2] + columns.more(), in.shape[3]});
  const ir::TensorId margins =
      rewriter.add_ints(in.name + "/margins", {0, 0, 0, rows.more(), 0, columns.more(), 0, 0}, {4, 2});
  ops.push_back({.kind = ir::OpKind::pad, .inputs = {image, margins}, .outputs = {longer}});
  return longer;
}

}  // namespace

void lower_transpose_conv(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  if (old.kind != ir::OpKind::transpose_conv) return;
  const auto& attrs = old.as<ir::ConvAttrs>();
  const ir::Tensor in = rewriter.tensor(old.inputs[2]), filter = rewriter.tensor(old.inputs[1]);
  const ir::Tensor out = rewriter.tensor(old.outputs[0]);
  const bool bias_known = old.input(3) == ir::kNoTensor || (rewriter.tensor(old.inputs[3]).is_constant() &&
                                                            rewriter.tensor(old.inputs[3]).dtype == ir::DType::int32);
  if (!is_plain(in, filter, out) || !bias_known || std::max(attrs.stride_h, attrs.stride_w) > kStrideMax ||
      !rewriter.tensor(old.inputs[0]).is_constant() || rewriter.level(id) == Level::proven)
    return;
  const Axis rows = axis_of(attrs, attrs.stride_h, filter.shape[1], in.shape[1], out.shape[1]);
  const bool joins = attrs.stride_w == 1 && in.shape[2] % attrs.stride_h == 0;
  const Axis columns =
      axis_of(attrs, attrs.stride_w, filter.shape[2], in.shape[2], out.shape[2], joins ? attrs.stride_h : 1);
  const int32_t block = rows.stride * columns.stride;
  if (rows.stride != columns.stride && !reshapes(rows, columns)) return;
  if (filter.shape.elems() / rows.kernel / columns.kernel >
          kBytesMax / block / rows.taps() / columns.taps() / columns.parts ||
      std::max(rows.cut(), columns.cut()) > 4)
    return;
  std::vector<ir::Op> ops;
  const ir::TensorId image = input_of(rewriter, old.inputs[2], rows, columns, ops);
  const ir::Shape from = rewriter.tensor(image).shape;
  ops.push_back(convolution(rewriter, old, image, rows, columns));
  ir::TensorId result = ops.back().outputs.emplace_back(old.outputs[0]);
  if (block > 1) {
    const bool cuts = rows.cut() + columns.cut() > 0;
    const ir::TensorId apart =
        rewriter.add_like(rewriter.tensor(result), "/phases", {from[0], from[1], from[2], out.shape[3] * block});
    ops.back().outputs = {apart};
    if (cuts)
      result = rewriter.add_like(rewriter.tensor(result), "/whole",
                                 {from[0], from[1] * rows.stride, from[2] * columns.stride, out.shape[3]});
    ops.push_back(places(rewriter, apart, result, rows, columns));
  } else if (rows.cut() + columns.cut() > 0) {
    result = rewriter.add_like(rewriter.tensor(result), "/whole", {from[0], from[1], from[2], out.shape[3]});
    ops.back().outputs = {result};
  }
  if (result != old.outputs[0]) ops.push_back(cut_off(rewriter, result, old.outputs[0], rows.cut(), columns.cut()));
  std::string text = fmt::format("TRANSPOSE_CONV {}x{} becomes CONV_2D {}x{}{}", rows.kernel, columns.kernel,
                                 rows.taps(), columns.taps(),
                                 block == 1                      ? ""
                                 : rows.stride == columns.stride ? " and DEPTH_TO_SPACE"
                                                                 : " and RESHAPE");
  rewriter.replace(id, std::move(ops), std::move(text));
}

}  // namespace skillet::passes
