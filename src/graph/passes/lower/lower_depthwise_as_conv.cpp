// A depthwise convolution with several filters per channel, and a grouped convolution, become ordinary ones, with zeros
// for the other channels.
#include <algorithm>
#include <cstring>
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

// [output][row][column][input of its group] becomes [output][row][column][input].
Bytes ungrouped(const ir::Tensor& filter, size_t inputs) {
  const auto outputs = static_cast<size_t>(filter.shape[0]), of_group = static_cast<size_t>(filter.shape[3]);
  const auto taps = static_cast<size_t>(filter.shape[1]) * static_cast<size_t>(filter.shape[2]);
  const size_t outputs_of_group = outputs / (inputs / of_group);
  Bytes out(taps * outputs * inputs, static_cast<uint8_t>(filter.quant.zero_point()));
  for (size_t at = 0; at < outputs * taps; ++at) {
    const size_t group = at / taps / outputs_of_group;
    std::memcpy(out.data() + at * inputs + group * of_group, filter.data.data() + at * of_group, of_group);
  }
  return out;
}

bool has_plain_filter(const ir::Tensor& filter) {
  const std::vector<int32_t>& zeros = filter.quant.zero_points;
  return filter.is_constant() && ir::is_8bit(filter.dtype) && filter.shape.rank() == 4 && filter.shape.elems() > 0 &&
         !zeros.empty() && std::ranges::count(zeros, zeros[0]) == std::ssize(zeros);
}

void make_dense(Rewriter& rewriter, ir::OpId id) {
  ir::Op op = rewriter.op(id);
  if (op.kind != ir::OpKind::depthwise_conv_2d) return;
  auto& attrs = std::get<ir::ConvAttrs>(op.attrs);
  const ir::Tensor filter = rewriter.tensor(op.inputs[1]);
  if (attrs.depth_multiplier == 1 || !has_plain_filter(filter)) return;
  const int32_t inputs = filter.shape[3] / attrs.depth_multiplier;
  const ir::Shape shape{filter.shape[3], filter.shape[1], filter.shape[2], inputs};
  if (inputs < 1 || filter.shape.elems() > kDenseBytesMax / inputs || rewriter.level(id) == Level::proven) return;
  Bytes bytes = dense(filter, static_cast<size_t>(inputs), static_cast<size_t>(attrs.depth_multiplier));
  ir::Quant quant = filter.quant;
  quant.axis = 0;
  op.inputs[1] = rewriter.add_constant(filter.name + "/dense", filter.dtype, shape, std::move(bytes), std::move(quant));
  // Without a bias, CONV_2D of int16 would round its sums as with a 32-bit bias.
  if (op.input(2) == ir::kNoTensor && rewriter.tensor(op.inputs[0]).dtype == ir::DType::int16) {
    op.inputs.resize(3);
    op.inputs[2] = rewriter.add_constant(filter.name + "/bias", ir::DType::int64, {filter.shape[3]},
                                         Bytes(static_cast<size_t>(filter.shape[3]) * sizeof(int64_t)), {});
  }
  std::string text =
      fmt::format("{} with {} filters a channel becomes CONV_2D", ir::op_name(op), attrs.depth_multiplier);
  op.kind = ir::OpKind::conv_2d;
  attrs.depth_multiplier = 1;
  rewriter.replace(id, {std::move(op)}, std::move(text));
}

void join_groups(Rewriter& rewriter, ir::OpId id) {
  ir::Op op = rewriter.op(id);
  if (op.kind != ir::OpKind::conv_2d) return;
  const ir::Tensor filter = rewriter.tensor(op.inputs[1]);
  const int32_t inputs = rewriter.tensor(op.inputs[0]).shape.back(0);
  if (!has_plain_filter(filter) || filter.shape[3] == inputs || inputs % filter.shape[3] != 0 ||
      filter.shape[0] % (inputs / filter.shape[3]) != 0)
    return;
  const int32_t groups = inputs / filter.shape[3];
  if (filter.shape.elems() > kDenseBytesMax / groups || rewriter.level(id) == Level::proven) return;
  ir::Shape shape = filter.shape;
  shape.dims[3] = inputs;
  op.inputs[1] = rewriter.add_constant(filter.name + "/dense", filter.dtype, std::move(shape),
                                       ungrouped(filter, static_cast<size_t>(inputs)), filter.quant);
  std::string text = fmt::format("CONV_2D of {} groups becomes one of all channels", groups);
  rewriter.replace(id, {std::move(op)}, std::move(text));
}

}  // namespace

void lower_depthwise_as_conv(Rewriter& rewriter, ir::OpId id) {
  make_dense(rewriter, id);
  join_groups(rewriter, id);
}

}  // namespace skillet::passes
