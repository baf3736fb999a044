// MAX_POOL_2D as sums: the larger of a pixel and its neighbour is the pixel plus max(neighbour - pixel, 0), which a
// depthwise convolution of +1 and -1 computes if its type ends at zero. Each such step to a side extends windows to
// two, three and more pixels, rows first; the last step applies the strides. All values are whole steps of one scale,
// so no byte differs.
#include <algorithm>
#include <utility>

#include "graph/passes/lower/pointwise.h"

namespace skillet::passes {
namespace {

constexpr int32_t kStepsMax = 12;  // to neighbours; enough for a window of 7x7
// Pixels times channels times steps. A step is two jobs that each read and write the image. Larger images are predicted
// to take longer than the CPU including the transfers.
constexpr int64_t kStepElemsMax = 1 << 17;

bool is_padded(const ir::PoolAttrs& attrs, const ir::Shape& from) {
  if (attrs.padding == ir::Padding::valid) return false;
  const SamePads rows = same_pads(from[1], attrs.filter_h, attrs.stride_h, 1);
  const SamePads columns = same_pads(from[2], attrs.filter_w, attrs.stride_w, 1);
  return rows.before + rows.after + columns.before + columns.after > 0;
}

class Maker {
 public:
  Maker(Rewriter& rewriter, const ir::Op& old)
      : rewriter_(rewriter), old_(old), attrs_(old.as<ir::PoolAttrs>()), image_(old.inputs[0]) {
    // With a single row or column of windows the stride has no effect; chips support equal strides.
    const ir::Shape &in = rewriter.tensor(image_).shape, &out = rewriter.tensor(old.outputs[0]).shape;
    if (in[1] == 1 && out[1] == 1) attrs_.stride_h = attrs_.stride_w;
    if (in[2] == 1 && out[2] == 1) attrs_.stride_w = attrs_.stride_h;
  }

  // Empty: the op cannot be rewritten.
  std::vector<ir::Op> run() {
    const ir::TensorId to = old_.outputs[0];
    const ir::Tensor in = rewriter_.tensor(image_);
    const int32_t above = in.quant.zero_point() - lowest_of(in.dtype);
    // Padding is zero: it must not exceed any pixel, so pixels are raised above it.
    const bool raised = above > 0 && is_padded(attrs_, in.shape);
    if (raised) {
      image_ = rewriter_.add(ending_at_zero(in, "/raised", false));
      move(old_.inputs[0], image_, above);
    }
    last_ = raised ? ir::kNoTensor : to;
    const ir::TensorId largest = of_window();
    if (raised && !failed_) move(largest, to, -above);
    return failed_ ? std::vector<ir::Op>{} : std::move(ops_);
  }

 private:
  using Tap = std::pair<int32_t, int32_t>;  // position in the window, weight
  struct Step {
    int32_t down = 0, right = 0;
  };

  void move(ir::TensorId from, ir::TensorId to, int32_t steps) {
    Factors factors = ones(rewriter_.tensor(from).shape[3]);
    factors.biases.assign(factors.weights.size(), steps * kFine);
    auto op = pointwise(rewriter_, from, to, std::move(factors));
    failed_ |= !op;
    if (op) ops_.push_back(std::move(*op));
  }

  ir::TensorId of_window() {
    const ir::Shape in = rewriter_.tensor(image_).shape;
    const bool is_same = attrs_.padding == ir::Padding::same;
    const int32_t up = is_same ? same_pads(in[1], attrs_.filter_h, attrs_.stride_h, 1).before : 0;
    const int32_t left = is_same ? same_pads(in[2], attrs_.filter_w, attrs_.stride_w, 1).before : 0;
    const std::vector<Step> steps = steps_of(attrs_, up, left);
    // Window of a step over the whole image: chips support square filters best. Filters of 2x2 cover the pixels to the
    // right and below.
    const auto near_of = [&](const Step& step) {
      const int32_t side = step.down < 0 || step.right < 0 ? 3 : 2;
      const auto size = [&](int32_t image, int32_t filter) { return image > 1 || filter > 1 ? side : 1; };
      return ir::PoolAttrs{.padding = ir::Padding::same,
                           .filter_h = size(in[1], attrs_.filter_h),
                           .filter_w = size(in[2], attrs_.filter_w)};
    };
    ir::TensorId at = image_;
    if (steps.empty()) {
      at = result(image_, rewriter_.tensor(old_.outputs[0]).shape, true);
      convolve(image_, attrs_, {{0, 1}}, at);
    }
    for (size_t i = 0; i < steps.size(); ++i) {
      const bool is_last = i + 1 == steps.size();
      if (is_last && !keeps_places()) {
        const int32_t pixel = up * attrs_.filter_w + left;
        const int32_t other = pixel + steps[i].down * attrs_.filter_w + steps[i].right;
        const ir::TensorId one = like(at, "/pixel", rewriter_.tensor(old_.outputs[0]).shape);
        convolve(at, attrs_, {{pixel, 1}}, one);
        return more_than(at, attrs_, {{other, 1}, {pixel, -1}}, one, true);
      }
      const ir::PoolAttrs near = near_of(steps[i]);
      const int32_t centre = (near.filter_h - 1) / 2 * near.filter_w + (near.filter_w - 1) / 2;
      const int32_t other = centre + steps[i].down * near.filter_w + steps[i].right;
      at = more_than(at, near, {{other, 1}, {centre, -1}}, at, is_last);
    }
    return at;
  }
  static std::vector<Step> steps_of(const ir::PoolAttrs& attrs, int32_t up, int32_t left) {
    std::vector<Step> steps;
    for (int32_t i = 1; i < attrs.filter_w; ++i) steps.push_back({.right = i <= left ? -1 : 1});
    for (int32_t i = 1; i < attrs.filter_h; ++i) steps.push_back({.down = i <= up ? -1 : 1});
    return steps;
  }
  // True if each result is at the place of its pixel.
  bool keeps_places() const {
    return attrs_.padding == ir::Padding::same && attrs_.stride_h == 1 && attrs_.stride_w == 1;
  }

