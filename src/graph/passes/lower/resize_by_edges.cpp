// The average of `factor` repeated pixels around a place is the value between two pixels. SLICE and CONCATENATION
// repeat the edges first; a filter that is as wide as both edges removes them.
#include <algorithm>
#include <cmath>
#include <utility>

#include "graph/passes/lower/resize.h"
#include "graph/ref/resize.h"

namespace skillet::passes {
namespace {

constexpr int32_t kFactorMax = 8;
constexpr size_t kEdgeMax = 16;   // rows or columns before or after an image
constexpr double kOffMax = 0.35;  // largest error of weights in steps, both axes together

class Edges {
 public:
  Edges(Rewriter& rewriter, ir::TensorId from, std::string name)
      : rewriter_(rewriter), at_(from), name_(std::move(name)) {}

  ir::TensorId result() const { return at_; }
  std::vector<ir::Op>& ops() { return ops_; }

  // Adds rows or columns of the current image, by index, before and after it. The result is `to` if given.
  void add(int axis, const std::vector<int32_t>& before, const std::vector<int32_t>& behind,
           ir::TensorId to = ir::kNoTensor) {
    if (before.empty() && behind.empty()) return;
    ir::Op join{.kind = ir::OpKind::concatenation, .attrs = ir::ConcatAttrs{.axis = axis}};
    for (const int32_t place : before) join.inputs.push_back(slice(axis, place));
    join.inputs.push_back(at_);
    for (const int32_t place : behind) join.inputs.push_back(slice(axis, place));
    ir::Shape shape = rewriter_.tensor(at_).shape;
    shape.dims[static_cast<size_t>(axis)] += static_cast<int32_t>(before.size() + behind.size());
    if (to == ir::kNoTensor) to = tensor("/edges", std::move(shape));
    join.outputs = {to};
    ops_.push_back(std::move(join));
    at_ = to;
  }

 private:
  ir::TensorId tensor(std::string_view what, ir::Shape shape) {
    ir::Tensor one = rewriter_.tensor(at_);
    one.name = fmt::format("{}{}{}", name_, what, ++count_);
    one.shape = std::move(shape);
    return rewriter_.add(std::move(one));
  }
  ir::TensorId slice(int axis, int32_t place) {
    ir::Shape shape = rewriter_.tensor(at_).shape;
    shape.dims[static_cast<size_t>(axis)] = 1;
    std::vector<int32_t> begin(4, 0), size(shape.dims.begin(), shape.dims.end());
    begin[static_cast<size_t>(axis)] = place;
    const ir::TensorId to = tensor("/edge", std::move(shape));
    const std::string name = rewriter_.tensor(to).name;
    ir::Op op{.kind = ir::OpKind::slice};
    op.inputs = {at_, rewriter_.add_ints(name + "/begin", begin), rewriter_.add_ints(name + "/size", size)};
    op.outputs = {to};
    ops_.push_back(std::move(op));
    return to;
  }

