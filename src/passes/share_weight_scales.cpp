// Weights with a scale per channel, for chips that have one scale per job: fewer scales, a job each.
#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/rules.h"
#include "passes/passes.h"
#include "passes/weight_scales.h"

namespace skillet::passes {
namespace {

// Jobs for one op that is not exact anyway. More bring little: a network is as far from itself when its layers' own
// roundings change (docs/models.md).
constexpr size_t kApproximateScalesMax = 8;

std::optional<SharedScales> choose(const WeightedLayer& layer, size_t scales_max, driver::PerChannel mode) {
  const bool approximate = mode == driver::PerChannel::approximate;
  const size_t few = approximate ? std::min(scales_max, kApproximateScalesMax) : scales_max;
  if (auto exact = share_exactly(layer, few)) return exact;
  if (!approximate) return std::nullopt;
  return share(layer, enough_scales(layer, few));
}

template <typename T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes out(values.size() * sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) store_le(out.data() + i * sizeof(T), values[i]);
  return out;
}

ir::Tensor filter_of(const WeightedLayer& layer, const ir::Tensor& before, bool depthwise) {
  ir::Tensor filter = before;
  filter.quant.scales = layer.scales;
  Bytes bytes(layer.weights.size());
  for (size_t c = 0; c < layer.channels(); ++c) {
    for (size_t tap = 0; tap < layer.taps; ++tap) {
      const size_t from = c * layer.taps + tap, to = depthwise ? tap * layer.channels() + c : from;
      bytes[to] = static_cast<uint8_t>(layer.weights[from]);
    }
  }
  ir::set_constant(filter, std::move(bytes));
  return filter;
}

ir::Tensor bias_of(const WeightedLayer& layer, const ir::Tensor& before, float input_scale) {
  ir::Tensor bias = before;
  if (bias.quant.scales.size() == layer.channels()) {
    for (size_t c = 0; c < layer.channels(); ++c) bias.quant.scales[c] = input_scale * layer.scales[c];
  }
  ir::set_constant(bias, bytes_of(layer.biases));
  return bias;
}

// The old tensors stay: other ops may read them, and whoever runs the op on the CPU does. False: a scale would leave
// floats, and the graph is as it was.
bool replace(ir::Graph& graph, ir::OpId id, const WeightedLayer& layer) {
  const size_t tensors = graph.tensors.size();
  const ir::Op op = graph.op(id);
  const bool depthwise = op.kind == ir::OpKind::depthwise_conv_2d;
  ir::Op& now = graph.ops[static_cast<size_t>(id)];
  now.inputs[1] = graph.add_tensor(filter_of(layer, graph.tensor(op.inputs[1]), depthwise));
  if (op.input(2) != ir::kNoTensor) {
    const float input_scale = graph.tensor(op.inputs[0]).quant.scale();
    now.inputs[2] = graph.add_tensor(bias_of(layer, graph.tensor(op.inputs[2]), input_scale));
  }
  if (ir::check_tensors(graph, tensors).ok() && ir::check_ops(graph, static_cast<size_t>(id), 1).ok()) return true;
  now = op;
  graph.tensors.resize(tensors);
  return false;
}

size_t count_scales(const WeightedLayer& layer) {
  std::vector<float> scales = layer.scales;
  std::ranges::sort(scales);
  return static_cast<size_t>(std::unique(scales.begin(), scales.end()) - scales.begin());
}

}  // namespace

std::string WeightChange::text() const {
  return fmt::format("{} weight scales become {}: up to {} step{} off, {:.2f} expected", scales_before, scales, worst,
                     worst == 1 ? "" : "s", expected);
}

Result<void> share_weight_scales(ir::Graph& graph, const Target& target) {
  if (target.driver == nullptr) return {};
  uint64_t made = constant_bytes(graph);
  for (ir::OpId op = 0; op < static_cast<ir::OpId>(graph.ops.size()); ++op) {
    const std::optional<WeightedLayer> layer = weighted_layer(graph, op);
    if (!layer) continue;
    const size_t scales_max = target.driver->weight_scales_max(target.chip, graph, op), scales = count_scales(*layer);
    if (scales_max == SIZE_MAX) continue;  // nothing to gain
    const std::optional<SharedScales> shared = choose(*layer, scales_max, target.per_channel);
    if (!shared || shared->scales == scales) continue;
    made += layer->weights.size();
    if (made > target.constants_max) break;  // the chip refuses what is left
    const std::vector<ir::TensorId> inputs = graph.op(op).inputs;
    if (!replace(graph, op, shared->layer)) continue;
    if (target.weight_changes != nullptr)
      target.weight_changes->push_back({.op = op,
                                        .inputs = inputs,
                                        .scales_before = scales,
                                        .scales = shared->scales,
                                        .worst = shared->worst,
                                        .expected = shared->expected});
  }
  return {};
}

}  // namespace skillet::passes
