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
  // Contents of a constant, or initial value of a variable: exactly bytes() long. Null for computed tensors and for
  // variables that start as zero. `owner` keeps `data` alive.
  std::span<const uint8_t> data;
  std::shared_ptr<const void> owner;
  bool is_variable = false;  // keeps its value between runs
  // Offset in bytes in the memory that the maker of the model planned for all tensors. Only operations that a vendor's
  // compiler made use it.
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
  // Defined in graph.cpp, because nearly every file includes Graph.
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
  bool has_free_sizes = false;  // an input has free sizes besides the batch, which are 1 here

  const Tensor& tensor(TensorId id) const { return tensors[static_cast<size_t>(id)]; }
  Tensor& tensor(TensorId id) { return tensors[static_cast<size_t>(id)]; }
  const Op& op(OpId id) const { return ops[static_cast<size_t>(id)]; }
  TensorId add_tensor(Tensor tensor);
  OpId add_op(Op op);
};

// Makes `tensor` constant with a copy of `bytes`.
void set_constant(Tensor& tensor, Bytes bytes);

// The op's number in the model file: "3"; "-" if the file has no such operation.
std::string op_number(const Op& op);
// "op 3 CONV_2D -> 'MobilenetV1/Relu6'": how messages name an op, by its number in the model file if it has one.
std::string describe_op(const Graph& graph, OpId op);
// "tensor 12 'name' uint8 1x112x112x32": how messages name a tensor.
std::string describe_tensor(const Graph& graph, TensorId tensor);

// Producer of each tensor (-1: none), and its consumers (each op once, in execution order).
std::vector<OpId> producers(const Graph& graph);
std::vector<std::vector<OpId>> consumers(const Graph& graph);

// Checks every index, shape, size, quantization, attribute and the order of ops; the output shapes of known ops must be
// the ones that infer_shapes() computes. The error names the op or tensor.
Result<void> verify(const Graph& graph);

// Computes the bytes of each output of an op whose inputs are constants, or which reads only shapes; an error if they
// cannot be computed.
using Evaluate = std::function<Result<std::vector<Bytes>>(const Graph& graph, OpId op)>;

// The outputs of `op` as constants, if they are short lists of integers or conditions computed only from shapes and
// constants (SHAPE, PACK of constants); empty if they are not known.
std::vector<Tensor> known_outputs(const Graph& graph, OpId op, const Evaluate& evaluate);

// Infers shapes op by op, for a graph that grows: see infer_shapes(). The graph is borrowed.
class ShapeInference {
 public:
  ShapeInference(Graph& graph, Evaluate evaluate) : graph_(graph), evaluate_(std::move(evaluate)) {}

  // Infers one op; the ops before it have been inferred. The error names it.
  Result<void> infer(OpId op);
  // The constant that readers of `id` read instead, or `id` itself.
  TensorId known(TensorId id) const;
  // Forgets tensors from `first` on, which the caller removes from the graph.
  void forget(size_t first);

 private:
  Graph& graph_;
  Evaluate evaluate_;
  std::vector<TensorId> known_;  // by tensor, or kNoTensor; may be shorter than the list of tensors
};

// Sets the output shapes of known ops to those that TFLite's Prepare computes from the inputs (files may declare
// others). Keeps the declared shapes of opaque ops, and those that depend on values known only at run time. With
// `evaluate`, lists of integers computed from shapes and constants (the new shape of a RESHAPE) become constants, which
// are added to the graph: their readers read the constants. The ops that compute them stay.
Result<void> infer_shapes(Graph& graph, const Evaluate& evaluate = {});

// Text form, one line per tensor and op; constants are printed as a hash, or in full if small (grammar: text.md).
std::string print(const Graph& graph);
// The same, but only with the sizes of constants and lists of scales, for callers that read their bytes anyway.
std::string print_without_constants(const Graph& graph);
// Reads the output of print() (constants printed as a hash become zeros of the same size). Checks only the syntax: call
// verify() on the result.
Result<Graph> parse(std::string_view text);

}  // namespace skillet::ir
