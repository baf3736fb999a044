// ToySession: a session of a small graph on the toy NPU, with what it should compute.
// Called by the tests of runtime/.
// Must not know: real chips.
#pragma once

#include <gtest/gtest.h>

#include "kernels/fake/simulated.h"
#include "runtime/session.h"
#include "runtime/toy_hooks.h"

namespace skillet::runtime {

constexpr int32_t kHeight = 3, kWidth = 2, kChannels = 4;
constexpr int64_t kElems = kHeight * kWidth * kChannels;

// x, y -> m = max(x, y) -> r = relu(m) -> a = all of r, a SLICE (CPU) -> z = max(a, K). Returns r and z.
inline ir::Graph chain() {
  ir::Graph graph("chain");
  const auto tensor = [&](const char* name) {
    ir::Tensor t{.name = name, .dtype = ir::DType::uint8, .shape = {1, kHeight, kWidth, kChannels}};
    t.quant = {.scales = {0.5F}, .zero_points = {100}};
    return graph.add_tensor(std::move(t));
  };
  const auto op = [&](ir::OpKind kind, std::vector<ir::TensorId> inputs, ir::TensorId output) {
    graph.add_op({.kind = kind, .attrs = ir::default_attrs(kind), .inputs = std::move(inputs), .outputs = {output}});
  };
  const auto x = tensor("x"), y = tensor("y"), m = tensor("m"), r = tensor("r"), a = tensor("a"), z = tensor("z"),
             k = tensor("K");
  ir::set_constant(graph.tensor(k), Bytes(kElems, 130));
  const auto ints = [&](const char* name, int32_t value) {
    ir::Tensor t{.name = name, .dtype = ir::DType::int32, .shape = {4}};
    Bytes bytes(4 * sizeof(int32_t));
    for (size_t i = 0; i < 4; ++i) store_le(bytes.data() + 4 * i, value);
    ir::set_constant(t, std::move(bytes));
    return graph.add_tensor(std::move(t));
  };
  op(ir::OpKind::maximum, {x, y}, m);
  op(ir::OpKind::relu, {m}, r);
  op(ir::OpKind::slice, {r, ints("begin", 0), ints("size", -1)}, a);
  op(ir::OpKind::maximum, {a, k}, z);
  graph.inputs = {x, y};
  graph.outputs = {r, z};
  return graph;
}
constexpr ir::TensorId kM = 2, kR = 3;

// All ops are supported by the toy; K is the only constant.
inline ir::Graph without_slice() {
  ir::Graph graph = chain();
  graph.ops.erase(graph.ops.begin() + 2);
  graph.ops.back().inputs[0] = kR;
  graph.tensors.resize(7);  // without the operands of SLICE
  return graph;
}

// x -> y = relu(x)
inline ir::Graph chain_of_one() {
  ir::Graph graph;
  for (const char* name : {"x", "y"}) {
    ir::Tensor t{.name = name, .dtype = ir::DType::uint8, .shape = {1, kHeight, kWidth, kChannels}};
    t.quant = {.scales = {0.5F}, .zero_points = {100}};
    graph.add_tensor(std::move(t));
  }
  graph.add_op({.kind = ir::OpKind::relu, .attrs = {}, .inputs = {0}, .outputs = {1}});
  graph.inputs = {0};
  graph.outputs = {1};
  return graph;
}

struct Inputs {
  Bytes x, y;
  explicit Inputs(uint8_t seed) {
    for (int64_t i = 0; i < kElems; ++i) {
      x.push_back(static_cast<uint8_t>(seed + i * 7));
      y.push_back(static_cast<uint8_t>(seed * 3 + i * 13));
    }
  }
  Bytes expected_m() const {
    Bytes out(x.size());
    for (size_t i = 0; i < x.size(); ++i) out[i] = std::max(x[i], y[i]);
    return out;
  }
  Bytes expected_at_least(uint8_t least) const {
    Bytes out = expected_m();
    for (uint8_t& byte : out) byte = std::max(byte, least);
    return out;
  }
  std::vector<Bytes> expected() const { return {expected_at_least(100), expected_at_least(130)}; }
};

class ToySession : public ::testing::Test {
 protected:
  std::unique_ptr<Session> open(SessionOptions options = {}) { return open(chain(), target(), options); }
  static std::unique_ptr<Session> open(ir::Graph graph, const Target& target, SessionOptions options = {}) {
    auto session = Session::create(std::move(graph), target, options);
    EXPECT_TRUE(session.ok()) << session.error().message;
    return session.ok() ? std::move(session).value() : nullptr;
  }
  const Target& target() {
    if (target_.context == nullptr) {
      target_ = {
          .name = "toy", .chip = {.name = "toy"}, .driver = &driver_, .context = std::make_shared<DeviceContext>()};
      target_.context->chip = "toy";
      const auto toy = fake::core_of(std::make_unique<ToyChip>(state_), "toy", "sim:toy").value();
      target_.context->device = kernels::open_core(toy.core, toy.calls).value();
    }
    return target_;
  }
  static std::vector<Bytes> run(Session& session, const Inputs& inputs) {
    const std::span<const uint8_t> spans[] = {inputs.x, inputs.y};
    auto outputs = session.run(spans);
    EXPECT_TRUE(outputs.ok()) << outputs.error().message;
    return outputs.ok() ? std::move(outputs).value() : std::vector<Bytes>{};
  }
  static std::string cause(const Result<std::unique_ptr<Session>>& session) {
    return session.ok() ? "no error" : session.error().message;
  }

  ToyState state_;
  ToyDriver driver_;
  Target target_;
};

}  // namespace skillet::runtime
