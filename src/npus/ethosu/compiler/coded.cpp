#include "npus/ethosu/compiler/coded.h"

#include <algorithm>

#include "base/int_math.h"
#include "npus/ethosu/compiler/weights.h"

namespace skillet::npus::ethosu {
namespace {

// Each core has every so many channels.
uint32_t channels_of(uint32_t channels, uint32_t cores, uint32_t core) { return (channels + cores - 1 - core) / cores; }

Bytes records_of(const hw::ChipRow& chip, const ir::Graph& graph, const Operation& one, uint32_t core) {
  const auto bias = one.bias == ir::kNoTensor ? std::vector<int32_t>() : graph.tensor(one.bias).values<int32_t>();
  Bytes out;
  for (size_t channel = core; channel < one.output.depth; channel += chip.cores) {
    const auto sum = static_cast<uint64_t>(bias.empty() ? 0 : int64_t{bias[one.first_channel + channel]});
    for (uint32_t i = 0; i < 5; ++i) out.push_back(static_cast<uint8_t>(sum >> 8 * i));
    const Scale scale = one.channel_scales[channel];
    for (uint32_t i = 0; i < 4; ++i) out.push_back(static_cast<uint8_t>(scale.scale >> 8 * i));
    out.push_back(static_cast<uint8_t>(scale.shift));
  }
  out.resize(align_up(out.size(), kConstantAlign));
  return out;
}

Bytes stream_of(const hw::ChipRow& chip, const ir::Graph& graph, const Operation& one, const Tile& tile,
                uint32_t core) {
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
                          .ublock_depth = chip.ublock_depth};
  const size_t taps = size_t{window.kernel_h} * window.kernel_w;
  if (one.filter == ir::kNoTensor)
    return encode_weights(in_order(
        order, [&](uint32_t, uint32_t y, uint32_t x, uint32_t) { return one.taps[size_t{y} * window.kernel_w + x]; }));
  const ir::Tensor& filter = graph.tensor(one.filter);
  const auto zero_point = static_cast<int16_t>(filter.quant.zero_point());
  const bool is_signed = filter.dtype == ir::DType::int8;
  const auto weight = [&](uint32_t o, uint32_t y, uint32_t x, uint32_t i) {
    const size_t channel = one.first_channel + size_t{o} * cores + core, at = size_t{y} * window.kernel_w + x;
    const size_t tap = one.is_turned ? taps - 1 - at : at;
    const uint8_t byte = filter.data[one.filter_by_tap ? tap * outputs + channel : (channel * taps + tap) * inputs + i];
    return static_cast<int16_t>((is_signed ? static_cast<int8_t>(byte) : int16_t{byte}) - zero_point);
  };
  return encode_weights(in_order(order, weight));
}

}  // namespace

Coded code_of(const hw::ChipRow& chip, const ir::Graph& graph, const Operation& operation) {
  Coded out{.tile = tile_of(chip, operation).value(), .bytes = {}, .cores = {}};
  if (!has_weights(operation.unit)) return out;
  const auto add = [&](const Bytes& bytes) {
    out.bytes.insert(out.bytes.end(), bytes.begin(), bytes.end());
    return CodedRange{out.bytes.size() - bytes.size(), bytes.size()};
  };
  for (uint32_t core = 0; core < chip.cores; ++core) {
    const uint32_t channels = channels_of(operation.output.depth, chip.cores, core);
    Coded::Core& one = out.cores.emplace_back();
    one.scales = add(records_of(chip, graph, operation, core));
    one.weights = add(channels == 0 ? Bytes() : stream_of(chip, graph, operation, out.tile, core));
  }
  return out;
}

}  // namespace skillet::npus::ethosu
