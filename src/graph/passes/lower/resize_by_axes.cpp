// The only losses are the rounding between rows and columns, half a step, and the error of weights: they are whole
// parts of up to 127, so sizes that need other weights are not rewritten.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "graph/passes/lower/by_axes.h"
#include "graph/passes/lower/resize.h"
#include "graph/ref/resize.h"

namespace skillet::passes {
namespace {

constexpr int32_t kPartsMax = 127;
constexpr double kOffMax = 0.35;  // largest error of weights in steps, both axes together

// Weights of a row or column of the result, in units of 1 / parts.
struct Taps {
  std::vector<ref::BilinearTap> taps;
  int32_t parts = 64;
  double off = 0;
};

double off_by(const std::vector<ref::BilinearTap>& taps, int32_t parts) {
  double off = 0;
  for (const ref::BilinearTap& tap : taps) {
    const double high = tap.from_low * parts;
    if (tap.low != tap.high) off = std::max(off, 255 * std::abs(high - std::round(high)) / parts);
  }
  return off;
}

Taps in_parts(std::vector<ref::BilinearTap> taps) {
  Taps out{.taps = std::move(taps)};
  out.off = off_by(out.taps, out.parts);
  for (int32_t parts = kPartsMax; out.off > 0 && parts > 1; --parts) {
    if (const double off = off_by(out.taps, parts); off < out.off) out.off = off, out.parts = parts;
  }
  return out;
}

AxisParts axis_of(const Taps& of) {
  AxisParts out{.places = {}, .whole = of.parts};
  for (const ref::BilinearTap& tap : of.taps) {
    // At an edge both are one pixel: the sum is right.
    const auto high = static_cast<int32_t>(std::lround(tap.from_low * of.parts));
    out.places.push_back({{static_cast<int32_t>(tap.low), of.parts - high}, {static_cast<int32_t>(tap.high), high}});
  }
  return out;
}

using TwoTaps = std::optional<std::array<Taps, 2>>;

TwoTaps bilinear_taps(const Rewriter& rewriter, const ir::Op& op) {
  const ir::Tensor& from = rewriter.tensor(op.inputs[0]);
  const ir::Shape& to = rewriter.tensor(op.outputs[0]).shape;
  const auto taps = [&](int axis) {
    return in_parts(ref::bilinear_taps(from.dtype, from.shape[axis], to[axis], op.as<ir::ResizeAttrs>()));
  };
  return std::array{taps(1), taps(2)};
}

TwoTaps mirrored_taps(const Rewriter& rewriter, const ir::Op& op) {
  const auto edges = mirrored_edges(rewriter, op);
  if (!edges) return std::nullopt;
  std::array<Taps, 2> out;
  for (const size_t axis : {size_t{0}, size_t{1}}) {
    const auto add = [&](int32_t place) {
      out[axis].taps.push_back({static_cast<size_t>(place), static_cast<size_t>(place), 0});
    };
    std::ranges::for_each((*edges)[axis].before, add);
    for (int32_t place = 0; place < rewriter.tensor(op.inputs[0]).shape[static_cast<int>(axis) + 1]; ++place)
      add(place);
    std::ranges::for_each((*edges)[axis].behind, add);
  }
  return out;
}

// What is beyond the image does not count. Nothing: rows of other numbers of places have no common parts.
std::optional<AxisParts> windows_of(int32_t size, int32_t filter, int32_t stride, bool pads, int32_t outputs) {
  AxisParts out{.places = {}, .whole = 1};
  const int64_t before = pads ? same_pads(size, filter, stride, 1).before : 0;
  for (int32_t i = 0; i < outputs; ++i) {
    const int64_t at = int64_t{i} * stride - before;
    const auto first = static_cast<int32_t>(std::max<int64_t>(at, 0));
    const auto end = static_cast<int32_t>(std::min<int64_t>(at + filter, size));
    if (first >= end || end - first > kPartsMax) return std::nullopt;
    out.whole = std::lcm(out.whole, end - first);
    if (out.whole > kPartsMax) return std::nullopt;
    std::vector<MixturePart>& places = out.places.emplace_back();
    for (int32_t place = first; place < end; ++place) places.push_back({place, 1});
  }
  for (std::vector<MixturePart>& places : out.places) {
    for (MixturePart& place : places) place.amount = out.whole / static_cast<int32_t>(places.size());
  }
  return out;
}

}  // namespace

bool is_resized_image(const Rewriter& rewriter, const ir::Op& op) {
  if (op.inputs.size() != 2 || op.outputs.size() != 1 || op.inputs[0] == ir::kNoTensor) return false;
  const ir::Tensor &from = rewriter.tensor(op.inputs[0]), &to = rewriter.tensor(op.outputs[0]);
  return rewriter.tensor(op.inputs[1]).is_constant() && is_computed_byte(from) && is_computed_byte(to) &&
         same_meaning(from, to) && from.shape.rank() == 4 && to.shape.rank() == 4 && from.shape[0] == 1 &&
         from.shape.elems() > 0 && to.shape.elems() > 0;
}

std::optional<std::array<MirroredEdges, 2>> mirrored_edges(const Rewriter& rewriter, const ir::Op& op) {
  const ir::Shape &from = rewriter.tensor(op.inputs[0]).shape, &to = rewriter.tensor(op.outputs[0]).shape;
  const ir::Tensor& amounts = rewriter.tensor(op.inputs[1]);
  if (amounts.dtype != ir::DType::int32 || amounts.shape.elems() != 8 || to[0] != 1 || to[3] != from[3])
    return std::nullopt;
  const std::vector<int32_t> pads = amounts.values<int32_t>();
  const int32_t skip = op.as<ir::MirrorPadAttrs>().symmetric ? 0 : 1;
  std::array<MirroredEdges, 2> out;
  for (const size_t axis : {size_t{1}, size_t{2}}) {
    const int32_t last = from[static_cast<int>(axis)] - 1;
    for (int32_t i = pads[2 * axis]; i > 0; --i) out[axis - 1].before.push_back(i - 1 + skip);
    for (int32_t i = 0; i < pads[2 * axis + 1]; ++i) out[axis - 1].behind.push_back(last - i - skip);
  }
  return out;
}

void resize_by_axes(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  const bool mirrors = old.kind == ir::OpKind::mirror_pad;
  if ((!mirrors && (old.kind != ir::OpKind::resize_bilinear || !rewriter.may_be_off())) ||
      !is_resized_image(rewriter, old) || rewriter.level(id) != Level::refused)
    return;
  const auto taps = mirrors ? mirrored_taps(rewriter, old) : bilinear_taps(rewriter, old);
  if (!taps) return;
  const Taps &rows = (*taps)[0], &columns = (*taps)[1];
  std::vector<ir::Op> ops;
  if (rows.off + columns.off <= kOffMax)
    ops = by_axes(rewriter, old.inputs[0], old.outputs[0], axis_of(rows), axis_of(columns));
  if (ops.empty()) return rewriter.drop();
  rewriter.replace(id, std::move(ops),
                   fmt::format("{} becomes CONV_2D 1x1 over rows and over columns", ir::op_name(old)), mirrors ? 0 : 1);
}

void average_by_axes(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  if (old.kind != ir::OpKind::average_pool_2d || !rewriter.may_be_off()) return;
  const ir::Tensor from = rewriter.tensor(old.inputs[0]), to = rewriter.tensor(old.outputs[0]);
  const auto& attrs = old.as<ir::PoolAttrs>();
  if (attrs.rows || !is_computed_byte(from) || !is_computed_byte(to) || !same_meaning(from, to) || from.shape[0] != 1 ||
      from.shape.elems() < 1 || rewriter.level(id) != Level::refused)
    return;
  const bool pads = attrs.padding == ir::Padding::same;
  const auto rows = windows_of(from.shape[1], attrs.filter_h, attrs.stride_h, pads, to.shape[1]);
  const auto columns = windows_of(from.shape[2], attrs.filter_w, attrs.stride_w, pads, to.shape[2]);
  if (!rows || !columns) return;
  std::vector<ir::Op> ops = by_axes(rewriter, old.inputs[0], old.outputs[0], *rows, *columns, attrs.activation);
  if (ops.empty()) return rewriter.drop();
  rewriter.replace(id, std::move(ops), "AVERAGE_POOL_2D becomes CONV_2D 1x1 over rows and over columns", 1);
}

}  // namespace skillet::passes
