#include "graph/passes/lower/weight_scales.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <type_traits>

#include "base/fixed_point.h"
#include "graph/ir/rules.h"

namespace skillet::passes {
namespace {

// Results that differ by less than 2 before rounding differ by at most 1 after it, if the roundings take no more than
// the rest: half a step each, plus TensorFlow Lite's first rounding and the error of a chip's short multiplier.
constexpr double kMultiplierError = 0.02;
double slack(double scale) {
  const int right = std::max(-quantize_multiplier(scale).shift, 0);
  return 1 - std::ldexp(0.5, -right) - kMultiplierError;
}

// More scales do not justify a job each if they save less than a fifth of the error, or if the error is this small
// anyway.
constexpr double kSmallError = 0.25;
constexpr double kWorthwhile = 1.25;

std::span<const int8_t> weights_of(const WeightedLayer& layer, size_t channel) {
  return std::span(layer.weights).subspan(channel * layer.taps, layer.taps);
}

// Sums of the positive and of the negative weights.
struct WeightSums {
  double above = 0, below = 0;
};
WeightSums sums_of(std::span<const int8_t> weights) {
  constexpr size_t kBlock = 1 << 16, kLanes = 16;  // sums of a block fit 32 bits; compilers vectorise 16 of them
  WeightSums sums;
  for (; !weights.empty(); weights = weights.subspan(std::min(kBlock, weights.size()))) {
    const auto block = weights.first(std::min(kBlock, weights.size()));
    std::array<int32_t, kLanes> above{}, all{};
    const auto add = [&](size_t lane, int32_t weight) { all[lane] += weight, above[lane] += std::max(weight, 0); };
    size_t i = 0;
    for (; i + kLanes <= block.size(); i += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) add(lane, block[i + lane]);
    }
    for (; i < block.size(); ++i) add(0, block[i]);
    const int32_t positive = std::accumulate(above.begin(), above.end(), 0);
    sums.above += positive, sums.below += std::accumulate(all.begin(), all.end(), 0) - positive;
  }
  return sums;
}

// The largest |sum over taps of weight * input + constant|.
double largest_sum(const WeightedLayer& layer, const WeightSums& weights, double constant) {
  const double most = weights.above * layer.high + weights.below * layer.low + constant;
  const double least = weights.above * layer.low + weights.below * layer.high + constant;
  return std::max(std::abs(most), std::abs(least));
}

// Tolerance of one channel: scales from `low` to `high` are allowed with the weights unchanged. `span`: how far its
// inputs can move it.
struct Tolerance {
  double low = 0, high = 0;
  double slack = 0, span = 0;  // output steps
};

Tolerance tolerance_of(const WeightedLayer& layer, size_t channel) {
  const double scale = layer.scales[channel], steps = scale * layer.step;
  const double reach = std::min(layer.largest_sums[channel] * steps, layer.output_reach);
  Tolerance out{.slack = slack(steps), .span = layer.spans[channel] * steps};
  const double relative = reach > 0 ? out.slack / reach : std::numeric_limits<double>::infinity();
  out.low = relative < 1 ? scale * (1 - relative) : 0;
  out.high = scale * (1 + relative);
  return out;
}

double bias_at(const WeightedLayer& layer, size_t channel, double scale) {
  return layer.biases[channel] * double{layer.scales[channel]} / scale;
}

bool can_be_constant(const WeightedLayer& layer, size_t channel, const Tolerance& t, double scale) {
  constexpr double kBiasEnd = 1 << 30;
  return t.span + 0.5 * scale * layer.step <= t.slack && std::abs(bias_at(layer, channel, scale)) < kBiasEnd;
}

void make_constant(WeightedLayer& layer, size_t channel, float scale) {
  std::fill_n(layer.weights.begin() + static_cast<std::ptrdiff_t>(channel * layer.taps), layer.taps, int8_t{0});
  layer.biases[channel] = static_cast<int32_t>(std::lround(bias_at(layer, channel, scale)));
  layer.scales[channel] = scale;
}

// Distance of a channel's results from the original.
struct Distance {  // before rounding
  double worst = 0, mean_square = 0;
};
Distance distance(const WeightedLayer& before, const WeightedLayer& after, size_t channel) {
  // In units of the new sum.
  const double ratio = double{before.scales[channel]} / after.scales[channel];
  const auto from = weights_of(before, channel), to = weights_of(after, channel);
  std::vector<double> off(before.taps);
  for (size_t i = 0; i < off.size(); ++i) off[i] = to[i] - from[i] * ratio;
  const double constant = after.biases[channel] - before.biases[channel] * ratio;
  const double steps = after.scales[channel] * after.step;
  const double mean = (before.low + before.high) / 2, range = before.high - before.low;
  WeightSums sums;
  double sum = 0, squares = 0;
  for (const double one : off) {
    (one > 0 ? sums.above : sums.below) += one;
    sum += one;
    squares += one * one;
  }
  const double center = mean * sum + constant;
  return {.worst = largest_sum(before, sums, constant) * steps,
          .mean_square = (squares * range * range / 12 + center * center) * steps * steps};
}

constexpr double kTypeSteps = 255;

// With unchanged weights the error grows with the output, which is limited by the ends of its type.
void measure(const WeightedLayer& before, SharedScales& shared) {
  double sum = 0;
  for (size_t c = 0; c < before.channels(); ++c) {
    Distance one = distance(before, shared.layer, c);
    const double ratio = double{shared.layer.scales[c]} / before.scales[c];
    if (before.biases[c] == shared.layer.biases[c] &&
        std::ranges::equal(weights_of(before, c), weights_of(shared.layer, c)))
      one.worst = std::min(one.worst, std::abs(ratio - 1) * before.output_reach);
    const double rounded = std::ceil(one.worst + 1 - slack(before.scales[c] * before.step));
    shared.worst = std::max(shared.worst, static_cast<int>(std::min(rounded, kTypeSteps)));
    sum += one.mean_square;
  }
  shared.expected = std::sqrt(sum / static_cast<double>(before.channels()));
  shared.scales = ir::count_distinct(shared.layer.scales);
}

// Channels by scale, the largest first.
std::vector<size_t> by_scale(const WeightedLayer& layer) {
  std::vector<size_t> order(layer.channels());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](size_t c) { return layer.scales[c]; });
  return order;
}

