#include "compile/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace skillet::compile {
namespace {

struct Counts {
  size_t weighted = 0, float_weights = 0, float_activations = 0, wide_activations = 0;
};

bool has_weights(ir::OpKind kind) {
  return kind == ir::OpKind::conv_2d || kind == ir::OpKind::depthwise_conv_2d || kind == ir::OpKind::transpose_conv ||
         kind == ir::OpKind::fully_connected;
}

bool differs(const std::vector<float>& scales) {
  return std::ranges::any_of(scales, [&](float scale) { return scale != scales[0]; });
}

Counts count(const ir::Graph& graph) {
  Counts out;
  for (const ir::Op& op : graph.ops) {
    if (!has_weights(op.kind) || op.input(1) == ir::kNoTensor || op.outputs.empty()) continue;
    const ir::Tensor &weights = graph.tensor(op.input(1)), &result = graph.tensor(op.outputs[0]);
    ++out.weighted;
    out.float_weights += weights.dtype == ir::DType::float32 || weights.dtype == ir::DType::float16;
    out.float_activations += result.dtype == ir::DType::float32;
    out.wide_activations += result.dtype == ir::DType::int16;
  }
  return out;
}

// As if all weights and biases had been quantized with one scale.
ir::Graph per_tensor(ir::Graph graph) {
  for (const ir::Op& op : graph.ops) {
    if (!has_weights(op.kind)) continue;
    for (const ir::TensorId id : op.inputs) {
      if (id == ir::kNoTensor || !graph.tensor(id).quant.per_channel()) continue;
      ir::Quant& quant = graph.tensor(id).quant;
      quant.scales = {*std::ranges::max_element(quant.scales)};
      quant.zero_points.resize(1);
    }
  }
  return graph;
}

// Operations that the chip would take if it were not for their scales.
size_t refused_for_their_scales(const ir::Graph& graph, const passes::Target& target) {
  if (target.driver == nullptr) return 0;
  const auto is_per_channel = [&](const ir::Op& op) {
    if (!has_weights(op.kind) || op.input(1) == ir::kNoTensor) return false;
    const std::vector<float>& scales = graph.tensor(op.input(1)).quant.scales;
    return differs(scales) && std::ranges::min(scales) > 0;  // 0 is no scale to share
  };
  if (std::ranges::none_of(graph.ops, is_per_channel)) return 0;
  if (target.per_channel == driver::PerChannel::approximate) return 0;
  const ir::Graph coarse = per_tensor(graph);
  ir::Graph shared = graph;
  if (!passes::share_weight_scales(shared, target).ok()) return 0;
  size_t count = 0;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const auto id = static_cast<ir::OpId>(i);
    if (is_per_channel(graph.ops[i]) && !target.driver->supports(target.chip, shared, id).ok &&
        target.driver->supports(target.chip, coarse, id).ok)
      ++count;
  }
  return count;
}

constexpr std::string_view kHow =
    "quantize it to 8 bits, activations too, with TFLiteConverter: optimizations=[tf.lite.Optimize.DEFAULT], a "
    "representative_dataset, supported_ops=[tf.lite.OpsSet.TFLITE_BUILTINS_INT8] (docs/models.md)";

}  // namespace

std::string without_names(std::string_view reason) {
  std::string out;
  while (!reason.empty()) {
    const size_t open = reason.find('\'');
    const size_t close = open == std::string_view::npos ? open : reason.find('\'', open + 1);
    if (close == std::string_view::npos) break;
    out += reason.substr(0, open);
    if (out.ends_with(" and ") || out.ends_with(" or ")) {
      out += "another";
    } else if (out.ends_with(" -> ")) {
      out.resize(out.size() - 4);
    } else if (out.ends_with(' ')) {
      out.pop_back();
    } else {
      out += "a tensor";
    }
    reason.remove_prefix(close + 1);
  }
  return out.append(reason);
}

std::string remarks(const OpRow& row) {
  const std::string why = without_names(row.why);
  return why + (why.empty() || row.note.empty() ? "" : "; ") + row.note;
}

std::string ReasonGroup::remedy_text() const {
  std::string out(driver::remedy_text(remedy));
  if (cpu_us < 0) return out;
  const std::string ms = fmt::format("{:.3f} ms", cpu_us / 1000);
  return out + (remedy == driver::Remedy::none ? fmt::format(", costs {} (simulated)", ms)
                                               : fmt::format("; now {} on the CPU (simulated)", ms));
}

void advise_unproven(std::span<OpRow> rows, const Compiled& compiled, const Compiled& with_unproven) {
  std::map<int32_t, bool> is_taken;  // by operation of the model: all that it became
  for (const OpRow& row : compile::rows(with_unproven)) {
    const int32_t source = with_unproven.graph.op(row.op).source_index;
    const auto [at, is_new] = is_taken.try_emplace(source, row.on_npu);
    if (!is_new) at->second = at->second && row.on_npu;
  }
  for (OpRow& row : rows) {
    const auto at = is_taken.find(compiled.graph.op(row.op).source_index);
    const bool is_open =
        row.remedy == driver::Remedy::none || row.remedy == driver::remedy_of_op(compiled.graph, row.op);
    if (!row.on_npu && is_open && at != is_taken.end() && at->second) row.remedy = driver::Remedy::allow_unproven;
  }
}

std::vector<ReasonGroup> group_reasons(std::span<const OpRow> rows) {
  std::vector<ReasonGroup> groups;
  for (const OpRow& row : rows) {
    if (row.on_npu || row.why.empty()) continue;
    const std::string reason = without_names(row.why);
    auto group = std::ranges::find(groups, reason, &ReasonGroup::reason);
    if (group == groups.end()) group = groups.insert(groups.end(), {reason, 0, row.remedy, 0});
    ++group->ops;
    group->cpu_us = row.cpu_us < 0 || group->cpu_us < 0 ? -1 : group->cpu_us + row.cpu_us;
  }
  std::ranges::stable_sort(groups, std::greater{}, &ReasonGroup::ops);
  return groups;
}

std::string quantization_advice(const ir::Graph& graph, const passes::Target& target) {
  const Counts counts = count(graph);
  if (counts.weighted == 0) return "";
  if (counts.float_activations > counts.weighted / 2)
    return fmt::format("{}: NPUs compute with 8-bit integers; {}",
                       counts.float_weights > counts.weighted / 2
                           ? "the network is not quantized"
                           : "only the weights of the network are quantized (dynamic range)",
                       kHow);
  if (counts.wide_activations > counts.weighted / 2)
    return fmt::format("the network has 16-bit activations: NPUs compute with 8-bit integers; {}", kHow);
  if (const size_t refused = refused_for_their_scales(graph, target); refused > 0)
    return fmt::format(
        "{} of {} operations with weights have a scale for each channel, and the chip has one per job: "
        "per_channel=approximate (--per-channel, SKILLET_PER_CHANNEL) lets channels share scales, and "
        "--compare=layers shows by how much results move (skillet fix --approximate writes such a model); or quantize "
        "per tensor: "
        "converter._experimental_disable_per_channel = True (docs/models.md)",
        refused, counts.weighted);
  return "";
}

}  // namespace skillet::compile