  // `one` plus the positive part of what `taps` compute from `from`.
  ir::TensorId more_than(ir::TensorId from, const ir::PoolAttrs& window, const std::vector<Tap>& taps, ir::TensorId one,
                         bool is_last) {
    const ir::TensorId value = result(from, rewriter_.tensor(one).shape, is_last);
    const ir::TensorId more = rewriter_.add(ending_at_zero(rewriter_.tensor(value), "/more", false));
    convolve(from, window, taps, more);
    ops_.push_back(sum_of(one, more, value));
    return value;
  }
  ir::TensorId result(ir::TensorId from, const ir::Shape& shape, bool is_last) {
    return is_last && last_ != ir::kNoTensor ? last_ : like(from, "/largest", shape);
  }
  ir::TensorId like(ir::TensorId one, std::string_view name, ir::Shape shape) {
    ir::Tensor tensor = rewriter_.tensor(one);
    tensor.name = rewriter_.tensor(old_.outputs[0]).name;
    tensor.name += name;
    tensor.shape = std::move(shape);
    return rewriter_.add(std::move(tensor));
  }

  void convolve(ir::TensorId from, const ir::PoolAttrs& window, const std::vector<Tap>& taps, ir::TensorId to) {
    const ir::Tensor in = rewriter_.tensor(from);
    const int32_t channels = in.shape[3], zero = in.dtype == ir::DType::uint8 ? kFine : 0;
    const ir::Shape shape{1, window.filter_h, window.filter_w, channels};
    Bytes bytes(static_cast<size_t>(shape.elems()), static_cast<uint8_t>(zero));
    for (const auto& [pixel, weight] : taps)
      std::fill_n(bytes.begin() + int64_t{pixel} * channels, channels, static_cast<uint8_t>(zero + weight * kFine));
    ir::ConvAttrs attrs{.padding = window.padding, .stride_h = window.stride_h, .stride_w = window.stride_w};
    ir::Op op{.kind = ir::OpKind::depthwise_conv_2d, .attrs = attrs};
    op.inputs = {from,
                 rewriter_.add_constant(rewriter_.tensor(to).name + "/picks", in.dtype, shape, std::move(bytes),
                                        {{1.0F / kFine}, {zero}, 0}),
                 ir::kNoTensor};
    op.outputs = {to};
    ops_.push_back(std::move(op));
  }

  Rewriter& rewriter_;
  const ir::Op old_;
  ir::PoolAttrs attrs_;
  ir::TensorId image_;                 // tensor to pool
  ir::TensorId last_ = ir::kNoTensor;  // tensor for the final result; none: a new tensor
  std::vector<ir::Op> ops_;
  bool failed_ = false;
};

}  // namespace

void lower_max_pool_as_sums(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  if (old.kind != ir::OpKind::max_pool_2d) return;
  const auto& attrs = old.as<ir::PoolAttrs>();
  const ir::Tensor in = rewriter.tensor(old.inputs[0]), out = rewriter.tensor(old.outputs[0]);
  const int64_t steps = int64_t{attrs.filter_h} + attrs.filter_w - 2;
  if (attrs.activation != ir::Activation::none || attrs.rows || steps > kStepsMax || in.shape.rank() != 4 ||
      !is_computed_byte(in) || !is_computed_byte(out) || !same_meaning(in, out) || !has_exact_steps(in) ||
      in.shape.elems() == 0 || out.shape.elems() == 0 || in.shape.elems() * steps > kStepElemsMax ||
      std::max<int64_t>(9, int64_t{attrs.filter_h} * attrs.filter_w) * in.shape[3] * in.shape[3] > kDenseBytesMax ||
      rewriter.level(id) == Level::proven)
    return;
  std::vector<ir::Op> ops = Maker(rewriter, old).run();
  if (ops.empty()) return rewriter.drop();
  std::string text =
      fmt::format("MAX_POOL_2D {}x{} becomes {} convolutions and sums", attrs.filter_h, attrs.filter_w, ops.size());
  rewriter.replace(id, std::move(ops), std::move(text));
}

}  // namespace skillet::passes
