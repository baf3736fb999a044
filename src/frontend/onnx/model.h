// Model: an ONNX graph as plain data: values, nodes, attributes.
// Filled from a host's graph, from a file, and by tests; read by units.cpp and lowering.cpp.
// Must not know: hosts, chips.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "graph/ir/dtype.h"

namespace skillet::onnx {

struct Value {
  std::string name;
  ir::DType dtype = ir::DType::variant;
  std::optional<std::vector<int64_t>> dims;  // none: unknown rank; a dimension below 0: dynamic
  std::span<const uint8_t> data;             // bytes of a constant; borrowed
  bool is_constant = false;
  bool is_output = false;  // output of the graph

  bool is_8bit() const { return ir::is_8bit(dtype); }
};

struct Attribute {
  std::vector<int64_t> ints;  // one element for a single integer
  std::vector<float> floats;
  std::string text;
  std::shared_ptr<const Value> tensor;  // a constant
};

struct Node;

// A graph inside an If: nodes that may also read the values outside, and the values that the If returns.
struct Branch {
  std::vector<Node> nodes;
  std::vector<int> outputs;
};

struct Node {
  std::string op, domain, name;
  int since = 0;                     // version of its operator set
  bool is_taken = false;             // a provider of the host has it
  std::vector<int> inputs, outputs;  // values; kNone for an operand that is left out
  std::vector<int> inner_inputs;     // values of this graph that graphs inside the node read
  std::map<std::string, Attribute> attributes;
  std::map<std::string, Branch> branches;  // of an If of a file, by attribute; those that could be read
};

constexpr int kNone = -1;

struct Model {
  std::vector<Value> values;
  std::vector<Node> nodes;  // in execution order

  const Value& value(int id) const { return values[static_cast<size_t>(id)]; }
  const Node& node(int id) const { return nodes[static_cast<size_t>(id)]; }
};

int64_t int_of(const Node& node, const char* name, int64_t otherwise);
std::vector<int64_t> ints_of(const Node& node, const char* name);
float float_of(const Node& node, const char* name, float otherwise);
std::string string_of(const Node& node, const char* name, const char* otherwise);

// Elements of a constant of any integer type or float32, as doubles; none for other types.
std::optional<std::vector<double>> numbers(const Value& value);
std::optional<std::vector<int64_t>> integers(const Value& value);
// A constant of size `dims` with its axes in the order of `perm`.
Bytes permuted(const Value& value, const std::vector<int64_t>& dims, const std::vector<int64_t>& perm);

// Sets a dynamic first size if the other sizes are known and it follows from the node's inputs (hosts keep it dynamic
// even where the size of the inputs was fixed).
void settle_batches(Model& model);

// Removes sizes where the host declares another size than the node computes (windows of a pool with ceil_mode,
// output_padding of a ConvTranspose with auto_pad), and all sizes that depend on them.
void forget_wrong_sizes(Model& model);

// True if a window begins in the image or in its leading padding. With ceil_mode, other windows do not count.
inline bool begins_in_image(int64_t window, int64_t stride, int64_t size, int64_t before) {
  return window * stride < size + before;
}

struct Links {
  std::vector<int> producer;                // by value; kNone: none
  std::vector<std::vector<int>> consumers;  // by value: nodes, each once
};
Links links_of(const Model& model);

}  // namespace skillet::onnx
