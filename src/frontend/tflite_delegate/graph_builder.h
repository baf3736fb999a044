// Reads what a TensorFlow Lite host holds in memory (tensors, nodes) into ir::Graph.
// Called by delegate.cpp (the whole plan, to ask what the NPU takes) and kernel.cpp (one partition).
// Must not know: devices, drivers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "frontend/tflite_delegate/tflite_abi.h"
#include "graph/ir/graph.h"

namespace skillet::delegate {

// Which of a few integers that the host computes, as a shape for RESHAPE, count as constants: those that it has
// computed when it prepares, or, while it runs, all.
enum class Contents : uint8_t { prepared, all };
bool is_shape(const TfLiteTensor& tensor, Contents contents);

// One node of the host's plan. Operand ids are the host's tensor indices; kNoTensor where one is left out.
struct HostNode {
  int index = -1;  // the host's
  int place = -1;  // in its execution order: nodes of other delegates have indices behind those of their readers
  ir::Op op;       // opaque when `refusal` is not empty
  std::string refusal;
};

// Error: an index is outside the host's tensors, so that nothing about the graph can be trusted.
Result<HostNode> read_node(TfLiteContext* context, int index);

// A graph whose tensors stand for those of the host that its ops touch.
struct HostGraph {
  ir::Graph graph;
  std::vector<int> host_tensor;  // by tensor of the graph
  std::vector<int> settled;      // host tensors of such integers
  std::vector<HostNode> shapes;  // of `nodes`, those left out: what they compute is known from shapes, read as constant
  std::vector<int> sized;        // host tensors that only their shapes are read of
  std::vector<int> own_memory;   // host tensors that are memory of the operation that names them
  std::vector<int> together;     // host nodes that hand memory on, and those between: all are ours, or none
  std::vector<std::string> refusal;  // by op: why it cannot be ours; empty where it may be
};

// `nodes` in execution order; `outputs`: host tensors that others read. Inputs are what no op computes, in order of
// first use. Constants are views of the host's memory: the graph must not outlive it. Shapes are the host's for
// inputs and inferred for the rest; the graph is verified. Ops whose tensors we cannot express become opaque. `shapes`:
// other nodes of the host's that compute shapes, for what `nodes` read of them.
Result<HostGraph> build_graph(TfLiteContext* context, std::span<const HostNode> nodes, std::span<const int> outputs,
                              Contents contents = Contents::prepared, std::span<const HostNode> shapes = {});

std::span<const int> elements(const TfLiteIntArray* array);

}  // namespace skillet::delegate