// Rounds weights to the new scale such that their errors cancel: the mean of the input has no effect.
void requantize(WeightedLayer& layer, size_t channel, float scale) {
  const double ratio = double{layer.scales[channel]} / scale;
  if (ratio == 1) return;
  int8_t* const weights = layer.weights.data() + channel * layer.taps;
  std::vector<double> left(layer.taps);
  double sum = 0;
  for (size_t i = 0; i < layer.taps; ++i) {
    const double value = weights[i] * ratio;
    weights[i] = static_cast<int8_t>(std::lround(value));
    left[i] = value - weights[i];
    sum += left[i];
  }
  const auto count = std::min(static_cast<size_t>(std::llabs(std::llround(sum))), layer.taps);
  std::vector<size_t> order(layer.taps);
  std::iota(order.begin(), order.end(), size_t{0});
  const auto before = [&](size_t a, size_t b) { return left[a] != left[b] ? (left[a] > left[b]) == (sum > 0) : a < b; };
  std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(), before);
  for (const size_t i : std::span(order).first(count))
    weights[i] = static_cast<int8_t>(std::clamp(weights[i] + (sum > 0 ? 1 : -1), -127, 127));
  layer.biases[channel] = static_cast<int32_t>(std::lround(bias_at(layer, channel, scale)));
  layer.scales[channel] = scale;
}

Runs runs_of_ratio(std::span<const float> scales, std::span<const size_t> order, double ratio) {
  Runs runs;
  for (size_t first = 0; first < order.size();) {
    size_t end = first;
    while (end < order.size() && double{scales[order[end]]} * ratio >= scales[order[first]]) ++end;
    runs.push_back(order.subspan(first, end - first));
    first = end;
  }
  return runs;
}

// The channels that get a scale that fits their weights, by scale, and the channels that become constants.
struct Division {
  std::vector<size_t> weighted, constants;
};

Division divide(const WeightedLayer& layer) {
  Division out;
  const std::vector<size_t> order = by_scale(layer);
  const float largest = layer.scales[order.front()];
  for (const size_t c : order) {
    const bool is_constant = can_be_constant(layer, c, tolerance_of(layer, c), largest);
    (is_constant ? out.constants : out.weighted).push_back(c);
  }
  // Constants get the first scale of the weighted channels, which must be the largest so that their biases fit.
  if (!out.weighted.empty() && layer.scales[out.weighted.front()] != largest)
    return {.weighted = order, .constants = {}};
  return out;
}

