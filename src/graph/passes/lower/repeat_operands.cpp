// ADD, SUB, MUL, MAXIMUM and MINIMUM whose operands have different shapes, which most chips do not support: the smaller
// operand is repeated first, along rows and columns by RESIZE_NEAREST_NEIGHBOR or a convolution whose channels are the
// pixels, along channels by a 1x1 convolution.
#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "graph/passes/lower/mixture.h"
#include "graph/passes/lower/pointwise.h"

namespace skillet::passes {
namespace {

// Shape with dimensions of size 1 in front.
ir::Shape in_four_dimensions(ir::Shape shape) {
  shape.dims.insert(shape.dims.begin(), static_cast<size_t>(4 - shape.rank()), 1);
  return shape;
}

class Repeater {
 public:
  Repeater(Rewriter& rewriter, ir::TensorId from, const ir::Shape& shape, bool by_picks)
      : rewriter_(rewriter), from_(from), at_(from), shape_(shape), by_picks_(by_picks) {}

  // Empty: the pixels cannot be selected this way.
  std::vector<ir::Op> run() {
    const ir::Shape image = in_four_dimensions(shape_);
    const ir::Shape whole = in_four_dimensions(rewriter_.tensor(from_).shape);
    if (whole != rewriter_.tensor(from_).shape) reshape(whole);
    if ((whole[1] != image[1] || whole[2] != image[2]) && !resize(whole, image[1], image[2])) return {};
    if (whole[3] != image[3]) convolve(image[3]);
    if (image != shape_) reshape(shape_);
    return std::move(ops_);
  }
  ir::TensorId result() const { return at_; }

 private:
  ir::TensorId add(std::string_view what, ir::Shape shape) {
    return rewriter_.add_like(rewriter_.tensor(from_), what, std::move(shape));
  }
  void reshape(const ir::Shape& shape) {
    const ir::TensorId to = add(ops_.empty() ? "/image" : "/repeated", shape);
    ops_.push_back(rewriter_.reshape(at_, to));
    at_ = to;
  }
  bool resize(const ir::Shape& from, int32_t height, int32_t width) {
    const ir::TensorId to = add("/pixels", {1, height, width, from[3]});
    std::vector<ir::Op> ops;
    if (by_picks_) {
      std::vector<int32_t> pixels;
      for (int32_t pixel = 0; pixel < height * width; ++pixel)
        pixels.push_back((from[1] == 1 ? 0 : pixel / width) + (from[2] == 1 ? 0 : pixel % width));
      ops = chosen_pixels(rewriter_, at_, to, pixels);
    } else {
      ops = {{.kind = ir::OpKind::resize_nearest_neighbor, .attrs = ir::ResizeAttrs{}}};
      ops[0].inputs = {at_, rewriter_.add_ints(rewriter_.tensor(to).name + "/size", {height, width})};
      ops[0].outputs = {to};
    }
    if (ops.empty()) return false;
    std::ranges::move(ops, std::back_inserter(ops_));
    at_ = to;
    return true;
  }
  void convolve(int32_t channels) {
    const ir::Shape image = rewriter_.tensor(at_).shape;
    const ir::TensorId to = add("/channels", {1, image[1], image[2], channels});
    ir::Op op{.kind = ir::OpKind::conv_2d, .attrs = ir::ConvAttrs{.padding = ir::Padding::valid}};
    op.inputs = {at_,
                 rewriter_.add_constant(rewriter_.tensor(to).name + "/ones", rewriter_.tensor(at_).dtype,
                                        {channels, 1, 1, 1}, Bytes(static_cast<size_t>(channels), 1), {{1.0F}, {0}, 0}),
                 ir::kNoTensor};
    op.outputs = {to};
    ops_.push_back(std::move(op));
    at_ = to;
  }

  Rewriter& rewriter_;
  const ir::TensorId from_;
  ir::TensorId at_;
  const ir::Shape shape_;
  const bool by_picks_;
  std::vector<ir::Op> ops_;
};

// Empty: the operands cannot be repeated.
std::vector<ir::Op> repeated(Rewriter& rewriter, ir::Op op, bool by_picks, bool by_add) {
  const ir::Shape shape = rewriter.tensor(op.outputs[0]).shape;
  std::vector<ir::Op> by;
  for (ir::TensorId& input : op.inputs) {
    if (rewriter.tensor(input).shape == shape) continue;
    Repeater repeater(rewriter, input, shape, by_picks);
    std::vector<ir::Op> ops = repeater.run();
    if (ops.empty()) return {};
    std::ranges::move(ops, std::back_inserter(by));
    input = repeater.result();
  }
  if (!by_add) {
    by.push_back(std::move(op));
    return by;
  }
  const ir::TensorId a = op.inputs[0], b = op.inputs[1], to = op.outputs[0];
  if (op.kind != ir::OpKind::sub || shape.rank() != 4) return {};
  std::vector<ir::Op> sum = difference(rewriter, true, a, b, to);
  if (sum.empty()) return {};
  sum.back().attrs = op.attrs;
  if (!rewriter.same_pairs({op}, sum, a, b, to)) return {};
  std::ranges::move(sum, std::back_inserter(by));
  return by;
}

}  // namespace

void repeat_operands(Rewriter& rewriter, ir::OpId id) {
  const ir::Op op = rewriter.op(id);
  if (!is_of_two_operands(op)) return;
  const ir::Shape shape = rewriter.tensor(op.outputs[0]).shape;
  const auto is_bytes = [&](ir::TensorId one) { return is_computed_byte(rewriter.tensor(one)); };
  const auto differs = [&](ir::TensorId one) { return rewriter.tensor(one).shape != shape; };
  // For a single value, jobs are no cheaper than the operation itself.
  const auto is_one_value = [&](ir::TensorId one) { return rewriter.tensor(one).shape.elems() == 1; };
  if (shape.rank() < 1 || shape.rank() > 4 || (shape.rank() == 4 && shape[0] != 1) || !is_bytes(op.outputs[0]) ||
      !std::ranges::all_of(op.inputs, is_bytes) || std::ranges::none_of(op.inputs, differs) ||
      std::ranges::any_of(op.inputs, is_one_value) || rewriter.level(id) != Level::refused)
    return;
  for (const auto& [by_picks, by_add] : {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
    std::vector<ir::Op> by = repeated(rewriter, op, by_picks, by_add);
    if (by.empty()) {
      rewriter.drop();
      continue;
    }
    std::string text =
        fmt::format("{}operands of {} are repeated to {}", by_add ? "SUB becomes ADD of the negated; " : "",
                    ir::op_name(op), shape.to_string());
    if (rewriter.replace(id, std::move(by), std::move(text))) return;
  }
}

}  // namespace skillet::passes
