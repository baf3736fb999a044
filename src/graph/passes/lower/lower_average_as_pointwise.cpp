// An average over the channels of each pixel as a convolution of 1x1, and so one over all pixels: channels become
// pixels, and the pixels of each its channels, which one filter adds up. For images of so many channels that a filter
// for each, written out for all of them, is too large. Some chips have better evidence for square images: if no square
// has as many pixels as there are channels, each pixel stands for some of them, with a filter for each.
#include <algorithm>
#include <utility>

#include "base/squares.h"
#include "graph/passes/lower/average.h"

namespace skillet::passes {
namespace {

bool is_global(const Average& average, const ir::Shape& from, const ir::Shape& to) {
  return from[0] == 1 && average.rows == from[1] && average.columns == from[2] && to.elems() == from[3];
}

// A convolution of one filter, and what makes an image of its operand and what the op returns of its result.
std::vector<ir::Op> sum_of_channels(Rewriter& rewriter, const Average& average, const Weights& weights) {
  const ir::Tensor from = rewriter.tensor(average.from), to = rewriter.tensor(average.to);
  const int32_t channels = average.columns;
  const bool is_image = from.shape.rank() == 4 && from.shape[0] == 1;
  const ir::Shape shape =
      is_image ? from.shape : as_image(static_cast<int32_t>(from.shape.elems() / channels), channels);
  std::vector<ir::Op> ops;
  ir::Op conv{.kind = ir::OpKind::conv_2d, .attrs = average.attrs, .inputs = {average.from}, .outputs = {average.to}};
  if (!is_image) {
    conv.inputs[0] = rewriter.add_like(from, "/pixels", shape);
    ops.push_back(rewriter.reshape(average.from, conv.inputs[0]));
  }
  const ir::Shape sums = {1, shape[1], shape[2], 1};
  if (to.shape != sums) conv.outputs[0] = rewriter.add_like(to, "/pixels", sums);
  const ir::TensorId made = conv.outputs[0];
  add_weights(rewriter, average, weights, {1, 1, 1, channels}, 1, conv);
  ops.push_back(std::move(conv));
  if (made != average.to) ops.push_back(rewriter.reshape(made, average.to));
  return ops;
}

void rewrite_channels(Rewriter& rewriter, ir::OpId id) {
  const auto average = average_of_channels(rewriter, rewriter.op(id));
  if (!average || rewriter.level(id) == Level::proven) return;
  const auto weights = weights_of(rewriter, *average);
  if (!weights) return;
  std::string text =
      fmt::format("{} of {} channels becomes CONV_2D 1x1", ir::op_name(rewriter.op(id)), average->columns);
  rewriter.replace(id, sum_of_channels(rewriter, *average, *weights), std::move(text), weights->off);
}

constexpr int32_t kFiltersMax = 16;  // more would be mostly zeros

// `each` channels are a pixel: filter i adds up the pixels of channel i among them.
std::vector<ir::Op> sum_of_pixels(Rewriter& rewriter, const Average& average, const Weights& weights, int32_t each) {
  const ir::Tensor from = rewriter.tensor(average.from), to = rewriter.tensor(average.to);
  const int32_t channels = from.shape[3], pixels = from.shape[1] * from.shape[2];
  const ir::TensorId planes = rewriter.add_like(from, "/planes", {1, channels, from.shape[1], from.shape[2]});
  const ir::TensorId image = rewriter.add_like(from, "/pixels", as_image(channels / each, each * pixels));
  const ir::TensorId sums = rewriter.add_like(to, "/pixels", as_image(channels / each, each));
  ir::Op transpose{.kind = ir::OpKind::transpose};
  transpose.inputs = {average.from, rewriter.add_ints(to.name + "/order", {0, 3, 1, 2})};
  transpose.outputs = {planes};
  const ir::ConvAttrs attrs{.padding = ir::Padding::valid, .activation = average.attrs.activation};
  ir::Op conv{.kind = ir::OpKind::conv_2d, .attrs = attrs, .inputs = {image}, .outputs = {sums}};
  Bytes taps(static_cast<size_t>(each) * static_cast<size_t>(each) * static_cast<size_t>(pixels), 0);
  for (int32_t i = 0; i < each; ++i)
    std::fill_n(taps.begin() + std::ptrdiff_t{i} * (each + 1) * pixels, pixels, static_cast<uint8_t>(weights.weight));
  add_taps(rewriter, average, weights, {each, 1, 1, each * pixels}, std::move(taps), each, conv);
  std::vector<ir::Op> ops = {std::move(transpose), rewriter.reshape(planes, image), std::move(conv)};
  ops.push_back(rewriter.reshape(sums, average.to));
  return ops;
}

void rewrite(Rewriter& rewriter, ir::OpId id) {
  const auto average = average_of(rewriter, rewriter.op(id));
  if (!average || rewriter.level(id) == Level::proven) return;
  const ir::Tensor from = rewriter.tensor(average->from), to = rewriter.tensor(average->to);
  if (!is_global(*average, from.shape, to.shape)) return;
  const auto weights = weights_of(rewriter, *average);
  if (!weights) return;
  const auto square = static_cast<int32_t>(square_parts(from.shape[3], kFiltersMax).value_or(1));
  for (const int32_t each : {square, 1}) {
    std::string text = fmt::format("{} of {} pixels becomes CONV_2D 1x1 of {} channels", ir::op_name(rewriter.op(id)),
                                   average->pixels(), average->pixels() * each);
    std::vector<ir::Op> ops = sum_of_pixels(rewriter, *average, *weights, each);
    const bool done = rewriter.replace(id, std::move(ops), std::move(text), weights->off);
    if (done || square == 1) return;
  }
}

}  // namespace

void lower_average_as_pointwise(Rewriter& rewriter, ir::OpId id) {
  rewrite(rewriter, id);
  rewrite_channels(rewriter, id);
}

}  // namespace skillet::passes
