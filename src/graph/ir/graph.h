// Graph: tensors and operations of one network, owned by index, in execution order.
// Importers build it, passes rewrite it, drivers and graph/ref/ read it.
// Must not know: file formats, chips.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "graph/ir/dtype.h"
#include "graph/ir/op.h"
#include "graph/ir/quant.h"
#include "graph/ir/shape.h"

namespace skillet::ir {

struct Tensor {
  std::string name;
  DType dtype = DType::float32;
  Shape shape;
  Quant quant;
  // Constant contents, or what a variable holds before the first run: exactly bytes() long. Null for what is computed,
  // and for a variable that starts as zero. `owner` keeps `data` alive.
  std::span<const uint8_t> data;
  std::shared_ptr<const void> owner;
  bool is_variable = false;  // keeps its value between runs
  // Where it is in the memory that the maker of the model planned for all tensors, in bytes; only operations that a
  // vendor's compiler made look at it.
  std::optional<uint64_t> planned_at = {};

  bool is_constant() const { return data.data() != nullptr && !is_variable; }
  // Size of the contents; 0 where elements have no fixed size (string), two int4 to a byte.
  int64_t bytes() const;
  // Constant contents as elements of T, copied (model files need not be aligned).
  template <typename T>
  std::vector<T> values() const {
    std::vector<T> out(data.size() / sizeof(T));
    if (!out.empty()) std::memcpy(out.data(), data.data(), out.size() * sizeof(T));
    return out;
  }
};

struct Graph {
  // In graph.cpp, as nearly every file sees a graph.
  Graph();
  explicit Graph(std::string graph_name);
  Graph(const Graph&);
  Graph(Graph&&) noexcept;
  Graph& operator=(const Graph&);
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  std::string name;
  std::vector<Tensor> tensors;
  std::vector<Op> ops;  // topological order
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  bool has_free_sizes = false;  // inputs are of any size but the batch's, and have 1 for it

  const Tensor& tensor(TensorId id) const { return tensors[static_cast<size_t>(id)]; }
  Tensor& tensor(TensorId id) { return tensors[static_cast<size_t>(id)]; }
  const Op& op(OpId id) const { return ops[static_cast<size_t>(id)]; }
  TensorId add_tensor(Tensor tensor);
  OpId add_op(Op op);
};

// Makes `tensor` constant with a copy of `bytes`.
void set_constant(Tensor& tensor, Bytes bytes);

// The model file's number of an op: "3"; "-" where the file has no such operation.
std::string op_number(const Op& op);
// "op 3 CONV_2D -> 'MobilenetV1/Relu6'": how messages name an op, by the model file's number where it has one.
std::string describe_op(const Graph& graph, OpId op);
// "tensor 12 'name' uint8 1x112x112x32": how messages name a tensor.
std::string describe_tensor(const Graph& graph, TensorId tensor);

// Producer of each tensor (-1: none), and its consumers (each op once, in execution order).
std::vector<OpId> producers(const Graph& graph);
std::vector<std::vector<OpId>> consumers(const Graph& graph);

// Checks every index, shape, size, quantization, attribute and the order of ops; the output shapes of known ops must be
// the ones that infer_shapes() computes. The error names the op or tensor.
Result<void> verify(const Graph& graph);

// The bytes of each output of an op whose inputs are constants, or which reads shapes alone; an error where it cannot
// be computed.
using Evaluate = std::function<Result<std::vector<Bytes>>(const Graph& graph, OpId op)>;

// The outputs of `op` as constants where they are short lists of integers that it computes from shapes and constants
// alone (SHAPE, PACK of constants); none: they are not known.
std::vector<Tensor> known_outputs(const Graph& graph, OpId op, const Evaluate& evaluate);

// Sets the output shapes of known ops to what TFLite's Prepare computes from the inputs (files may declare other ones).
// Keeps declared shapes where they depend on values known only at run time, and of opaque ops. Where `evaluate` is
// given, lists of integers that are computed from shapes and constants (the new shape of a RESHAPE) are known: who
// reads them reads a constant instead, which is added to the graph; who computes them stays.
Result<void> infer_shapes(Graph& graph, const Evaluate& evaluate = {});

// Text form, one line per tensor and op; constants are printed as a hash, or in full when small (text.md has the
// grammar).
std::string print(const Graph& graph);
// The same with nothing of constants and lists of scales but their sizes, for who reads their bytes anyway.
std::string print_without_constants(const Graph& graph);
// Reads what print() writes (constants that were printed as a hash become zeros of the same size). Checks the syntax
// only: call verify() on the result.
Result<Graph> parse(std::string_view text);

}  // namespace skillet::ir
