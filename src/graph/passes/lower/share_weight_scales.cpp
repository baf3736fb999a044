// Weights with a scale per channel, for chips with one scale per job: fewer scales, one job for each.
#include <algorithm>
#include <cmath>
#include <optional>

#include "graph/ir/rules.h"
#include "graph/passes/lower/weight_scales.h"
#include "graph/passes/passes.h"

namespace skillet::passes {
namespace {

// Limit of jobs for one op whose result is approximate. More bring little: when the roundings of layers change, a
// network's outputs differ by as much (docs/models.md).
constexpr size_t kApproximateScalesMax = 8;

std::optional<SharedScales> choose(const WeightedLayer& layer, size_t scales_max, npu::PerChannel mode) {
  const bool approximate = mode == npu::PerChannel::approximate;
  const size_t few = approximate ? std::min(scales_max, kApproximateScalesMax) : scales_max;
  if (auto exact = share_exactly(layer, few)) return exact;
  if (!approximate) return std::nullopt;
  return share(layer, enough_scales(layer, few));
}

}  // namespace

std::string WeightChange::text() const {
  return fmt::format("{} weight scales become {}: up to {} step{} off, rms {:.2f} expected", scales_before, scales,
                     worst, worst == 1 ? "" : "s", expected);
}

void share_weight_scales(ir::Graph& graph, const Target& target) {
  if (target.driver == nullptr) return;
  uint64_t made = constant_bytes(graph);
  for (ir::OpId op = 0; op < static_cast<ir::OpId>(graph.ops.size()); ++op) {
    if (graph.op(op).kind == ir::OpKind::transpose_conv) continue;  // lowered by another pass, or stays on the CPU
    const size_t scales_max = target.driver->weight_scales_max(target.chip, graph, op);
    if (scales_max == SIZE_MAX) continue;  // the chip supports any number
    const std::optional<WeightedLayer> layer = weighted_layer(graph, op);
    if (!layer) continue;
    const size_t scales = ir::count_distinct(layer->scales);
    const std::optional<SharedScales> shared = choose(*layer, scales_max, target.per_channel);
    if (!shared || shared->scales == scales) continue;
    made += layer->weights.size();
    if (made > target.constants_max) break;  // the chip refuses the remaining ops
    const std::vector<ir::TensorId> inputs = graph.op(op).inputs;
    if (!replace_weights(graph, op, shared->layer)) continue;
    if (target.weight_changes != nullptr)
      target.weight_changes->push_back({.op = op,
                                        .inputs = inputs,
                                        .scales_before = scales,
                                        .scales = shared->scales,
                                        .worst = shared->worst,
                                        .expected = shared->expected});
  }
}

}  // namespace skillet::passes
