// QdqNet: models as quantizers write them (DequantizeLinear, operation, QuantizeLinear), for tests without a host.
#pragma once

#include <deque>
#include <random>

#include "base/bytes.h"
#include "frontend/onnx/model.h"
#include "graph/ir/quant.h"

namespace skillet::onnx {

class QdqNet {
 public:
  explicit QdqNet(ir::DType type) : type_(type) {}

  Model model;

  int value(ir::DType dtype, std::vector<int64_t> dims) {
    const auto name = "v" + std::to_string(model.values.size());
    model.values.push_back({.name = name, .dtype = dtype, .dims = std::move(dims), .data = {}});
    return static_cast<int>(model.values.size()) - 1;
  }
  int constant(ir::DType dtype, std::vector<int64_t> dims, Bytes bytes) {
    const int id = value(dtype, std::move(dims));
    kept_.push_back(std::move(bytes));
    Value& made = model.values[static_cast<size_t>(id)];
    made.data = kept_.back();
    made.is_constant = true;
    return id;
  }
  template <typename T>
  int list(ir::DType dtype, const std::vector<T>& values, bool scalar = false) {
    Bytes bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return constant(dtype, scalar ? std::vector<int64_t>{} : std::vector{static_cast<int64_t>(values.size())}, bytes);
  }
  Node& node(std::string op, std::vector<int> inputs, std::vector<int> outputs) {
    model.nodes.push_back({.op = std::move(op),
                           .name = "n",
                           .since = 13,
                           .inputs = std::move(inputs),
                           .outputs = std::move(outputs),
                           .attributes = {}});
    return model.nodes.back();
  }
  std::vector<int> quant(const ir::Quant& quant, ir::DType type) {
    const bool scalar = quant.scales.size() == 1;
    Bytes zeros;
    for (const int zero : quant.zero_points) zeros.push_back(static_cast<uint8_t>(zero));
    const int scale = list(ir::DType::float32, quant.scales, scalar);
    const std::vector<int64_t> dims = *model.value(scale).dims;
    return {scale, constant(type, dims, zeros)};
  }
  // Adds a DequantizeLinear.
  int dequantized(int integer, const ir::Quant& of) {
    const std::vector<int> parameters = quant(of, model.value(integer).dtype);
    const int out = value(ir::DType::float32, *model.value(integer).dims);
    node("DequantizeLinear", {integer, parameters[0], parameters[1]}, {out}).attributes["axis"].ints = {of.axis};
    return out;
  }
  // Adds a QuantizeLinear.
  int quantized(int real, const ir::Quant& to) {
    const std::vector<int> parameters = quant(to, type_);
    const int out = value(type_, *model.value(real).dims);
    node("QuantizeLinear", {real, parameters[0], parameters[1]}, {out});
    return out;
  }
  Bytes random(int64_t count) {
    Bytes out(static_cast<size_t>(count));
    for (uint8_t& byte : out) byte = static_cast<uint8_t>(random_());
    return out;
  }
  std::mt19937& generator() { return random_; }

 private:
  const ir::DType type_;
  std::deque<Bytes> kept_;
  std::mt19937 random_{7};
};

}  // namespace skillet::onnx
