// GATHER of channels after a convolution is folded into the order of its filters. ONNX's DepthToSpace (CRD) and
// networks that shuffle channels produce it.
#include <algorithm>
#include <utility>

#include "graph/passes/rewrite.h"

namespace skillet::passes {
namespace {

Bytes in_order(std::span<const uint8_t> rows, size_t count, const std::vector<int32_t>& order) {
  const size_t row = rows.size() / count;
  Bytes out;
  for (const int32_t from : order) {
    const auto one = rows.subspan(static_cast<size_t>(from) * row, row);
    out.insert(out.end(), one.begin(), one.end());
  }
  return out;
}

ir::Quant in_order(ir::Quant quant, const std::vector<int32_t>& order) {
  const auto choose = [&](auto& values) {
    if (values.size() <= 1) return;
    const auto before = values;
    values.clear();
    for (const int32_t from : order) values.push_back(before[static_cast<size_t>(from)]);
  };
  choose(quant.scales);
  choose(quant.zero_points);
  return quant;
}

// True if the constant has one row per output, or a scale and zero point that fit.
bool has_rows(const ir::Tensor& tensor, int64_t outputs) {
  const auto fits = [&](size_t count) { return count <= 1 || std::cmp_equal(count, outputs); };
  return tensor.is_constant() && tensor.shape.rank() > 0 && tensor.shape[0] == outputs && outputs > 0 &&
         fits(tensor.quant.scales.size()) && fits(tensor.quant.zero_points.size());
}

// The channels that are read, in order; empty: not a GATHER of channels.
std::vector<int32_t> order_of(const Rewriter& rewriter, const ir::Op& op) {
  if (op.kind != ir::OpKind::gather || op.inputs.size() < 2) return {};
  const ir::Tensor &from = rewriter.tensor(op.inputs[0]), &which = rewriter.tensor(op.inputs[1]);
  const auto& attrs = op.as<ir::GatherAttrs>();
  const int32_t rank = from.shape.rank();
  if ((attrs.axis != rank - 1 && attrs.axis != -1) || attrs.batch_dims != 0 || which.shape.rank() != 1 ||
      which.dtype != ir::DType::int32 || !which.is_constant() || !same_meaning(from, rewriter.tensor(op.outputs[0])))
    return {};
  std::vector<int32_t> order = which.values<int32_t>();
  const auto is_channel = [&](int32_t channel) { return channel >= 0 && channel < from.shape.back(0); };
  return std::ranges::all_of(order, is_channel) ? order : std::vector<int32_t>{};
}

}  // namespace

void fold_channel_order(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  const std::vector<int32_t> order = order_of(rewriter, old);
  const ir::OpId producer = order.empty() ? -1 : rewriter.only_producer(old.inputs[0]);
  if (producer < 0) return;
  ir::Op op = rewriter.op(producer);
  if (op.kind != ir::OpKind::conv_2d && op.kind != ir::OpKind::fully_connected) return;
  const ir::Tensor filter = rewriter.tensor(op.inputs[1]);
  const int64_t outputs = rewriter.tensor(old.inputs[0]).shape.back(0);
  const bool is_grouped = filter.shape.back(0) != rewriter.tensor(op.inputs[0]).shape.back(0);
  const ir::TensorId bias = op.input(2);
  if (!has_rows(filter, outputs) || filter.quant.axis != 0 || (op.kind == ir::OpKind::conv_2d && is_grouped) ||
      (bias != ir::kNoTensor && !has_rows(rewriter.tensor(bias), outputs)))
    return;
  const auto ordered = [&](const ir::Tensor& tensor) {
    ir::Shape shape = tensor.shape;
    shape.dims[0] = static_cast<int32_t>(order.size());
    return rewriter.add_constant(tensor.name + "/ordered", tensor.dtype, std::move(shape),
                                 in_order(tensor.data, static_cast<size_t>(outputs), order),
                                 in_order(tensor.quant, order));
  };
  op.inputs[1] = ordered(filter);
  if (bias != ir::kNoTensor) op.inputs[2] = ordered(ir::Tensor(rewriter.tensor(bias)));
  op.outputs = old.outputs;
  std::string text = fmt::format("{} computes channels in the order of GATHER", ir::op_name(op));
  rewriter.replace(
      {.ops = {producer, id}, .kept = producer, .by = {std::move(op)}, .text = std::move(text), .must_help = false});
}

}  // namespace skillet::passes
