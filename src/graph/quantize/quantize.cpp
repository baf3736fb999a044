#include "graph/quantize/quantize.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "graph/passes/lower/weight_scales.h"
#include "graph/quantize/headroom.h"
#include "graph/ref/ref.h"

namespace skillet::quantize {
namespace {

constexpr size_t kScales[] = {1, 2, 3, 4, 6, 8, 12, 16};

// Tensors of several inferences that run through a network in parallel; each lives until its last reader has run.
class Batch {
 public:
  Batch(const ir::Graph& graph, std::span<const Inputs> sets) : contents_(sets.size()) {
    for (size_t i = 0; i < sets.size(); ++i) {
      contents_[i].resize(graph.tensors.size());
      for (size_t k = 0; k < graph.inputs.size(); ++k) contents_[i][index(graph.inputs[k])] = sets[i][k];
    }
  }

  std::vector<std::span<const uint8_t>> all(ir::TensorId tensor) const {
    std::vector<std::span<const uint8_t>> out;
    for (const auto& one : contents_) out.emplace_back(one[index(tensor)]);
    return out;
  }

  Result<void> run(const ir::Graph& graph, ir::OpId id) {
    SK_TRY_ASSIGN(const std::unique_ptr<ref::Kernel> kernel, ref::prepare(graph, id));
    for (auto& one : contents_) {
      one.resize(graph.tensors.size());
      std::vector<std::span<uint8_t>> spans(graph.tensors.size());
      for (const auto* operands : {&graph.op(id).inputs, &graph.op(id).outputs}) {
        for (const ir::TensorId tensor : *operands) {
          if (tensor != ir::kNoTensor) spans[index(tensor)] = bytes_of(graph, tensor, one);
        }
      }
      SK_TRY(kernel->run(spans));
    }
    return {};
  }

  void drop(ir::TensorId tensor) {
    for (auto& one : contents_) Bytes().swap(one[index(tensor)]);
  }

 private:
  static size_t index(ir::TensorId id) { return static_cast<size_t>(id); }
  // Kernels only read constants.
  static std::span<uint8_t> bytes_of(const ir::Graph& graph, ir::TensorId id, std::vector<Bytes>& contents) {
    const ir::Tensor& tensor = graph.tensor(id);
    if (tensor.is_constant()) return {const_cast<uint8_t*>(tensor.data.data()), tensor.data.size()};
    Bytes& out = contents[index(id)];
    if (out.empty()) out = ref::initial_bytes(tensor);
    return out;
  }

