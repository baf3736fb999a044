#include "npus/vivante/compiler/groups.h"

#include <algorithm>
#include <functional>
#include <map>

namespace skillet::npus::vivante {

std::vector<ChannelGroup> channel_groups(const ir::Quant& filter, int32_t channels) {
  std::map<float, std::vector<int32_t>, std::greater<>> by_scale;
  for (int32_t c = 0; c < channels; ++c)
    by_scale[filter.per_channel() ? filter.scales[static_cast<size_t>(c)] : filter.scale()].push_back(c);
  std::vector<ChannelGroup> groups;
  for (auto& [scale, members] : by_scale) groups.push_back({scale, std::move(members)});
  return groups;
}

PlaneOrder plane_order(std::span<const ChannelGroup> groups) {
  PlaneOrder order;
  for (const ChannelGroup& group : groups) order.insert(order.end(), group.channels.begin(), group.channels.end());
  if (std::ranges::is_sorted(order)) order.clear();
  return order;
}

Kernels select_kernels(const Kernels& all, std::span<const int32_t> outputs, const PlaneOrder& input_order) {
  const auto row = static_cast<size_t>(int64_t{all.band} * all.patch_elems());
  // A channel of the input may be several channels of the job, which stay together.
  const size_t channel = input_order.empty() ? row : row / input_order.size();
  PlaneOrder order = input_order.empty() ? PlaneOrder{0} : input_order;
  auto weights = std::make_shared<Bytes>();
  weights->reserve(outputs.size() * row);
  Kernels some = all;
  some.biases.clear();
  for (const int32_t oc : outputs) {
    const uint8_t* const kernel = all.weights.data() + static_cast<size_t>(oc) * row;
    for (const int32_t c : order) {
      const uint8_t* const from = kernel + static_cast<size_t>(c) * channel;
      weights->insert(weights->end(), from, from + channel);
    }
    some.biases.push_back(all.biases[static_cast<size_t>(oc)]);
  }
  some.output_channels = static_cast<int32_t>(outputs.size());
  some.weights = *weights;
  some.lowered = std::move(weights);
  return some;
}

Kernels sorting_kernels(const PlaneOrder& order, int32_t pixel_center, uint8_t zero_point) {
  const size_t channels = order.size();
  auto weights = std::make_shared<Bytes>(channels * channels, uint8_t{0});
  for (size_t plane = 0; plane < channels; ++plane)
    (*weights)[static_cast<size_t>(order[plane]) * channels + plane] = 1;
  Kernels k{.output_channels = static_cast<int32_t>(channels), .input_channels = static_cast<int32_t>(channels)};
  k.band = k.input_channels;
  k.weights = *weights;
  k.lowered = std::move(weights);
  k.biases.assign(channels, pixel_center - zero_point);
  return k;
}

}  // namespace skillet::npus::vivante
