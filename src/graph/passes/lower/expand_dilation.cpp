// A dilated convolution becomes one with a larger filter: weights that count as zero go between the model's weights.
#include <algorithm>
#include <cstring>
#include <utility>

#include "graph/passes/rewrite.h"

namespace skillet::passes {
namespace {

constexpr int32_t kKernelMax = 64;
constexpr int64_t kBytesMax = 1 << 24;

// Layout [first][rows][columns][last], which covers both kinds of filters.
Bytes spread(const ir::Tensor& filter, int32_t step_y, int32_t step_x, const ir::Shape& to) {
  const auto rows = static_cast<size_t>(filter.shape[1]), columns = static_cast<size_t>(filter.shape[2]);
  const auto last = static_cast<size_t>(filter.shape[3]), first = static_cast<size_t>(filter.shape[0]);
  Bytes out(static_cast<size_t>(to.elems()), static_cast<uint8_t>(filter.quant.zero_point()));
  for (size_t f = 0; f < first; ++f) {
    for (size_t y = 0; y < rows; ++y) {
      for (size_t x = 0; x < columns; ++x) {
        const size_t row = f * static_cast<size_t>(to[1]) + y * static_cast<size_t>(step_y);
        const size_t at = (row * static_cast<size_t>(to[2]) + x * static_cast<size_t>(step_x)) * last;
        std::memcpy(out.data() + at, filter.data.data() + ((f * rows + y) * columns + x) * last, last);
      }
    }
  }
  return out;
}

bool is_plain(const ir::Tensor& filter) {
  const std::vector<int32_t>& zeros = filter.quant.zero_points;
  return filter.is_constant() && ir::is_8bit(filter.dtype) && filter.shape.rank() == 4 && !filter.quant.empty() &&
         filter.shape.elems() > 0 && std::ranges::count(zeros, zeros[0]) == std::ssize(zeros);
}

}  // namespace

void expand_dilation(Rewriter& rewriter, ir::OpId id) {
  ir::Op op = rewriter.op(id);
  if (op.kind != ir::OpKind::conv_2d && op.kind != ir::OpKind::depthwise_conv_2d) return;
  auto& attrs = std::get<ir::ConvAttrs>(op.attrs);
  const ir::Tensor filter = rewriter.tensor(op.inputs[1]);
  if ((attrs.dilation_h == 1 && attrs.dilation_w == 1) || !is_plain(filter)) return;
  ir::Shape shape = filter.shape;
  const int64_t rows = int64_t{shape[1] - 1} * attrs.dilation_h + 1;
  const int64_t columns = int64_t{shape[2] - 1} * attrs.dilation_w + 1;
  if (rows > kKernelMax || columns > kKernelMax || rows * columns * shape[0] * shape[3] > kBytesMax) return;
  shape.dims[1] = static_cast<int32_t>(rows);
  shape.dims[2] = static_cast<int32_t>(columns);
  if (rewriter.level(id) == Level::proven) return;
  Bytes bytes = spread(filter, attrs.dilation_h, attrs.dilation_w, shape);
  std::string text = fmt::format("{} with dilation {}x{} becomes one of {}x{}", ir::op_name(op), attrs.dilation_h,
                                 attrs.dilation_w, rows, columns);
  op.inputs[1] =
      rewriter.add_constant(filter.name + "/dilated", filter.dtype, std::move(shape), std::move(bytes), filter.quant);
  attrs.dilation_h = attrs.dilation_w = 1;
  rewriter.replace(id, {std::move(op)}, std::move(text));
}

}  // namespace skillet::passes
