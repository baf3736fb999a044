// Graphs, expected results and a device that fails on request, for tests of the delegate.
// Called by the tests beside.
// Must not know: real hosts.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/testing/in_tree.h"
#include "frontend/tflite_delegate/delegate.h"
#include "frontend/tflite_delegate/testing/fake_host.h"
#include "graph/import/import.h"
#include "kernels/api/forwarding_device.h"
#include "kernels/fake/simulated.h"
#include "runtime/metered_device.h"

namespace skillet::delegate {

inline ir::Graph digits() {
  auto graph = tflite::import_file(skillet::in_tree("models/digits.tflite"));
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  return graph.ok() ? std::move(graph).value() : ir::Graph{};
}

// digits() with a pooling that the chip does not take: two partitions, other results.
inline ir::Graph digits_in_two() {
  ir::Graph graph = digits();
  for (ir::Op& op : graph.ops) {
    if (op.kind != ir::OpKind::average_pool_2d) continue;
    op.kind = ir::OpKind::max_pool_2d;
    auto& pool = std::get<ir::PoolAttrs>(op.attrs);
    pool.padding = ir::Padding::same;
    pool.filter_h = pool.filter_w = 8;
    pool.stride_h = pool.stride_w = 7;
  }
  return graph;
}

inline void fill_inputs(FakeHost& host, const ir::Graph& graph, uint8_t seed) {
  for (const ir::TensorId id : graph.inputs) {
    uint32_t state = seed;
    for (uint8_t& byte : host.bytes(id)) byte = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  }
}

inline std::vector<Bytes> outputs_of(FakeHost& host, const ir::Graph& graph) {
  EXPECT_EQ(host.invoke(), kTfLiteOk) << (host.errors.empty() ? "" : host.errors[0]);
  std::vector<Bytes> all;
  for (const ir::TensorId id : graph.outputs) all.emplace_back(host.bytes(id).begin(), host.bytes(id).end());
  return all;
}

inline std::vector<Bytes> expected(const ir::Graph& graph, uint8_t seed) {
  FakeHost host(graph);
  fill_inputs(host, graph, seed);
  return outputs_of(host, graph);
}

// One 1x1 convolution of 8 to 8 channels on uint8.
inline ir::Graph convolution() {
  ir::Graph graph("conv");
  const auto add = [&](const char* name, ir::DType dtype, ir::Shape shape, float scale, int32_t zero_point) {
    ir::Tensor tensor{.name = name, .dtype = dtype, .shape = std::move(shape)};
    tensor.quant = {.scales = {scale}, .zero_points = {zero_point}};
    return graph.add_tensor(std::move(tensor));
  };
  const auto in = add("in", ir::DType::uint8, {1, 6, 6, 8}, 0.5F, 128);
  const auto filter = add("filter", ir::DType::uint8, {8, 1, 1, 8}, 0.25F, 120);
  const auto bias = add("bias", ir::DType::int32, {8}, 0.125F, 0);
  const auto out = add("out", ir::DType::uint8, {1, 6, 6, 8}, 4.0F, 128);
  Bytes weights(64);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<uint8_t>(100 + i);
  ir::set_constant(graph.tensor(filter), weights);
  ir::set_constant(graph.tensor(bias), Bytes(32, 1));
  graph.inputs = {in}, graph.outputs = {out};
  graph.add_op({.kind = ir::OpKind::conv_2d, .attrs = ir::ConvAttrs{}, .inputs = {in, filter, bias}, .outputs = {out}});
  return graph;
}

// Forwards to a simulated chip until it is set to fail or to do nothing.
class WrappedDevice : public kernels::ForwardingDevice {
 public:
  WrappedDevice() : ForwardingDevice(std::move(fake::open_simulated("a311d")).value()) {}
  Result<kernels::Fence> submit(std::span<const kernels::JobId> jobs) override {
    ++submits;
    if (fail) return error(ErrorCode::device, "the chip is on fire");
    return idle ? Result<kernels::Fence>(1) : ForwardingDevice::submit(jobs);
  }
  Result<void> wait(kernels::Fence fence, std::chrono::nanoseconds timeout) override {
    return idle ? Result<void>() : ForwardingDevice::wait(fence, timeout);
  }
  bool loses_jobs() const override { return false; }
  bool fail = false, idle = false;
  int submits = 0;
};

struct Wrapped {
  std::shared_ptr<State> state = std::make_shared<State>();
  WrappedDevice* chip = nullptr;  // owned by the state
  std::unique_ptr<Delegate> delegate;

  Wrapped() {
    state->options.session.partition = compile::PartitionBy::all;  // small networks are not profitable to offload
    state->target = std::move(runtime::open_target("sim:a311d")).value();
    auto device = std::make_unique<WrappedDevice>();
    chip = device.get();
    runtime::DeviceContext& context = *state->target.context;
    context.device = std::make_unique<runtime::MeteredDevice>(std::move(device), context.use);
    delegate = make_delegate(state);
  }
};

}  // namespace skillet::delegate
