// Units: several ONNX nodes that form one quantized operation: DequantizeLinear, the operation, a Relu or Clip,
// QuantizeLinear; or one QLinear... node. A unit is claimed or refused as a whole.
// Called by the execution provider and by the importer of files. Must not know: hosts, chips.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "frontend/onnx/model.h"
#include "graph/ir/graph.h"

namespace skillet::onnx {

// An input or output of a unit: an integer value with its quantization, or (no scales) a constant of another type.
struct Operand {
  int value = kNone;
  ir::Quant quant;
};

struct Unit {
  int node = kNone;        // the operation: index into Model::nodes
  std::vector<int> nodes;  // all nodes of the unit, in order, with the operation
  std::string op;          // "Conv", also for a QLinearConv
  std::vector<Operand> inputs, outputs;
  ir::Activation activation = ir::Activation::none;
  std::string refusal;  // why we cannot take it; empty: we may
};

// Finds units, in order: one for each node except those that only quantize or dequantize.
std::vector<Unit> units_of(const Model& model, const Links& links);

// The type of all 8-bit values: int8 if some weights have a scale per channel, which uint8 does not support.
ir::DType type_of(std::span<const Unit> units);

// The quantization of a QuantizeLinear or DequantizeLinear node; the error reports what is unknown.
Result<ir::Quant> quant_of_node(const Model& model, const Node& node);
bool is_quantize(const Node& node);
bool is_dequantize(const Node& node);
// True for a domain with unknown operations. The node may be a function of the model.
bool is_foreign(const Node& node);

}  // namespace skillet::onnx
