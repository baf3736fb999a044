// Graphs written as letters, and a driver that supports two kinds of ops, for tests.
// Called by the tests of graph/passes/ and compile/.
// Must not know: real chips.
#pragma once

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/graph.h"
#include "npu/driver.h"

namespace skillet::passes {

// Supports only ADD and MUL.
class AddMulDriver : public npu::Driver {
 public:
  std::string_view name() const override { return "addmul"; }
  std::span<const npu::Chip> chips() const override { return {}; }
  Result<npu::Chip> identify(const capture::DeviceInfo&) const override { return npu::Chip{}; }
  npu::Support supports(const npu::Chip&, const ir::Graph& graph, ir::OpId op) const override {
    if (graph.op(op).kind == ir::OpKind::add || graph.op(op).kind == ir::OpKind::mul) return npu::Support::yes();
    return npu::Support::no(npu::Remedy::none, "{} is not add or mul", ir::op_name(graph.op(op)));
  }
  Result<npu::Program> compile(const npu::Chip&, const ir::Graph&, const npu::CompileOptions&) const override {
    return npu::Program{};
  }
  Result<npu::Annotated> decode_as(const npu::Chip&, const capture::Submission&, npu::Detail) const override {
    return npu::Annotated{};
  }
};

// Graphs written as one letter per tensor: "c=add(a,b)". Upper case: constants. Every tensor is 1x2x2x4 uint8; "same"
// is a RESHAPE.
class Letters {
 public:
  Letters(std::string_view inputs, std::vector<std::string_view> ops, std::string_view outputs) {
    for (const char letter : inputs) graph.inputs.push_back(id(letter));
    for (const std::string_view text : ops) {
      const size_t open = text.find('(');
      const auto kind = text.substr(2, open - 2);
      ir::Op op;
      op.kind = kind == "add"    ? ir::OpKind::add
                : kind == "mul"  ? ir::OpKind::mul
                : kind == "same" ? ir::OpKind::reshape
                                 : ir::OpKind::relu;
      op.attrs = ir::default_attrs(op.kind);
      for (size_t at = open + 1; at < text.size(); at += 2) op.inputs.push_back(id(text[at]));
      op.outputs.push_back(id(text[0]));
      graph.add_op(std::move(op));
    }
    for (const char letter : outputs) graph.outputs.push_back(id(letter));
  }

  ir::TensorId id(char letter) {
    for (size_t i = 0; i < graph.tensors.size(); ++i) {
      if (graph.tensors[i].name[0] == letter) return static_cast<ir::TensorId>(i);
    }
    ir::Tensor tensor{.name = std::string(1, letter), .dtype = ir::DType::uint8, .shape = {1, 2, 2, 4}};
    tensor.quant = {.scales = {0.5F}, .zero_points = {3}};
    if (std::isupper(letter) != 0) ir::set_constant(tensor, Bytes(16, 7));
    return graph.add_tensor(std::move(tensor));
  }

  std::string names(const ir::Graph& part, const std::vector<ir::TensorId>& ids) const {
    std::string out;
    for (const ir::TensorId one : ids) out += part.tensor(one).name;
    return out;
  }

  ir::Graph graph;
};

}  // namespace skillet::passes
