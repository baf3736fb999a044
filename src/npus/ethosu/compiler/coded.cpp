#include "npus/ethosu/compiler/coded.h"

#include <algorithm>

#include "base/int_math.h"
#include "npus/ethosu/compiler/lower.h"
#include "npus/ethosu/compiler/weights.h"

namespace skillet::npus::ethosu {
namespace {

// Channels are distributed over the cores in rotation.
uint32_t channels_of(uint32_t channels, uint32_t cores, uint32_t core) { return (channels + cores - 1 - core) / cores; }

Bytes records_of(const hw::ChipRow& chip, const ir::Graph& graph, const Operation& one, uint32_t core) {
  const std::vector<int64_t> bias = bias_values(graph, one.bias);
  Bytes out;
  for (size_t channel = core; channel < one.output.depth; channel += chip.cores) {
    const auto sum = static_cast<uint64_t>(bias.empty() ? 0 : bias[one.first_channel + channel]);
    for (uint32_t i = 0; i < 5; ++i) out.push_back(static_cast<uint8_t>(sum >> 8 * i));
    const Scale scale = one.channel_scales[channel];
    for (uint32_t i = 0; i < 4; ++i) out.push_back(static_cast<uint8_t>(scale.scale >> 8 * i));
    out.push_back(static_cast<uint8_t>(scale.shift));
  }
  out.resize(align_up(out.size(), kConstantAlign));
  return out;
}

// Weights of the operation's channels, minus their zero point.
std::vector<int16_t> values_of(const ir::Graph& graph, const Operation& one) {
  if (one.filter == ir::kNoTensor) return {};
  const ir::Tensor& filter = graph.tensor(one.filter);
  const size_t all = one.filter_by_tap ? one.output.depth : static_cast<size_t>(filter.shape[0]);
  const size_t each = filter.data.size() / all;
  const auto zero_point = static_cast<int16_t>(filter.quant.zero_point());
  const bool is_signed = filter.dtype == ir::DType::int8;
  std::vector<int16_t> out(each * one.output.depth);
  const uint8_t* const from = &filter.data[one.first_channel * each];
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<int16_t>((is_signed ? static_cast<int8_t>(from[i]) : int16_t{from[i]}) - zero_point);
  return out;
}

// Appends to `before`.
Bytes stream_of(const hw::ChipRow& chip, std::span<const int16_t> values, const Operation& one, const Tile& tile,
                uint32_t core, Bytes before) {
  const uint32_t cores = chip.cores, outputs = one.output.depth;
  const uint32_t inputs = one.unit == Unit::depthwise ? 1 : one.input.depth;
  const Window& window = one.window;
  const WeightOrder order{.traversal = traversal_of(one),
                          .outputs = channels_of(outputs, cores, core),
                          .inputs = inputs,
                          .kernel_h = window.kernel_h,
                          .kernel_w = window.kernel_w,
                          .dilation_h = window.dilation_h,
                          .dilation_w = window.dilation_w,
                          .block_depth = std::max(1U, channels_of(tile.depth, cores, core)),
                          .ublock_depth = chip.ublock_depth,
                          .is_wide = one.is_wide()};
  const auto taps = int64_t{window.kernel_h} * window.kernel_w;
  if (one.filter == ir::kNoTensor)
    return encode_weights(in_order(order, {.first = one.taps.data(), .per_tap = 1}), std::move(before));
  Weights weights{.first = values.data(), .per_output = one.filter_by_tap ? 1 : taps * inputs};
  weights.per_tap = one.filter_by_tap ? outputs : inputs, weights.per_input = 1;
  weights.first += core * weights.per_output;
  weights.per_output *= cores;
  if (one.is_turned) weights.first += (taps - 1) * weights.per_tap, weights.per_tap = -weights.per_tap;
  return encode_weights(in_order(order, weights), std::move(before));
}

}  // namespace

Coded code_of(const hw::ChipRow& chip, const ir::Graph& graph, const Operation& operation) {
  Coded out{.tile = tile_of(chip, operation).value(), .bytes = {}, .cores = {}};
  if (!has_weights(operation.unit)) return out;
  const std::vector<int16_t> values = values_of(graph, operation);
  for (uint32_t core = 0; core < chip.cores; ++core) {
    const uint32_t channels = channels_of(operation.output.depth, chip.cores, core);
    Coded::Core& one = out.cores.emplace_back();
    const Bytes records = records_of(chip, graph, operation, core);
    one.scales = {out.bytes.size(), records.size()};
    out.bytes.insert(out.bytes.end(), records.begin(), records.end());
    one.weights.offset = out.bytes.size();
    if (channels != 0) out.bytes = stream_of(chip, values, operation, out.tile, core, std::move(out.bytes));
    one.weights.size_bytes = out.bytes.size() - one.weights.offset;
  }
  return out;
}

}  // namespace skillet::npus::ethosu