// The mean square error that rounding to these runs adds, with errors spread evenly over a step.
double expected_square(const WeightedLayer& layer, const Runs& runs) {
  const double range = layer.high - layer.low;
  double sum = 0;
  for (const auto& run : runs) {
    const double steps = layer.scales[run.front()] * layer.step;
    for (const size_t c : run) {
      if (layer.scales[c] != layer.scales[run.front()])
        sum += static_cast<double>(layer.taps) * range * range / 144 * steps * steps;
    }
  }
  return sum / static_cast<double>(layer.channels());
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

const ir::Tensor* constant(const ir::Graph& graph, ir::TensorId id) {
  return id != ir::kNoTensor && graph.tensor(id).is_constant() ? &graph.tensor(id) : nullptr;
}

bool has_one_scale(const ir::Tensor& tensor) {
  return ir::is_8bit(tensor.dtype) && tensor.quant.scales.size() == 1 && std::isnormal(tensor.quant.scale());
}

bool means_something(const ir::Quant& quant) {
  return quant.per_channel() && std::ranges::count(quant.zero_points, 0) == std::ssize(quant.zero_points) &&
         std::ranges::all_of(quant.scales, [](float scale) { return std::isnormal(scale) && scale > 0; });
}

void take_weights(const ir::Op& op, const ir::Tensor& filter, WeightedLayer& layer) {
  layer.weights = filter.values<int8_t>();
  if (op.kind != ir::OpKind::depthwise_conv_2d) return;
  const std::vector<int8_t> by_tap = layer.weights;
  for (size_t tap = 0; tap < layer.taps; ++tap) {
    for (size_t c = 0; c < layer.channels(); ++c)
      layer.weights[c * layer.taps + tap] = by_tap[tap * layer.channels() + c];
  }
}

}  // namespace

LayerOperands layer_operands(const ir::Op& op) {
  return op.kind == ir::OpKind::transpose_conv ? LayerOperands{.image = 2, .bias = 3} : LayerOperands{};
}

std::optional<WeightedLayer> weighted_layer(const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  if (op.kind != ir::OpKind::conv_2d && op.kind != ir::OpKind::depthwise_conv_2d &&
      op.kind != ir::OpKind::transpose_conv && op.kind != ir::OpKind::fully_connected)
    return std::nullopt;
  const LayerOperands operands = layer_operands(op);
  if (op.input(operands.image) == ir::kNoTensor || op.outputs.empty()) return std::nullopt;
  const ir::Tensor &input = graph.tensor(op.inputs[operands.image]), &output = graph.tensor(op.outputs[0]);
  const ir::Tensor* const filter = constant(graph, op.input(1));
  const ir::Tensor* const bias = constant(graph, op.input(operands.bias));
  if (filter == nullptr || filter->dtype != ir::DType::int8 || !means_something(filter->quant) ||
      std::ranges::count(filter->quant.scales, filter->quant.scales[0]) == std::ssize(filter->quant.scales))
    return std::nullopt;
  if (!has_one_scale(input) || !has_one_scale(output) || input.dtype != ir::DType::int8 ||
      output.dtype != ir::DType::int8)
    return std::nullopt;
  WeightedLayer layer{.scales = filter->quant.scales};
  layer.taps = filter->data.size() / layer.channels();
  take_weights(op, *filter, layer);
  layer.biases.assign(layer.channels(), 0);
  if (bias != nullptr) layer.biases = bias->values<int32_t>();
  if (layer.biases.size() != layer.channels() || (bias != nullptr && bias->dtype != ir::DType::int32))
    return std::nullopt;
  layer.step = double{input.quant.scale()} / output.quant.scale();
  layer.low = -128 - input.quant.zero_point();
  layer.high = 127 - input.quant.zero_point();
  layer.output_reach = std::max(127 - output.quant.zero_point(), output.quant.zero_point() + 128);
  for (size_t c = 0; c < layer.channels(); ++c) {
    const WeightSums sums = sums_of(weights_of(layer, c));
    layer.largest_sums.push_back(largest_sum(layer, sums, layer.biases[c]));
    layer.spans.push_back(largest_sum(layer, sums, 0));
  }
  return layer;
}

namespace {

// Greedy: takes the remaining channel with the highest lowest allowed scale. All channels that allow this scale share
// the middle of their common range.
class ExactSharing {
 public:
  explicit ExactSharing(const WeightedLayer& layer) : before_(layer) {
    for (const size_t c : by_scale(layer)) left_.push_back({c, tolerance_of(layer, c)});
    std::ranges::stable_sort(left_, std::greater{}, [](const Left& one) { return one.tolerance.low; });
  }