  std::vector<std::vector<Bytes>> contents_;  // by inference, by tensor
};

// Error feedback moves the mean of outputs into biases, so a layer needs one.
void give_bias(ir::Graph& graph, ir::OpId id) {
  const passes::LayerOperands operands = passes::layer_operands(graph.op(id));
  if (graph.op(id).input(operands.bias) != ir::kNoTensor) return;
  const ir::Tensor& filter = graph.tensor(graph.op(id).inputs[1]);
  ir::Tensor bias{.name = graph.tensor(graph.op(id).outputs[0]).name + "/bias", .dtype = ir::DType::int32, .owner = {}};
  bias.shape = {static_cast<int32_t>(filter.quant.scales.size())};
  bias.quant = filter.quant;
  bias.quant.axis = 0;
  for (float& scale : bias.quant.scales) scale *= graph.tensor(graph.op(id).inputs[operands.image]).quant.scale();
  ir::set_constant(bias, Bytes(filter.quant.scales.size() * sizeof(int32_t), 0));
  const ir::TensorId added = graph.add_tensor(std::move(bias));
  std::vector<ir::TensorId>& inputs = graph.ops[static_cast<size_t>(id)].inputs;
  inputs.resize(operands.bias);
  inputs.push_back(added);
}

// Equal scales for all channels are written as one: some delegates do not accept a list.
void collapse(ir::Quant& quant) {
  if (quant.scales.empty() || ir::count_distinct(quant.scales) > 1) return;
  quant.scales.resize(1);
  quant.zero_points.resize(1);
  quant.axis = 0;
}

void write(ir::Graph& graph, ir::OpId id, const passes::WeightedLayer& layer) {
  give_bias(graph, id);
  if (!passes::replace_weights(graph, id, layer)) return;  // a scale would not fit a float
  for (const size_t operand : {size_t{1}, passes::layer_operands(graph.op(id)).bias})
    collapse(graph.tensor(graph.op(id).inputs[operand]).quant);
}

// Removes added tensors that no operation reads any more: the headroom step's tensors were replaced by rounding.
void drop_unused(ir::Graph& graph, size_t model_tensors) {
  std::vector<ir::TensorId> ids(graph.tensors.size(), ir::kNoTensor);
  std::vector<ir::Tensor> kept(graph.tensors.begin(),
                               graph.tensors.begin() + static_cast<std::ptrdiff_t>(model_tensors));
  for (ir::Op& op : graph.ops) {
    for (ir::TensorId& input : op.inputs) {
      if (input == ir::kNoTensor || static_cast<size_t>(input) < model_tensors) continue;
      ir::TensorId& id = ids[static_cast<size_t>(input)];
      if (id == ir::kNoTensor) {
        id = static_cast<ir::TensorId>(kept.size());
        kept.push_back(graph.tensor(input));
      }
      input = id;
    }
  }
  graph.tensors = std::move(kept);
}

std::vector<Range> ranges_of(const ir::Tensor& tensor, std::span<const std::span<const uint8_t>> contents) {
  std::vector<Range> out(static_cast<size_t>(tensor.shape.dims.back()));
  for (const auto& bytes : contents) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      const double value = static_cast<int8_t>(bytes[i]) - tensor.quant.zero_point();
      Range& range = out[i % out.size()];
      range = {std::min(range.low, value), std::max(range.high, value)};
    }
  }
  return out;
}

class Work {
 public:
  Work(const ir::Graph& model, std::span<const Inputs> calibration, std::span<const Inputs> held,
       const Options& options)
      : options_(options), seen_(model, calibration), held_(model, held) {
    out_.graph = model;
    readers_ = ir::consumers(model);
  }

  Result<Quantized> run() {
    const std::vector<ir::OpId> layers = layers_of(out_.graph);
    size_t done = 0;
    for (ir::OpId op = 0; op < static_cast<ir::OpId>(out_.graph.ops.size()); ++op) {
      const bool is_layer = std::ranges::binary_search(layers, op);
      if (is_layer && options_.progress) options_.progress(done++, layers.size());
      if (is_layer && options_.scales_max(op) > 0) SK_TRY(take(op));
      SK_TRY(seen_.run(out_.graph, op));
      SK_TRY(held_.run(out_.graph, op));
      drop_after(op);
    }
    drop_unused(out_.graph, readers_.size());
    SK_TRY(ir::verify(out_.graph));
    return std::move(out_);
  }

 private:
  Result<void> take(ir::OpId op) {
    const ir::TensorId input = out_.graph.op(op).inputs[passes::layer_operands(out_.graph.op(op)).image];
    Layer layer{.op = op, .input_varies = varies(out_.graph, op, seen_.all(input))};
    if (layer.input_varies) SK_TRY_INTO(layer.headroom, make_room(op));
    const std::optional<passes::WeightedLayer> before = passes::weighted_layer(out_.graph, op);
    if (!before) return {};  // no longer several scales
    layer.scales_before = ir::count_distinct(before->scales);
    const size_t scales_max = options_.scales_max(op);
    // Some evenly spread values would only be clamped and not count.
    const Limits limits = layer.input_varies ? output_limits(out_.graph, op) : Limits{-HUGE_VAL, HUGE_VAL};
    const Samples samples =
        layer.input_varies ? sample(out_.graph, op, seen_.all(input)) : spread_evenly(out_.graph, op);
    const passes::WeightedLayer after = fewest_scales(*before, samples, limits, layer.input_varies, scales_max);
    layer.scales = ir::count_distinct(after.scales);
    layer.seen = fit_of(*before, after, samples, limits);
    if (!held_.all(input).empty() && (layer.input_varies || varies(out_.graph, op, held_.all(input))))
      layer.held = fit_of(*before, after, sample(out_.graph, op, held_.all(input)), output_limits(out_.graph, op));
    write(out_.graph, op, after);
    out_.layers.push_back(layer);
    return {};
  }

