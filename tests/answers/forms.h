// A graph in other forms: of one element, of two images, with operands computed or constant, equal or returned.
// Called by graphs_test.cpp and programs_test.cpp.
// Must not know: what the graph is for.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>

#include "base/bytes.h"
#include "graph/ir/graph.h"
#include "graph/ir/rules.h"

namespace skillet::answers {

// The shapes are inferred again, if that is possible.
inline void take_form(ir::Graph graph, const std::function<void(const ir::Graph&)>& take) {
  if (!ir::verify(graph).ok()) (void)ir::infer_shapes(graph);
  take(graph);
}

// All images and filters have one element in each dimension; lists of numbers stay.
inline ir::Graph of_one_element(ir::Graph graph) {
  for (ir::Tensor& one : graph.tensors) {
    if (one.is_constant() && one.quant.scales.empty() && one.dtype == ir::DType::int32) continue;
    std::ranges::fill(one.shape.dims, 1);
    if (one.quant.scales.size() > 1) one.quant.scales.resize(1), one.quant.zero_points.resize(1);
    if (one.is_constant()) ir::set_constant(one, Bytes(static_cast<size_t>(one.bytes()), 7));
  }
  return graph;
}

// Tensors of int8 as uint8, and the other way round: the same numbers with other zero points.
inline ir::Graph of_other_sign(ir::Graph graph) {
  for (ir::Tensor& one : graph.tensors) {
    if ((one.dtype != ir::DType::int8 && one.dtype != ir::DType::uint8) || one.quant.scales.size() != 1) continue;
    const bool was_signed = one.dtype == ir::DType::int8;
    one.dtype = was_signed ? ir::DType::uint8 : ir::DType::int8;
    for (auto& zero : one.quant.zero_points) zero += was_signed ? 128 : -128;
    if (!one.is_constant()) continue;
    Bytes bytes(one.data.begin(), one.data.end());
    for (uint8_t& byte : bytes) byte ^= 0x80;
    ir::set_constant(one, bytes);
  }
  return graph;
}

// A convolution's filter with half its input channels: two groups.
inline void make_grouped(ir::Tensor& filter) {
  filter.shape.dims.back() /= 2;
  ir::set_constant(filter, Bytes(filter.data.begin(), filter.data.begin() + filter.bytes()));
}

// A scale for each output channel in place of one.
inline void make_per_channel(ir::Tensor& filter, int32_t axis) {
  ir::Quant& quant = filter.quant;
  const float scale = quant.scale();
  const auto channels = static_cast<size_t>(filter.shape.dims[static_cast<size_t>(axis)]);
  quant.axis = axis;
  quant.scales.clear();
  for (size_t i = 0; i < channels; ++i) quant.scales.push_back(scale * (1.0F + 0.125F * static_cast<float>(i % 5)));
  quant.zero_points.assign(channels, 0);
}

inline void each_form(const ir::Graph& graph, const std::function<void(const ir::Graph&)>& take) {
  take_form(of_one_element(graph), take);
  take_form(of_other_sign(graph), take);
  const auto changed = [&](const auto& change) {
    ir::Graph one = graph;
    change(one);
    take_form(std::move(one), take);
  };
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    const auto id = static_cast<ir::TensorId>(i);
    const ir::Tensor& tensor = graph.tensor(id);
    if (tensor.is_constant()) changed([&](ir::Graph& one) { one.tensor(id).data = {}, one.inputs.push_back(id); });
    if (std::ranges::find(graph.inputs, id) == graph.inputs.end()) continue;
    changed([&](ir::Graph& one) {
      std::erase(one.inputs, id);
      ir::set_constant(one.tensor(id), Bytes(static_cast<size_t>(tensor.bytes()), 9));
    });
    changed([&](ir::Graph& one) { one.outputs.push_back(id); });
    if (tensor.shape.rank() == 0) continue;
    changed([&](ir::Graph& one) { one.tensor(id).shape.dims[0] *= 2; });
    changed([&](ir::Graph& one) { one.tensor(id).shape.dims.insert(one.tensor(id).shape.dims.begin(), 1); });
    changed([&](ir::Graph& one) { one.tensor(id).shape.dims.push_back(1); });
    changed([&](ir::Graph& one) { one.tensor(id).shape.dims.erase(one.tensor(id).shape.dims.begin()); });
    changed([&](ir::Graph& one) { one.tensor(id).shape.dims.back() = 1; });
  }
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    for (size_t i = 1; i < graph.ops[op].inputs.size(); ++i) {
      changed([&](ir::Graph& one) { one.ops[op].inputs[i] = one.ops[op].inputs[0]; });
      changed([&](ir::Graph& one) { one.ops[op].inputs[i] = ir::kNoTensor; });
      changed([&](ir::Graph& one) { std::swap(one.ops[op].inputs[0], one.ops[op].inputs[i]); });
    }
    for (const ir::TensorId id : graph.ops[op].outputs) changed([&](ir::Graph& one) { one.outputs.push_back(id); });
    const bool is_depthwise = graph.ops[op].kind == ir::OpKind::depthwise_conv_2d;
    if ((graph.ops[op].kind != ir::OpKind::conv_2d && !is_depthwise) || graph.ops[op].input(1) == ir::kNoTensor)
      continue;
    const ir::TensorId filter = graph.ops[op].inputs[1];
    const ir::Tensor& weights = graph.tensor(filter);
    if (!weights.is_constant() || weights.shape.rank() != 4 || weights.dtype != ir::DType::int8) continue;
    if (!is_depthwise && weights.shape[3] % 2 == 0 && weights.shape[0] % 2 == 0)
      changed([&](ir::Graph& one) { make_grouped(one.tensor(filter)); });
    if (weights.quant.scales.size() == 1)
      changed([&](ir::Graph& one) { make_per_channel(one.tensor(filter), is_depthwise ? 3 : 0); });
  }
}

}  // namespace skillet::answers
