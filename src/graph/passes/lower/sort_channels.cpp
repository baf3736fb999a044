// Sorts channels between convolutions by their scales, for chips where neighbouring channels share a shift of their
// multipliers: channels with similar scales get multipliers with more bits. Each result stays the same bit by bit: all
// filters that make such a tensor, pass it on channel by channel or read it are written in the new order.
#include <algorithm>
#include <numeric>
#include <optional>

#include "graph/passes/passes.h"

namespace skillet::passes {
namespace {

using ir::OpKind;
using ir::TensorId;

// Ratio of the largest to the smallest scale below which all multipliers are precise enough.
constexpr float kApart = 2;

bool is_filter(const ir::Graph& graph, const ir::Op& op, OpKind kind) {
  if (op.kind != kind || op.inputs.size() < 2) return false;
  const ir::Tensor& filter = graph.tensor(op.inputs[1]);
  const TensorId bias = op.input(2);
  return filter.is_constant() && ir::is_8bit(filter.dtype) && filter.shape.rank() == 4 &&
         (bias == ir::kNoTensor || graph.tensor(bias).is_constant());
}

// A tensor, and the tensors that have its channels in the same order.
struct Chain {
  std::vector<TensorId> tensors;
  std::vector<ir::OpId> depthwise, readers;
};

class Sorter {
 public:
  Sorter(ir::Graph& graph, const Target& target)
      : graph_(graph), target_(target), readers_(ir::consumers(graph)), made_(constant_bytes(graph)) {}

  void run() {
    for (ir::OpId id = 0; id < static_cast<ir::OpId>(graph_.ops.size()); ++id) {
      if (!wants_order(graph_.op(id))) continue;
      if (const auto chain = chain_from(graph_.op(id).outputs[0])) sort(id, *chain);
    }
  }

 private:
  bool wants_order(const ir::Op& op) const {
    if (!is_filter(graph_, op, OpKind::conv_2d)) return false;
    const ir::Tensor& filter = graph_.tensor(op.inputs[1]);
    const std::vector<float>& scales = filter.quant.scales;
    const auto channels = filter.shape[0];
    return filter.quant.axis == 0 && std::ssize(scales) == channels && channels > target_.chip.channels_of_a_shift &&
           std::ranges::max(scales) > kApart * std::ranges::min(scales);
  }

  std::optional<Chain> chain_from(TensorId first) const {
    Chain chain{.tensors = {first}, .depthwise = {}, .readers = {}};
    for (size_t i = 0; i < chain.tensors.size(); ++i) {
      const TensorId id = chain.tensors[i];
      const auto& readers = readers_[static_cast<size_t>(id)];
      if (readers.empty() || std::ranges::count(graph_.outputs, id) != 0) return std::nullopt;
      for (const ir::OpId reader : readers) {
        const ir::Op& op = graph_.op(reader);
        if (std::ranges::count(op.inputs, id) != 1 || op.inputs[0] != id) return std::nullopt;
        if (is_filter(graph_, op, OpKind::conv_2d)) {
          if (graph_.tensor(op.inputs[1]).shape[3] != graph_.tensor(first).shape[3]) return std::nullopt;  // grouped
          chain.readers.push_back(reader);
        } else if (is_filter(graph_, op, OpKind::depthwise_conv_2d) && op.as<ir::ConvAttrs>().depth_multiplier == 1) {
          chain.depthwise.push_back(reader);
          chain.tensors.push_back(op.outputs[0]);
        } else {
          return std::nullopt;
        }
      }
    }
    return chain;
  }

  void sort(ir::OpId maker, const Chain& chain) {
    const std::vector<float> scales = graph_.tensor(graph_.op(maker).inputs[1]).quant.scales;
    std::vector<size_t> order(scales.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return scales[a] > scales[b]; });
    if (std::ranges::is_sorted(order)) return;
    uint64_t bytes = bytes_of(maker);
    for (const auto* ops : {&chain.depthwise, &chain.readers}) {
      for (const ir::OpId op : *ops) bytes += bytes_of(op);
    }
    if (made_ + bytes > target_.constants_max) return;
    made_ += bytes;
    reorder_outputs(maker, order);
    for (const ir::OpId op : chain.depthwise) reorder_outputs(op, order);
    for (const ir::OpId op : chain.readers) reorder(inputs_of(op)[1], 3, order);
    for (const TensorId id : chain.tensors) graph_.tensor(id).name += "/by_scale";
  }
  uint64_t bytes_of(ir::OpId op) const {
    const TensorId bias = graph_.op(op).input(2);
    return graph_.tensor(graph_.op(op).inputs[1]).data.size() +
           (bias == ir::kNoTensor ? 0 : graph_.tensor(bias).data.size());
  }

  std::vector<TensorId>& inputs_of(ir::OpId op) { return graph_.ops[static_cast<size_t>(op)].inputs; }
  void reorder_outputs(ir::OpId id, const std::vector<size_t>& order) {
    std::vector<TensorId>& inputs = inputs_of(id);
    reorder(inputs[1], graph_.op(id).kind == OpKind::conv_2d ? 0 : 3, order);
    if (graph_.op(id).input(2) != ir::kNoTensor) reorder(inputs[2], 0, order);
  }

  // Reorders along one dimension, into a new constant: other ops may read the old one.
  void reorder(TensorId& id, int32_t axis, const std::vector<size_t>& order) {
    ir::Tensor tensor = graph_.tensor(id);
    size_t inner = static_cast<size_t>(tensor.bytes());
    for (int32_t i = 0; i <= axis; ++i) inner /= static_cast<size_t>(tensor.shape[i]);
    const size_t slice = inner * order.size();
    auto bytes = std::make_shared<Bytes>(tensor.data.size());
    for (size_t outer = 0; outer < bytes->size(); outer += slice) {
      for (size_t c = 0; c < order.size(); ++c)
        std::copy_n(tensor.data.begin() + static_cast<std::ptrdiff_t>(outer + order[c] * inner), inner,
                    bytes->begin() + static_cast<std::ptrdiff_t>(outer + c * inner));
    }
    if (tensor.quant.axis == axis) {
      reorder(tensor.quant.scales, order);
      reorder(tensor.quant.zero_points, order);
    }
    tensor.data = *bytes;
    tensor.owner = std::move(bytes);
    graph_.tensors.push_back(std::move(tensor));
    id = static_cast<TensorId>(graph_.tensors.size() - 1);
  }
  template <typename T>
  static void reorder(std::vector<T>& values, const std::vector<size_t>& order) {
    if (values.size() != order.size()) return;
    const std::vector<T> before = values;
    for (size_t c = 0; c < order.size(); ++c) values[c] = before[order[c]];
  }

  ir::Graph& graph_;
  const Target& target_;
  const std::vector<std::vector<ir::OpId>> readers_;
  uint64_t made_;
};

}  // namespace

void sort_channels(ir::Graph& graph, const Target& target) {
  if (target.driver != nullptr && target.chip.channels_of_a_shift != 0) Sorter(graph, target).run();
}

}  // namespace skillet::passes
