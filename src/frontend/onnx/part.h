// Part: a session for nodes that the NPU runs. Copies between the host's memory (channels second) and the session's
// (channels last), and quantizes and dequantizes there if the node at the border is claimed too.
// Called by capability.cpp and a host's plug-in (made, run). Must not know: the host.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "frontend/onnx/lowering.h"
#include "frontend/onnx/port.h"
#include "runtime/session.h"

namespace skillet::onnx {

class Part {
 public:
  // `nodes`: nodes of units. Adds nodes at the border that quantize or dequantize for this part alone and are not
  // `taken`.
  static Result<std::unique_ptr<Part>> create(const Model& model, const Links& links, std::vector<int> nodes,
                                              const std::vector<bool>& taken, std::span<const Edge> inputs,
                                              std::span<const Edge> outputs, std::unique_ptr<runtime::Session> session);

  // `inputs` and `outputs` must fit the session's graph.
  static std::unique_ptr<Part> of(std::vector<int> nodes, std::vector<Port> inputs, std::vector<Port> outputs,
                                  std::unique_ptr<runtime::Session> session);

  Bytes saved;  // bytes for the host to store; empty: not requested

  const std::vector<int>& nodes() const { return nodes_; }
  std::span<const Port> inputs() const { return inputs_; }
  std::span<const Port> outputs() const { return outputs_; }
  std::string summary() const;

  // `inputs`, `outputs`: the host's memory, by port. Concurrent calls run one after another.
  Result<void> run(std::span<const std::span<const uint8_t>> inputs, std::span<void* const> outputs);

 private:
  Part() = default;
  void add_input(const Model& model, const Links& links, const std::vector<bool>& taken, const Edge& edge, size_t port);
  void add_output(const Model& model, const Links& links, const std::vector<bool>& taken, const Edge& edge,
                  size_t port);
  bool has(int node) const;
  void stage();

  std::vector<int> nodes_;  // in order
  std::vector<Port> inputs_, outputs_;
  std::unique_ptr<runtime::Session> session_;
  std::mutex mutex_;  // guards all members below
  std::vector<Bytes> staged_in_, staged_out_;
  std::vector<std::span<const uint8_t>> in_;
  std::vector<std::span<uint8_t>> out_;
};

}  // namespace skillet::onnx
