// MAX_POOL_2D of small windows as sums: the larger of two pixels is one of them and what the other has more, which a
// depthwise convolution of +1 and -1 computes where its type ends at zero; the larger ones of those follow in pairs.
// All of it counts in whole steps of one scale, so no byte differs.
#include <algorithm>
#include <utility>

#include "graph/passes/lower/pointwise.h"

namespace skillet::passes {
namespace {

constexpr int32_t kWindowMax = 9;  // pixels
// A window of nine is 25 jobs that each read and write the image. Of a larger one they are predicted to take longer
// than the CPU and the way there (112x112x64 on an A311D: 7 ms against 0.4).
constexpr int64_t kImageMax = 8 << 10;  // pixels times channels

bool is_padded(const ir::PoolAttrs& attrs, const ir::Shape& from) {
  if (attrs.padding == ir::Padding::valid) return false;
  const SamePads rows = same_pads(from[1], attrs.filter_h, attrs.stride_h, 1);
  const SamePads columns = same_pads(from[2], attrs.filter_w, attrs.stride_w, 1);
  return rows.before + rows.after + columns.before + columns.after > 0;
}

class Maker {
 public:
  Maker(Rewriter& rewriter, const ir::Op& old, bool by_add)
      : rewriter_(rewriter), old_(old), attrs_(old.as<ir::PoolAttrs>()), by_add_(by_add), image_(old.inputs[0]) {
    // Across a single row or column a stride leads nowhere; chips take the same for both.
    const ir::Shape &in = rewriter.tensor(image_).shape, &out = rewriter.tensor(old.outputs[0]).shape;
    if (in[1] == 1 && out[1] == 1) attrs_.stride_h = attrs_.stride_w;
    if (in[2] == 1 && out[2] == 1) attrs_.stride_w = attrs_.stride_h;
  }

