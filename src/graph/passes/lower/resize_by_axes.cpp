// The only losses are the rounding between rows and columns, half a step, and the error of weights: they are whole
// parts of up to 127, so sizes that need other weights are not rewritten.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "graph/passes/lower/resize.h"
#include "graph/ref/resize.h"

namespace skillet::passes {
namespace {

constexpr int64_t kMacsMax = 1 << 27;  // per axis: above this, transposes take longer than the CPU
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

class ByAxes {
 public:
  ByAxes(Rewriter& rewriter, const ir::Op& op) : rewriter_(rewriter), op_(op), to_(rewriter.tensor(op.outputs[0])) {}

  // Empty: weights would be too inexact, or there are too many.
  std::vector<ir::Op> run(const Taps& of_rows, const Taps& of_columns) {
    const ir::Shape from = rewriter_.tensor(op_.inputs[0]).shape;
    const int64_t elems = from.elems();
    if (of_rows.off + of_columns.off > kOffMax || elems > kMacsMax / std::max(1, to_.shape[1]) ||
        elems / from[1] * to_.shape[1] > kMacsMax / std::max(1, to_.shape[2]))
      return {};
    const ir::TensorId rows = resized(turned(op_.inputs[0]), of_rows);
    const ir::TensorId columns = resized(turned(rows), of_columns);
    turn(columns, op_.outputs[0]);
    return std::move(ops_);
  }

 private:
  void turn(ir::TensorId from, ir::TensorId to) {
    ir::Op op{.kind = ir::OpKind::transpose};
    op.inputs = {from, rewriter_.add_ints(rewriter_.tensor(to).name + "/order", {0, 2, 3, 1})};
    op.outputs = {to};
    ops_.push_back(std::move(op));
  }
  ir::TensorId turned(ir::TensorId from) {
    const ir::Shape shape = rewriter_.tensor(from).shape;
    const ir::TensorId to =
        rewriter_.add_like(to_, ops_.empty() ? "/rows" : "/columns", {1, shape[2], shape[3], shape[1]});
    turn(from, to);
    return to;
  }
  ir::TensorId resized(ir::TensorId from, const Taps& of) {
    const ir::Tensor image = rewriter_.tensor(from);
    const auto inputs = static_cast<size_t>(image.shape[3]);
    const auto size = static_cast<int32_t>(of.taps.size());
    Bytes weights(of.taps.size() * inputs, 0);
    for (size_t i = 0; i < of.taps.size(); ++i) {
      // At an edge both taps are the same pixel: the sum is right.
      const auto high = static_cast<int32_t>(std::lround(of.taps[i].from_low * of.parts));
      weights[i * inputs + of.taps[i].low] += static_cast<uint8_t>(of.parts - high);
      weights[i * inputs + of.taps[i].high] += static_cast<uint8_t>(high);
    }
    const ir::TensorId to = rewriter_.add_like(to_, ops_.size() == 1 ? "/by_rows" : "/by_columns",
                                               {1, image.shape[1], image.shape[2], size});
    const std::string name = rewriter_.tensor(to).name + "/parts";
    ir::Op op{.kind = ir::OpKind::conv_2d, .attrs = ir::ConvAttrs{.padding = ir::Padding::valid}};
    op.inputs = {from,
                 rewriter_.add_constant(name, image.dtype, {size, 1, 1, image.shape[3]}, std::move(weights),
                                        {{1.0F / static_cast<float>(of.parts)}, {0}, 0}),
                 ir::kNoTensor};
    op.outputs = {to};
    ops_.push_back(std::move(op));
    return to;
  }

  Rewriter& rewriter_;
  const ir::Op op_;
  const ir::Tensor to_;
  std::vector<ir::Op> ops_;
};

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
  std::vector<ir::Op> ops = ByAxes(rewriter, old).run((*taps)[0], (*taps)[1]);
  if (ops.empty()) return rewriter.drop();
  rewriter.replace({.ops = {id},
                    .kept = id,
                    .by = std::move(ops),
                    .text = fmt::format("{} becomes CONV_2D 1x1 over rows and over columns", ir::op_name(old)),
                    .off = mirrors ? 0 : 1});
}

}  // namespace skillet::passes