  Rewriter& rewriter_;
  ir::TensorId at_;
  const std::string name_;
  int count_ = 0;
  std::vector<ir::Op> ops_;
};

// Weights of repeated pixels, from the pixel before to the pixel after; their sum is twice the factor.
std::vector<int32_t> filter_of(int32_t factor, bool is_centred) {
  std::vector<int32_t> out(static_cast<size_t>(2 * factor + 1), 0);
  if (is_centred) {  // half a weight at both ends for an even factor
    for (int32_t i = 0; i < factor; ++i) {
      ++out[static_cast<size_t>((factor + 1) / 2 + i)];
      ++out[static_cast<size_t>(factor / 2 + 1 + i)];
    }
  } else {
    for (int32_t i = 0; i < factor; ++i) out[static_cast<size_t>(factor + i)] = 2;
  }
  return out;
}

// Largest error of the filter, in steps.
double off_by(const std::vector<ref::BilinearTap>& taps, int32_t size, int32_t factor,
              const std::vector<int32_t>& filter) {
  double off = 0;
  for (size_t i = 0; i < taps.size(); ++i) {
    std::vector<double> amounts(static_cast<size_t>(size), 0);
    for (size_t tap = 0; tap < filter.size(); ++tap) {
      const int32_t repeated = static_cast<int32_t>(i + tap) - factor;
      const int32_t pixel = repeated < 0 ? 0 : std::min(repeated / factor, size - 1);
      amounts[static_cast<size_t>(pixel)] += filter[tap] / (2.0 * factor);
    }
    amounts[taps[i].low] -= 1 - taps[i].from_low;
    amounts[taps[i].high] -= taps[i].from_low;
    double sum = 0;
    for (const double amount : amounts) sum += std::abs(amount);
    off = std::max(off, 255 * sum / 2);
  }
  return off;
}

ir::Op average(Rewriter& rewriter, ir::TensorId from, ir::TensorId to, const std::vector<int32_t>& filter,
               int32_t factor) {
  const ir::Tensor image = rewriter.tensor(from);
  const int32_t channels = image.shape[3], size = 2 * factor + 1;
  Bytes weights;
  for (const int32_t row : filter)
    for (const int32_t column : filter)
      weights.insert(weights.end(), static_cast<size_t>(channels), static_cast<uint8_t>(row * column));
  ir::Op op{.kind = ir::OpKind::depthwise_conv_2d, .attrs = ir::ConvAttrs{.padding = ir::Padding::valid}};
  const auto scale = static_cast<float>(1.0 / (4.0 * factor * factor));
  op.inputs = {from,
               rewriter.add_constant(rewriter.tensor(to).name + "/parts", image.dtype, {1, size, size, channels},
                                     std::move(weights), {{scale}, {0}, 0}),
               ir::kNoTensor};
  op.outputs = {to};
  return op;
}

void resize(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  const ir::Tensor from = rewriter.tensor(old.inputs[0]), to = rewriter.tensor(old.outputs[0]);
  const int32_t factor = to.shape[1] / from.shape[1];
  if (factor < 2 || factor > kFactorMax || to.shape[1] != factor * from.shape[1] ||
      to.shape[2] != factor * from.shape[2] || !rewriter.may_be_off())
    return;
  const auto& attrs = old.as<ir::ResizeAttrs>();
  const auto filter = filter_of(factor, attrs.half_pixel_centers);
  const auto rows = ref::bilinear_taps(from.dtype, from.shape[1], to.shape[1], attrs);
  const auto columns = ref::bilinear_taps(from.dtype, from.shape[2], to.shape[2], attrs);
  if (off_by(rows, from.shape[1], factor, filter) + off_by(columns, from.shape[2], factor, filter) > kOffMax) return;
  Edges edges(rewriter, old.inputs[0], to.name);
  edges.add(1, {0}, {from.shape[1] - 1});
  edges.add(2, {0}, {from.shape[2] - 1});
  std::vector<ir::Op> ops = std::move(edges.ops());
  const std::vector<int32_t> size = {to.shape[1] + 2 * factor, to.shape[2] + 2 * factor};
  const ir::TensorId pixels = rewriter.add_like(to, "/repeated", {1, size[0], size[1], to.shape[3]});
  ir::Op repeat{.kind = ir::OpKind::resize_nearest_neighbor, .attrs = ir::ResizeAttrs{}};
  repeat.inputs = {edges.result(), rewriter.add_ints(rewriter.tensor(pixels).name + "/size", size)};
  repeat.outputs = {pixels};
  ops.push_back(std::move(repeat));
  ops.push_back(average(rewriter, pixels, old.outputs[0], filter, factor));
  rewriter.replace(id, std::move(ops), "RESIZE_BILINEAR becomes RESIZE_NEAREST_NEIGHBOR and an average", 1);
}

void mirror(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  const ir::Shape from = rewriter.tensor(old.inputs[0]).shape, to = rewriter.tensor(old.outputs[0]).shape;
  const auto mirrored = mirrored_edges(rewriter, old);
  if (!mirrored) return;
  Edges edges(rewriter, old.inputs[0], rewriter.tensor(old.outputs[0]).name);
  const bool has_columns = to[2] != from[2];
  for (const int axis : {1, 2}) {
    const auto& [before, behind] = (*mirrored)[static_cast<size_t>(axis - 1)];
    if (std::max(before.size(), behind.size()) > kEdgeMax) return rewriter.drop();
    edges.add(axis, before, behind, axis == 2 || !has_columns ? old.outputs[0] : ir::kNoTensor);
  }
  if (edges.ops().empty()) return;
  rewriter.replace(
      {.ops = {id}, .kept = id, .by = std::move(edges.ops()), .text = "MIRROR_PAD becomes CONCATENATION of slices"});
}

}  // namespace

void resize_by_edges(Rewriter& rewriter, ir::OpId id) {
  const ir::OpKind kind = rewriter.op(id).kind;
  if ((kind != ir::OpKind::resize_bilinear && kind != ir::OpKind::mirror_pad) ||
      !is_resized_image(rewriter, rewriter.op(id)) || rewriter.level(id) != Level::refused)
    return;
  if (kind == ir::OpKind::mirror_pad)
    mirror(rewriter, id);
  else
    resize(rewriter, id);
}

}  // namespace skillet::passes