  std::optional<SharedScales> run(size_t scales_max) {
    for (size_t scales = 0; !left_.empty(); ++scales) {
      if (scales == scales_max) return std::nullopt;
      take_one();
    }
    SharedScales out{.layer = before_};
    for (const Taken& one : taken_) {
      if (one.is_constant) {
        make_constant(out.layer, one.channel, one.scale);
      } else {
        out.layer.scales[one.channel] = one.scale;
      }
    }
    measure(before_, out);
    return out;
  }

 private:
  struct Left {
    size_t channel = 0;
    Tolerance tolerance;
  };
  struct Taken {
    size_t channel = 0;
    float scale = 0;
    bool is_constant = false;
  };

  void take_one() {
    const double point = left_.front().tolerance.low;
    double high = std::numeric_limits<double>::infinity();
    for (const auto& [c, tolerance] : left_) high = std::min(high, point <= tolerance.high ? tolerance.high : high);
    const auto scale =
        std::isfinite(high) ? static_cast<float>((point + high) / 2) : before_.scales[left_.front().channel];
    std::erase_if(left_, [&](const Left& one) {
      const bool bears = point <= one.tolerance.high;
      const bool taken = bears || can_be_constant(before_, one.channel, one.tolerance, scale);
      if (taken) taken_.push_back({one.channel, scale, !bears});
      return taken;
    });
  }

  const WeightedLayer& before_;
  std::vector<Left> left_;  // the highest lowest allowed scale first
  std::vector<Taken> taken_;
};

}  // namespace

std::optional<SharedScales> share_exactly(const WeightedLayer& layer, size_t scales_max) {
  return ExactSharing(layer).run(scales_max);
}

Runs fewest_runs(std::span<const float> scales, std::span<const size_t> order, size_t count) {
  if (order.empty()) return {};
  constexpr int kSteps = 40;
  double low = 0, high = std::log(double{scales[order.front()]} / scales[order.back()]) + 1e-9;
  for (int i = 0; i < kSteps; ++i) {
    const double middle = (low + high) / 2;
    (runs_of_ratio(scales, order, std::exp(middle)).size() <= count ? high : low) = middle;
  }
  return runs_of_ratio(scales, order, std::exp(high));
}

bool replace_weights(ir::Graph& graph, ir::OpId id, const WeightedLayer& layer) {
  const size_t tensors = graph.tensors.size();
  const ir::Op op = graph.op(id);
  const bool depthwise = op.kind == ir::OpKind::depthwise_conv_2d;
  ir::Op& now = graph.ops[static_cast<size_t>(id)];
  now.inputs[1] = graph.add_tensor(filter_of(layer, graph.tensor(op.inputs[1]), depthwise));
  const LayerOperands operands = layer_operands(op);
  if (op.input(operands.bias) != ir::kNoTensor) {
    const float input_scale = graph.tensor(op.inputs[operands.image]).quant.scale();
    now.inputs[operands.bias] = graph.add_tensor(bias_of(layer, graph.tensor(op.inputs[operands.bias]), input_scale));
  }
  if (ir::check_tensors(graph, tensors).ok() && ir::check_ops(graph, static_cast<size_t>(id), 1).ok()) return true;
  now = op;
  graph.tensors.resize(tensors);
  return false;
}

SharedScales share(const WeightedLayer& layer, size_t scales) {
  SharedScales out{.layer = layer};
  const Division division = divide(layer);
  const float largest = layer.scales[by_scale(layer).front()];
  for (const size_t c : division.constants) make_constant(out.layer, c, largest);
  for (const auto& run : fewest_runs(layer.scales, division.weighted, scales)) {
    for (const size_t c : run) requantize(out.layer, c, layer.scales[run.front()]);
  }
  measure(layer, out);
  return out;
}

size_t enough_scales(const WeightedLayer& layer, size_t scales_max) {
  const Division division = divide(layer);
  const auto error = [&](size_t scales) {
    return std::sqrt(expected_square(layer, fewest_runs(layer.scales, division.weighted, scales)));
  };
  const double good = std::max(kSmallError, kWorthwhile * error(scales_max));
  size_t scales = 1;
  while (scales < scales_max && error(scales) > good) ++scales;
  return scales;
}

}  // namespace skillet::passes
