// Reads a TensorFlow Lite host's tensors and nodes into ir::Graph.
// Called by delegate.cpp (the whole plan, to check what the NPU takes) and kernel.cpp (one partition).
// Must not know: devices, drivers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "frontend/tflite_delegate/tflite_abi.h"
#include "graph/ir/graph.h"

namespace skillet::delegate {

// Which small integer tensors of the host, such as a shape for RESHAPE, count as constants: those that it has computed
// before Prepare, or, during a run, all.
enum class Contents : uint8_t { prepared, all };
bool is_shape(const TfLiteTensor& tensor, Contents contents);

// One node of the host's plan. Operand ids are the host's tensor indices; kNoTensor for an operand that is left out.
struct HostNode {
  int index = -1;  // the host's
  int place = -1;  // in the host's execution order; other delegates' nodes have higher indices than their readers
  ir::Op op;       // opaque if `refusal` is not empty
  std::string refusal;
};

// Error: an index is outside the host's tensors, so nothing in the graph can be trusted.
Result<HostNode> read_node(TfLiteContext* context, int index);

// A graph whose tensors correspond to the host tensors that its ops use.
struct HostGraph {
  ir::Graph graph;
  std::vector<int> host_tensor;      // by tensor of the graph
  std::vector<int> settled;          // host tensors that count as constants by `Contents`
  std::vector<HostNode> shapes;      // of `nodes`, those left out: their results follow from shapes and are constants
  std::vector<int> sized;            // host tensors of which only the shape is read
  std::vector<int> own_memory;       // host tensors that are memory of the operation that names them
  std::vector<int> together;         // host nodes that pass memory on, and those between: all are ours, or none is
  std::vector<std::string> refusal;  // by op: why we cannot take it; empty if we may
};

// `nodes`: in execution order; `outputs`: host tensors that other nodes read. Inputs are the tensors that no op
// computes, in order of first use. Constants are views of the host's memory: the graph must not outlive it. Shapes are
// the host's for inputs and inferred for the rest; the graph is verified. Ops on tensors that the IR cannot express
// become opaque. `shapes`: other host nodes, which compute shapes that `nodes` read.
Result<HostGraph> build_graph(TfLiteContext* context, std::span<const HostNode> nodes, std::span<const int> outputs,
                              Contents contents = Contents::prepared, std::span<const HostNode> shapes = {});

std::span<const int> elements(const TfLiteIntArray* array);

}  // namespace skillet::delegate