  // If no number of scales keeps the error: the fewest whose error is near the least.
  passes::WeightedLayer fewest_scales(const passes::WeightedLayer& before, const Samples& samples, Limits limits,
                                      bool feed_back, size_t most) const {
    constexpr double kNear = 1.25;
    std::optional<Rounding> rounding;
    if (feed_back) rounding.emplace(before, samples, limits);
    std::vector<passes::WeightedLayer> tried;
    std::vector<double> errors;
    for (const size_t scales : kScales) {
      if (scales > most) break;
      tried.push_back(rounding ? rounding->round(scales) : round_plainly(before, samples, scales));
      errors.push_back(fit_of(before, tried.back(), samples, limits).rms());
      if (errors.back() <= options_.error) return tried.back();
    }
    const double enough = kNear * std::ranges::min(errors);
    const auto first = std::ranges::find_if(errors, [&](double error) { return error <= enough; });
    return tried[static_cast<size_t>(first - errors.begin())];
  }

  // Returns the largest factor.
  Result<double> make_room(ir::OpId op) {
    const std::optional<ir::OpId> reader = depthwise_reader(out_.graph, op);
    if (!reader || options_.scales_max(*reader) == 0) return 1.0;
    const passes::WeightedLayer before = *passes::weighted_layer(out_.graph, op);
    passes::WeightedLayer first = before;
    passes::WeightedLayer second = *passes::weighted_layer(out_.graph, *reader);
    SK_TRY(seen_.run(out_.graph, op));
    const ir::TensorId made = out_.graph.op(op).outputs[0];
    const std::vector<Range> ranges = ranges_of(out_.graph.tensor(made), seen_.all(made));
    const std::vector<double> factors = headroom(first, second, ranges, output_limits(out_.graph, op));
    grow(first, second, factors);
    if (!passes::replace_weights(out_.graph, op, first)) return 1.0;
    if (!passes::replace_weights(out_.graph, *reader, second)) {
      passes::replace_weights(out_.graph, op, before);
      return 1.0;
    }
    return std::ranges::max(factors);
  }

  void drop_after(ir::OpId op) {
    for (const ir::TensorId tensor : out_.graph.op(op).inputs) {
      if (tensor == ir::kNoTensor || static_cast<size_t>(tensor) >= readers_.size()) continue;
      const std::vector<ir::OpId>& all = readers_[static_cast<size_t>(tensor)];
      if (out_.graph.tensor(tensor).is_variable || (!all.empty() && all.back() > op)) continue;
      seen_.drop(tensor);
      held_.drop(tensor);
    }
  }

  const Options& options_;
  Quantized out_;
  std::vector<std::vector<ir::OpId>> readers_;
  Batch seen_, held_;
};

}  // namespace

std::vector<ir::OpId> layers_of(const ir::Graph& model) {
  std::vector<ir::OpId> out;
  for (ir::OpId op = 0; op < static_cast<ir::OpId>(model.ops.size()); ++op) {
    if (passes::weighted_layer(model, op) && can_sample(model, op)) out.push_back(op);
  }
  return out;
}

std::vector<ir::OpId> others_of(const ir::Graph& model) {
  const std::vector<ir::OpId> layers = layers_of(model);
  const auto has_scales = [&](ir::TensorId id) {
    return id != ir::kNoTensor && model.tensor(id).dtype == ir::DType::int8 && model.tensor(id).is_constant() &&
           ir::count_distinct(model.tensor(id).quant.scales) > 1;
  };
  std::vector<ir::OpId> out;
  for (ir::OpId op = 0; op < static_cast<ir::OpId>(model.ops.size()); ++op) {
    if (!std::ranges::binary_search(layers, op) && std::ranges::any_of(model.op(op).inputs, has_scales))
      out.push_back(op);
  }
  return out;
}

Result<Quantized> quantize(const ir::Graph& model, std::span<const Inputs> calibration, std::span<const Inputs> held,
                           const Options& options) {
  return Work(model, calibration, held, options).run();
}

}  // namespace skillet::quantize
