// Removes strides without effect, where rows or columns have one window. Replaces an even stride of 4 or more (patches
// of a vision transformer, the first layer of AlexNet) that the chip does not support: convolutions that turn blocks of
// 2x2 pixels into channels reduce it to stride 2 or 3.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/int_math.h"
#include "graph/passes/lower/picks.h"
#include "graph/passes/lower/strides.h"

namespace skillet::passes {
namespace {

void unstride_op(Rewriter& rewriter, ir::OpId id) {
  const ir::Op op = rewriter.op(id);
  if (op.kind == ir::OpKind::transpose_conv || op.inputs.empty()) return;
  const ir::Shape in = rewriter.tensor(op.inputs[0]).shape;
  const auto try_all = [&](const auto& choices) {
    for (const auto& attrs : choices) {
      ir::Op by = op;
      by.attrs = attrs;
      const bool is_all = attrs.stride_h == 1 && attrs.stride_w == 1;
      std::string text = is_all ? fmt::format("{} of one window needs no stride", ir::op_name(op))
                                : fmt::format("{} of one row or column of windows: strides of {}x{}", ir::op_name(op),
                                              attrs.stride_h, attrs.stride_w);
      if (rewriter.replace(id, {std::move(by)}, std::move(text))) return;
    }
  };
  if (const auto* conv = std::get_if<ir::ConvAttrs>(&op.attrs)) {
    const ir::Shape& filter = rewriter.tensor(op.inputs[1]).shape;
    try_all(with_other_strides(*conv, in, int64_t{filter[1] - 1} * conv->dilation_h + 1,
                               int64_t{filter[2] - 1} * conv->dilation_w + 1));
  } else if (const auto* pool = std::get_if<ir::PoolAttrs>(&op.attrs)) {
    try_all(with_other_strides(*pool, in, pool->filter_h, pool->filter_w));
  }
}

// Channel `c` of pixel (y, x) of each block becomes channel (2 y + x) channels + c.
ir::Op blocks(Rewriter& rewriter, ir::TensorId from) {
  const ir::Tensor image = rewriter.tensor(from);
  const int32_t rows = image.shape[1], columns = image.shape[2], channels = image.shape[3];
  const bool is_even = rows % 2 == 0 && columns % 2 == 0;
  ir::Op op{.kind = ir::OpKind::conv_2d,
            .attrs = ir::ConvAttrs{
                .padding = is_even ? ir::Padding::valid : ir::Padding::same, .stride_h = 2, .stride_w = 2}};
  op.inputs = {from,
               picks_in_order(rewriter, image.name + "/blocks/picks", image.dtype, {4 * channels, 2, 2, channels}),
               ir::kNoTensor};
  op.outputs = {rewriter.add_like(image, "/blocks", {1, ceil_div(rows, 2), ceil_div(columns, 2), 4 * channels})};
  return op;
}

// A filter along one dimension, of pixels, converted to blocks.
struct Halved {
  int32_t lead = 0, taps = 0;  // zeros before its first weight; size in blocks
};

// A filter that has the same windows with the wanted padding.
std::optional<Halved> halved(int32_t in, int32_t kernel, int32_t stride, ir::Padding from, ir::Padding to) {
  const bool was_same = from == ir::Padding::same;
  const SamePads old = same_pads(in, kernel, stride, 1);
  const int32_t before = was_same ? old.before : 0, outputs = was_same ? old.outputs : (in - kernel) / stride + 1;
  const int32_t size = ceil_div(in, 2), step = stride / 2;
  for (int32_t lead = before % 2; lead < 4; lead += 2) {
    for (int32_t more = 0; more < 3; ++more) {
      const int32_t taps = ceil_div(lead + kernel, 2) + more, above = (before + lead) / 2;
      const SamePads pads = same_pads(size, taps, step, 1);
      const bool fits = to == ir::Padding::same ? pads.outputs == outputs && pads.before == above
                                                : above == 0 && taps <= size && (size - taps) / step + 1 == outputs;
      if (fits) return Halved{lead, taps};
    }
  }
  return std::nullopt;
}

// Filter over the image in blocks of 2x2.
ir::TensorId filter_of_blocks(Rewriter& rewriter, ir::TensorId id, const Halved& rows, const Halved& columns) {
  const ir::Tensor filter = rewriter.tensor(id);
  const int32_t height = filter.shape[1], width = filter.shape[2], channels = filter.shape[3];
  const ir::Shape shape = {filter.shape[0], rows.taps, columns.taps, 4 * channels};
  Bytes bytes;
  bytes.reserve(static_cast<size_t>(shape.elems()));
  for (int32_t out = 0; out < filter.shape[0]; ++out)
    for (int32_t block = 0; block < rows.taps * columns.taps; ++block)
      for (int32_t pixel = 0; pixel < 4; ++pixel) {
        const int32_t y = block / columns.taps * 2 + pixel / 2 - rows.lead;
        const int32_t x = block % columns.taps * 2 + pixel % 2 - columns.lead;
        if (y >= 0 && y < height && x >= 0 && x < width) {
          const auto tap = filter.data.begin() + ((int64_t{out} * height + y) * width + x) * channels;
          bytes.insert(bytes.end(), tap, tap + channels);
        } else {
          bytes.insert(bytes.end(), static_cast<size_t>(channels), static_cast<uint8_t>(filter.quant.zero_point()));
        }
      }
  return rewriter.add_constant(filter.name + "/blocks", filter.dtype, shape, std::move(bytes), filter.quant);
}

bool has_large_stride(const Rewriter& rewriter, const ir::Op& op) {
  const auto* conv = std::get_if<ir::ConvAttrs>(&op.attrs);
  if (op.kind != ir::OpKind::conv_2d || conv == nullptr || op.inputs[0] == ir::kNoTensor) return false;
  const ir::Tensor &image = rewriter.tensor(op.inputs[0]), &filter = rewriter.tensor(op.inputs[1]);
  constexpr int32_t kStrideMax = 32;
  constexpr int64_t kFilterMax = 1 << 20;  // weights of filters that select
  const int32_t side = conv->stride_h;
  const int64_t picks = int64_t{image.shape[3]} * side * side / 4;
  return side >= 4 && side <= kStrideMax && side % 2 == 0 && conv->stride_w == side && filter.is_constant() &&
         ir::is_8bit(filter.dtype) && ir::all_equal(filter.quant.zero_points) && filter.shape[3] == image.shape[3] &&
         conv->dilation_h == 1 && conv->dilation_w == 1 && !conv->rows && is_computed_byte(image) &&
         image.shape[0] == 1 && image.shape.elems() > 0 && picks * picks <= kFilterMax &&
         4 * filter.shape.elems() <= kDenseBytesMax;
}

// Halves the stride; false if no such filter has the same windows.
bool halve(Rewriter& rewriter, ir::Op& op, std::vector<ir::Op>& by) {
  auto& conv = std::get<ir::ConvAttrs>(op.attrs);
  const ir::Shape image = rewriter.tensor(op.inputs[0]).shape, filter = rewriter.tensor(op.inputs[1]).shape;
  for (const ir::Padding padding : {ir::Padding::valid, ir::Padding::same}) {
    const auto rows = halved(image[1], filter[1], conv.stride_h, conv.padding, padding);
    const auto columns = halved(image[2], filter[2], conv.stride_w, conv.padding, padding);
    if (!rows || !columns) continue;
    by.push_back(blocks(rewriter, op.inputs[0]));
    op.inputs[0] = by.back().outputs[0];
    op.inputs[1] = filter_of_blocks(rewriter, op.inputs[1], *rows, *columns);
    conv.stride_h = conv.stride_w = conv.stride_h / 2;
    conv.padding = padding;
    return true;
  }
  return false;
}

void large_stride(Rewriter& rewriter, ir::OpId id) {
  ir::Op op = rewriter.op(id);
  if (!has_large_stride(rewriter, op) || rewriter.level(id) != Level::refused) return;
  const auto& conv = std::get<ir::ConvAttrs>(op.attrs);
  const int32_t stride = conv.stride_h;
  std::vector<ir::Op> by;
  while (conv.stride_h > 2 && conv.stride_h % 2 == 0) {
    if (!halve(rewriter, op, by)) return rewriter.drop();
  }
  std::string text =
      fmt::format("CONV_2D of stride {} becomes {}, the last of stride {}", stride, by.size() + 1, conv.stride_h);
  by.push_back(std::move(op));
  rewriter.replace(id, std::move(by), std::move(text));
}

}  // namespace

void remove_strides(Rewriter& rewriter, ir::OpId id) {
  unstride_op(rewriter, id);
  large_stride(rewriter, id);
}

}  // namespace skillet::passes
