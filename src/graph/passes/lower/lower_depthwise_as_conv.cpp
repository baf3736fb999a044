// A depthwise convolution with several filters for each channel as an ordinary one, with zeros for the other channels.
#include <algorithm>
#include <utility>

#include "graph/passes/rewrite.h"

namespace skillet::passes {
namespace {

// [row][column][output] becomes [output][row][column][input].
Bytes dense(const ir::Tensor& filter, size_t inputs, size_t multiplier) {
  const auto outputs = static_cast<size_t>(filter.shape[3]);
  const auto taps = static_cast<size_t>(filter.shape[1]) * static_cast<size_t>(filter.shape[2]);
  Bytes out(taps * outputs * inputs, static_cast<uint8_t>(filter.quant.zero_point()));
  for (size_t output = 0; output < outputs; ++output) {
    for (size_t tap = 0; tap < taps; ++tap)
      out[(output * taps + tap) * inputs + output / multiplier] = filter.data[tap * outputs + output];
  }
  return out;
}

void make_dense(Rewriter& rewriter, ir::OpId id) {
  ir::Op op = rewriter.op(id);
  if (op.kind != ir::OpKind::depthwise_conv_2d) return;
  auto& attrs = std::get<ir::ConvAttrs>(op.attrs);
  const ir::Tensor filter = rewriter.tensor(op.inputs[1]);
  const std::vector<int32_t>& zeros = filter.quant.zero_points;
  if (attrs.depth_multiplier == 1 || !filter.is_constant() || !ir::is_8bit(filter.dtype) || zeros.empty() ||
      std::ranges::count(zeros, zeros[0]) != std::ssize(zeros))
    return;
  const int32_t inputs = filter.shape[3] / attrs.depth_multiplier;
  const ir::Shape shape{filter.shape[3], filter.shape[1], filter.shape[2], inputs};
  if (inputs < 1 || filter.shape.elems() > kDenseBytesMax / inputs || rewriter.level(id) == Level::proven) return;
  Bytes bytes = dense(filter, static_cast<size_t>(inputs), static_cast<size_t>(attrs.depth_multiplier));
  ir::Quant quant = filter.quant;
  quant.axis = 0;
  op.inputs[1] = rewriter.add_constant(filter.name + "/dense", filter.dtype, shape, std::move(bytes), std::move(quant));
  std::string text =
      fmt::format("{} with {} filters a channel becomes CONV_2D", ir::op_name(op), attrs.depth_multiplier);
  op.kind = ir::OpKind::conv_2d;
  attrs.depth_multiplier = 1;
  rewriter.replace({.ops = {id}, .kept = id, .by = {std::move(op)}, .text = std::move(text)});
}

}  // namespace

Result<void> lower_depthwise_as_conv(ir::Graph& graph, const Target& target) {
  Rewriter rewriter(graph, target, "lower_depthwise_as_conv");
  rewriter.for_each_op([&](ir::OpId id) { make_dense(rewriter, id); });
  return {};
}

}  // namespace skillet::passes