  // Empty: there is no way.
  std::vector<ir::Op> run() {
    const ir::TensorId to = old_.outputs[0];
    const ir::Tensor in = rewriter_.tensor(image_);
    const int32_t above = in.quant.zero_point() - lowest_of(in.dtype);
    // Padding is zero: it must not be larger than a pixel.
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
  using Tap = std::pair<int32_t, int32_t>;  // pixel of the window, its weight

  void move(ir::TensorId from, ir::TensorId to, int32_t steps) {
    Factors factors = ones(rewriter_.tensor(from).shape[3]);
    factors.biases.assign(factors.weights.size(), steps * kFine);
    auto op = pointwise(rewriter_, from, to, std::move(factors));
    failed_ |= !op;
    if (op) ops_.push_back(std::move(*op));
  }

  ir::TensorId of_window() {
    const int32_t pixels = attrs_.filter_h * attrs_.filter_w;
    std::vector<ir::TensorId> values;
    for (int32_t i = 0; i < pixels; i += 2) {
      const bool alone = i + 1 == pixels;
      const ir::TensorId value = result(pixels <= 2);
      const ir::TensorId one = alone ? value : like_result("/pixel");
      convolve({{i, 1}}, one);
      if (!alone) {
        const ir::TensorId more = rewriter_.add(ending_at_zero(rewriter_.tensor(value), "/more", false));
        convolve({{i + 1, 1}, {i, -1}}, more);
        ops_.push_back(sum_of(one, more, value));
      }
      values.push_back(value);
    }
    while (values.size() > 1) {
      std::vector<ir::TensorId> next;
      for (size_t i = 0; i + 1 < values.size(); i += 2) {
        const ir::TensorId value = result(values.size() == 2);
        std::vector<ir::Op> ops = larger(rewriter_, by_add_, values[i], values[i + 1], value);
        failed_ |= ops.empty();
        ops_.insert(ops_.end(), ops.begin(), ops.end());
        next.push_back(value);
      }
      if (values.size() % 2 == 1) next.push_back(values.back());
      values = std::move(next);
    }
    return values[0];
  }

  ir::TensorId like_result(std::string_view name) {
    ir::Tensor tensor = rewriter_.tensor(image_);
    tensor.name = rewriter_.tensor(old_.outputs[0]).name;
    tensor.name += name;
    tensor.shape = rewriter_.tensor(old_.outputs[0]).shape;
    return rewriter_.add(std::move(tensor));
  }
  ir::TensorId result(bool is_last) { return is_last && last_ != ir::kNoTensor ? last_ : like_result("/largest"); }

  void convolve(const std::vector<Tap>& taps, ir::TensorId to) {
    const ir::Tensor in = rewriter_.tensor(image_);
    const int32_t channels = in.shape[3], zero = in.dtype == ir::DType::uint8 ? kFine : 0;
    const ir::Shape shape{1, attrs_.filter_h, attrs_.filter_w, channels};
    Bytes bytes(static_cast<size_t>(shape.elems()), static_cast<uint8_t>(zero));
    for (const auto& [pixel, weight] : taps)
      std::fill_n(bytes.begin() + int64_t{pixel} * channels, channels, static_cast<uint8_t>(zero + weight * kFine));
    ir::ConvAttrs attrs{.padding = attrs_.padding, .stride_h = attrs_.stride_h, .stride_w = attrs_.stride_w};
    ir::Op op{.kind = ir::OpKind::depthwise_conv_2d, .attrs = attrs};
    op.inputs = {image_,
                 rewriter_.add_constant(rewriter_.tensor(to).name + "/picks", in.dtype, shape, std::move(bytes),
                                        {{1.0F / kFine}, {zero}, 0}),
                 ir::kNoTensor};
    op.outputs = {to};
    ops_.push_back(std::move(op));
  }

  Rewriter& rewriter_;
  const ir::Op old_;
  ir::PoolAttrs attrs_;
  const bool by_add_;
  ir::TensorId image_;                 // what is pooled
  ir::TensorId last_ = ir::kNoTensor;  // where the largest goes; none: to a tensor of its own
  std::vector<ir::Op> ops_;
  bool failed_ = false;
};

void rewrite(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  if (old.kind != ir::OpKind::max_pool_2d) return;
  const auto& attrs = old.as<ir::PoolAttrs>();
  const ir::Tensor in = rewriter.tensor(old.inputs[0]), out = rewriter.tensor(old.outputs[0]);
  const int64_t pixels = int64_t{attrs.filter_h} * attrs.filter_w;
  if (attrs.activation != ir::Activation::none || attrs.rows || pixels > kWindowMax || in.shape.rank() != 4 ||
      !is_computed_byte(in) || !is_computed_byte(out) || !same_meaning(in, out) || !has_exact_steps(in) ||
      in.shape.elems() == 0 || out.shape.elems() == 0 || in.shape.elems() > kImageMax ||
      pixels * in.shape[3] * in.shape[3] > kDenseBytesMax || rewriter.level(id) == Level::proven)
    return;
  // A SUB may be a step off, and the levels would add that up: the sum with the negated first.
  for (const bool by_add : {true, false}) {
    std::vector<ir::Op> ops = Maker(rewriter, old, by_add).run();
    if (ops.empty()) {
      rewriter.drop();
      continue;
    }
    std::string text =
        fmt::format("MAX_POOL_2D {}x{} becomes {} convolutions and sums", attrs.filter_h, attrs.filter_w, ops.size());
    if (rewriter.replace({.ops = {id}, .kept = id, .by = std::move(ops), .text = std::move(text)})) return;
  }
}

}  // namespace

Result<void> lower_max_pool_as_sums(ir::Graph& graph, const Target& target) {
  Rewriter rewriter(graph, target, "lower_max_pool_as_sums");
  rewriter.for_each_op([&](ir::OpId id) { rewrite(rewriter, id); });
  return {};
}

}  // namespace skillet::passes
