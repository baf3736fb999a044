// Units: what ONNX says in several nodes and means as one quantized operation: DequantizeLinear, the operation, a Relu
// or Clip, QuantizeLinear; or one QLinear... node. A unit is taken, or left to the host, as a whole.
// Called by the execution provider and by the importer of files. Must not know: hosts, chips.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "frontend/onnx/model.h"
#include "graph/ir/graph.h"

namespace skillet::onnx {

// What a unit reads or writes: a value of integers with its quantization, or (no scales) a constant of another type.
struct Operand {
  int value = kNone;
  ir::Quant quant;
};

struct Unit {
  int node = kNone;        // the operation: index into Model::nodes
  std::vector<int> nodes;  // all of it, the operation too, in order
  std::string op;          // "Conv", also of a QLinearConv
  std::vector<Operand> inputs, outputs;
  ir::Activation activation = ir::Activation::none;
  std::string refusal;  // why it cannot be ours; empty: it may be
};

// A unit for each node but those that only quantize or dequantize, in order.
std::vector<Unit> units_of(const Model& model, const Links& links);

// What all values of 8 bits become: int8 where some weights have a scale per channel, which uint8 has not.
ir::DType type_of(std::span<const Unit> units);

// The quantization of a QuantizeLinear or DequantizeLinear node; an error says what of it is not known.
Result<ir::Quant> quant_of_node(const Model& model, const Node& node);
bool is_quantize(const Node& node);
bool is_dequantize(const Node& node);
// Of a domain whose operations we do not know; it may be a function of the model.
bool is_foreign(const Node& node);

}  // namespace skillet::onnx
