// Model: what an ONNX graph says, as plain data: values, nodes, attributes.
// Filled from a host's graph, from a file, and by tests; read by units.cpp and lowering.cpp.
// Must not know: hosts, chips.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/ir/dtype.h"

namespace skillet::onnx {

struct Value {
  std::string name;
  ir::DType dtype = ir::DType::variant;
  std::optional<std::vector<int64_t>> dims;  // none: not even the rank is known; below 0: free
  std::span<const uint8_t> data;             // of a constant; borrowed
  bool is_constant = false;
  bool is_output = false;  // of the graph

  bool is_8bit() const { return ir::is_8bit(dtype); }
};

struct Attribute {
  std::vector<int64_t> ints;  // one for a single integer
  std::vector<float> floats;
  std::string text;
  std::shared_ptr<const Value> tensor;  // a constant
};

struct Node {
  std::string op, domain, name;
  int since = 0;                     // version of the operator set that it is of
  bool is_taken = false;             // a provider of the host has it already
  std::vector<int> inputs, outputs;  // values; kNone where one is left out
  std::vector<int> inner_inputs;     // what graphs inside it read of this one
  std::map<std::string, Attribute> attributes;
};

constexpr int kNone = -1;

struct Model {
  std::vector<Value> values;
  std::vector<Node> nodes;  // each after those that it reads

  const Value& value(int id) const { return values[static_cast<size_t>(id)]; }
  const Node& node(int id) const { return nodes[static_cast<size_t>(id)]; }
};

int64_t int_of(const Node& node, const char* name, int64_t otherwise);
std::vector<int64_t> ints_of(const Node& node, const char* name);
float float_of(const Node& node, const char* name, float otherwise);
std::string string_of(const Node& node, const char* name, const char* otherwise);

// A constant's elements, of whatever integer type or float32, as doubles; nothing where it is none of these.
std::optional<std::vector<double>> numbers(const Value& value);
std::optional<std::vector<int64_t>> integers(const Value& value);

// Where only the first size of a value is free and it follows from what its node reads (hosts keep it free behind
// inputs whose size was fixed), it is set.
void settle_batches(Model& model);

// Where a host says another size than a node computes, no size of its result is known, nor of what is computed of that:
// more windows of a pool with ceil_mode, output_padding of a ConvTranspose with auto_pad.
void forget_wrong_sizes(Model& model);

// Whether a window begins in the image or in what is padded in front; with ceil_mode, others count for nothing.
inline bool begins_in_image(int64_t window, int64_t stride, int64_t size, int64_t before) {
  return window * stride < size + before;
}

struct Links {
  std::vector<int> producer;                // by value; kNone: none
  std::vector<std::vector<int>> consumers;  // by value: nodes, each once
};
Links links_of(const Model& model);

}  // namespace skillet::onnx
