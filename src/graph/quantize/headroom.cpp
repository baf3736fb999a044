#include "graph/quantize/headroom.h"

#include <algorithm>
#include <cmath>

namespace skillet::quantize {
namespace {

constexpr double kMost = 64;      // for channels that calibration hardly changed
constexpr double kMargin = 1.1;   // later values may exceed the calibration's
constexpr double kTarget = 0.98;  // share of channels that can be reduced to the target
constexpr double kBiasEnd = 1 << 30;

// Ratio between the limits and a channel's values in calibration.
double room(const Range& range, Limits limits) {
  double out = kMost;
  if (range.high > 0) out = std::min(out, limits.high / (kMargin * range.high));
  // If the output ends at zero, values below it stay clamped.
  if (range.low < 0 && limits.low < 0) out = std::min(out, limits.low / (kMargin * range.low));
  return std::max(1.0, out);
}

bool is_reader(const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  const bool is_depthwise = op.kind == ir::OpKind::depthwise_conv_2d && can_sample(graph, id);
  return is_depthwise && graph.tensor(op.inputs[0]).shape[3] == graph.tensor(op.outputs[0]).shape[3] &&
         passes::weighted_layer(graph, id).has_value();
}

}  // namespace

std::optional<ir::OpId> depthwise_reader(const ir::Graph& graph, ir::OpId id) {
  if (graph.op(id).kind == ir::OpKind::fully_connected || !passes::weighted_layer(graph, id)) return std::nullopt;
  const auto readers = ir::consumers(graph);
  for (ir::TensorId made = graph.op(id).outputs[0];;) {
    const std::vector<ir::OpId>& all = readers[static_cast<size_t>(made)];
    if (all.size() != 1 || std::ranges::count(graph.outputs, made) > 0) return std::nullopt;
    const ir::Op& next = graph.op(all[0]);
    if (next.kind == ir::OpKind::pad && next.inputs[0] == made) {
      made = next.outputs[0];
      continue;
    }
    const bool is_image = next.input(0) == made && next.input(1) != made && next.input(2) != made;
    return is_image && is_reader(graph, all[0]) ? std::optional(all[0]) : std::nullopt;
  }
}

std::vector<double> headroom(const passes::WeightedLayer& first, const passes::WeightedLayer& second,
                             std::span<const Range> ranges, Limits limits) {
  std::vector<double> rooms, targets, out;
  for (size_t c = 0; c < first.channels(); ++c) {
    rooms.push_back(room(ranges[c], limits));
    targets.push_back(second.scales[c] / rooms[c]);
  }
  std::ranges::sort(targets);
  const double target = targets[static_cast<size_t>(kTarget * static_cast<double>(targets.size() - 1))];
  const double largest = std::ranges::max(first.scales);
  for (size_t c = 0; c < first.channels(); ++c) {
    const double bias_room = kBiasEnd / std::max(1.0, std::abs(static_cast<double>(second.biases[c])));
    const double most = std::min({rooms[c], largest / first.scales[c], bias_room});
    out.push_back(std::max(1.0, std::min(second.scales[c] / target, most)));
  }
  return out;
}

void grow(passes::WeightedLayer& first, passes::WeightedLayer& second, std::span<const double> factors) {
  for (size_t c = 0; c < factors.size(); ++c) {
    first.scales[c] = static_cast<float>(first.scales[c] * factors[c]);
    second.scales[c] = static_cast<float>(second.scales[c] / factors[c]);
    second.biases[c] = static_cast<int32_t>(std::lround(second.biases[c] * factors[c]));
  }
}

}  // namespace skillet::quantize
