// Lowers a convolution whose dilation is larger than the chip's to one without dilation: the pixels of each phase are
// moved next to each other, with zeros between phases, and the results are moved back. Before that, rows and columns
// of the filter that only ever read padding are removed.
#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "graph/passes/lower/by_axes.h"

namespace skillet::passes {
namespace {

constexpr int64_t kBytesMax = 1 << 24;

// One dimension of the image, the filter and the result.
struct Axis {
  int32_t size = 0, kernel = 1, dilation = 1, outputs = 0;
  int32_t half() const { return kernel / 2; }
  bool pads() const { return outputs == size; }
};

// Nothing unless the filter is odd and its middle is at each pixel of the result (SAME), or the filter is always inside
// the image (VALID).
std::optional<std::array<Axis, 2>> axes_of(const Rewriter& rewriter, const ir::Op& op) {
  const auto& attrs = op.as<ir::ConvAttrs>();
  const ir::Shape from = rewriter.tensor(op.inputs[0]).shape, to = rewriter.tensor(op.outputs[0]).shape;
  const ir::Shape filter = rewriter.tensor(op.inputs[1]).shape;
  if (from.rank() != 4 || to.rank() != 4 || filter.rank() != 4 || from[0] != 1 || from.elems() < 1 || attrs.rows ||
      attrs.stride_h != 1 || attrs.stride_w != 1)
    return std::nullopt;
  std::array out = {Axis{from[1], filter[1], attrs.dilation_h, to[1]},
                    Axis{from[2], filter[2], attrs.dilation_w, to[2]}};
  for (Axis& axis : out) axis.dilation = axis.kernel == 1 ? 1 : axis.dilation;
  for (const Axis& axis : out) {
    const int64_t reach = int64_t{axis.kernel - 1} * axis.dilation;
    if (axis.kernel % 2 == 0 || axis.outputs != axis.size - (attrs.padding == ir::Padding::same ? 0 : reach))
      return std::nullopt;
  }
  return out;
}

// The number of filter rows on each side of the middle that read the image at some pixel.
int32_t reached(const Axis& axis) {
  return axis.pads() ? std::min(axis.half(), (axis.size - 1) / axis.dilation) : axis.half();
}

// The middle rows and columns of a filter [first][row][column][last].
Bytes middle(const ir::Tensor& filter, int32_t rows, int32_t columns) {
  const ir::Shape& from = filter.shape;
  const auto last = static_cast<size_t>(from[3]);
  Bytes out(static_cast<size_t>(from[0]) * static_cast<size_t>(rows * columns) * last);
  uint8_t* to = out.data();
  for (int32_t first = 0; first < from[0]; ++first) {
    for (int32_t row = 0; row < rows; ++row) {
      const int32_t y = from[1] / 2 - rows / 2 + row, x = from[2] / 2 - columns / 2;
      const auto at = static_cast<size_t>((int64_t{first} * from[1] + y) * from[2] + x);
      std::memcpy(to, filter.data.data() + at * last, static_cast<size_t>(columns) * last);
      to += static_cast<size_t>(columns) * last;
    }
  }
  return out;
}

void leave_out_padding(Rewriter& rewriter, ir::OpId id, const std::array<Axis, 2>& axes) {
  ir::Op op = rewriter.op(id);
  const ir::Tensor filter = rewriter.tensor(op.inputs[1]);
  const int32_t rows = 2 * reached(axes[0]) + 1, columns = 2 * reached(axes[1]) + 1;
  if (rows == filter.shape[1] && columns == filter.shape[2]) return;
  ir::Shape shape = filter.shape;
  shape.dims[1] = rows, shape.dims[2] = columns;
  op.inputs[1] = rewriter.add_constant(filter.name + "/middle", filter.dtype, std::move(shape),
                                       middle(filter, rows, columns), filter.quant);
  auto& attrs = std::get<ir::ConvAttrs>(op.attrs);
  if (rows == 1) attrs.dilation_h = 1;
  if (columns == 1) attrs.dilation_w = 1;
  std::string text = fmt::format("{} of {}x{} with dilation {}x{} sees the image by {}x{}", ir::op_name(op),
                                 filter.shape[1], filter.shape[2], axes[0].dilation, axes[1].dilation, rows, columns);
  rewriter.replace({.ops = {id}, .kept = id, .by = {std::move(op)}, .text = std::move(text), .must_help = false});
}

// The row of the image at each row of the phases; -1: a row of zeros between phases.
std::vector<int32_t> phases_of(const Axis& axis) {
  std::vector<int32_t> out;
  for (int32_t phase = 0; phase < std::min(axis.dilation, axis.size); ++phase) {
    if (phase > 0) out.insert(out.end(), static_cast<size_t>(axis.half()), -1);
    for (int32_t at = phase; at < axis.size; at += axis.dilation) out.push_back(at);
  }
  return out;
}

AxisParts moved(const std::vector<int32_t>& places) {
  AxisParts out;
  for (const int32_t place : places) {
    out.places.emplace_back();
    if (place >= 0) out.places.back().push_back({place, out.whole});
  }
  return out;
}

// Moves the results back from their places in the phases.
AxisParts returned(const Axis& axis, const std::vector<int32_t>& phases) {
  const int32_t first = axis.pads() ? 0 : axis.half() * axis.dilation;
  std::vector<int32_t> places(static_cast<size_t>(axis.outputs));
  for (size_t at = 0; at < phases.size(); ++at) {
    const int32_t result = phases[at] - first;
    if (phases[at] >= 0 && result >= 0 && result < axis.outputs)
      places[static_cast<size_t>(result)] = static_cast<int32_t>(at);
  }
  return moved(places);
}

void rewrite(Rewriter& rewriter, ir::OpId id, const std::array<Axis, 2>& axes) {
  ir::Op op = rewriter.op(id);
  const ir::TensorId from = op.inputs[0], to = op.outputs[0];
  const std::vector<int32_t> rows = phases_of(axes[0]), columns = phases_of(axes[1]);
  const auto height = static_cast<int32_t>(rows.size()), width = static_cast<int32_t>(columns.size());
  const ir::Tensor image = rewriter.tensor(from), result = rewriter.tensor(to);
  op.inputs[0] = rewriter.add_like(image, "/phases", {1, height, width, image.shape[3]});
  op.outputs[0] = rewriter.add_like(result, "/phases", {1, height, width, result.shape[3]});
  auto& attrs = std::get<ir::ConvAttrs>(op.attrs);
  attrs.dilation_h = attrs.dilation_w = 1;
  attrs.padding = ir::Padding::same;
  std::vector<ir::Op> ops = by_axes(rewriter, from, op.inputs[0], moved(rows), moved(columns));
  std::vector<ir::Op> back = by_axes(rewriter, op.outputs[0], to, returned(axes[0], rows), returned(axes[1], columns));
  if (ops.empty() || back.empty()) return rewriter.drop();
  std::string text = fmt::format("{} with dilation {}x{} becomes one of {}x{} pixels, side by side", ir::op_name(op),
                                 axes[0].dilation, axes[1].dilation, height, width);
  ops.push_back(std::move(op));
  std::ranges::move(back, std::back_inserter(ops));
  rewriter.replace(id, std::move(ops), std::move(text));
}

}  // namespace

void lower_dilation_as_phases(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  if (old.kind != ir::OpKind::conv_2d && old.kind != ir::OpKind::depthwise_conv_2d) return;
  const auto& attrs = old.as<ir::ConvAttrs>();
  if (attrs.dilation_h == 1 && attrs.dilation_w == 1) return;
  const ir::Tensor& filter = rewriter.tensor(old.inputs[1]);
  if (!filter.is_constant() || !ir::is_8bit(filter.dtype) || filter.shape.elems() > kBytesMax ||
      !is_computed_byte(rewriter.tensor(old.inputs[0])) || !is_computed_byte(rewriter.tensor(old.outputs[0])) ||
      rewriter.level(id) != Level::refused)
    return;
  auto axes = axes_of(rewriter, old);
  if (!axes) return;
  leave_out_padding(rewriter, id, *axes);
  if (rewriter.op(id).kind != old.kind) return;
  axes = axes_of(rewriter, rewriter.op(id));
  const auto& now = rewriter.op(id).as<ir::ConvAttrs>();
  if (axes && (now.dilation_h != 1 || now.dilation_w != 1) && rewriter.level(id) == Level::refused)
    rewrite(rewriter, id, *axes);
}

}  // namespace skillet::passes
