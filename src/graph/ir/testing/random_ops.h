// RandomOps: shared by tests with random graphs: dice, tensors, constants.
// Called by the tests of graph/passes/ and tests/conformance/.
// Must not know: what the tests check.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ir/rules.h"

namespace skillet {

class RandomOps {
 public:
  explicit RandomOps(uint32_t seed) : random_(seed) {}

 protected:
  uint32_t next() { return static_cast<uint32_t>(random_()); }
  int range(int low, int high) { return low + static_cast<int>(next() % static_cast<uint32_t>(high - low + 1)); }
  bool chance(int one_in) { return next() % static_cast<uint32_t>(one_in) == 0; }
  template <typename T, size_t N>
  T any_of(const std::array<T, N>& values) {
    return values[next() % N];
  }
  double uniform(double low, double high) { return low + (high - low) * (next() / 4294967296.0); }
  // Two to a random power between the two; most results are not powers of two themselves.
  float power(double low, double high) { return static_cast<float>(std::exp2(uniform(low, high))); }

  ir::TensorId add_activation(ir::Shape shape, float scale, int32_t unsigned_zero_point) {
    ir::Tensor t{.name = "t" + std::to_string(graph_.tensors.size()), .dtype = dtype_, .shape = std::move(shape)};
    t.quant = {{scale}, {unsigned_zero_point - (dtype_ == ir::DType::int8 ? 128 : 0)}, 0};
    return graph_.add_tensor(std::move(t));
  }
  template <typename T>
  ir::TensorId constant(ir::DType dtype, ir::Shape shape, const std::vector<T>& values, ir::Quant quant = {}) {
    ir::Tensor t{.name = "c" + std::to_string(graph_.tensors.size()),
                 .dtype = dtype,
                 .shape = std::move(shape),
                 .quant = std::move(quant)};
    const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());  // null when there are none
    ir::set_constant(t, Bytes(bytes, bytes + values.size() * sizeof(T)));
    return graph_.add_tensor(std::move(t));
  }
  ir::TensorId ints(const std::vector<int32_t>& values) {
    return constant(ir::DType::int32, {static_cast<int32_t>(values.size())}, values);
  }
  Bytes random_bytes(size_t count) {
    Bytes bytes(count);
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(next());
    return bytes;
  }

  // True if shapes can be inferred and all have elements: no pass runs on a tensor without elements.
  bool has_shapes() {
    const std::vector<ir::Tensor> before = graph_.tensors;
    if (!ir::infer_shapes(graph_).ok()) return false;
    const auto is_empty = [&](const ir::Op& op) { return ir::has_empty_operand(graph_, op); };
    if (std::ranges::none_of(graph_.ops, is_empty)) return true;
    graph_.tensors = before;
    return false;
  }

  std::mt19937 random_;
  ir::Graph graph_;
  ir::DType dtype_ = ir::DType::uint8;
};

}  // namespace skillet
