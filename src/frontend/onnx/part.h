// Part: what the NPU runs of a model: a session, and what is copied to and from the host's memory on the way: channels
// second for the host, last for us; quantized, where the node that does it at the border is ours too.
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
  // `nodes` of units; those at its border that quantize or dequantize for it alone, and are not `taken`, are added.
  static Result<std::unique_ptr<Part>> create(const Model& model, const Links& links, std::vector<int> nodes,
                                              const std::vector<bool>& taken, std::span<const Edge> inputs,
                                              std::span<const Edge> outputs, std::unique_ptr<runtime::Session> session);

  // `inputs` and `outputs` are right for the session's graph.
  static std::unique_ptr<Part> of(std::vector<int> nodes, std::vector<Port> inputs, std::vector<Port> outputs,
                                  std::unique_ptr<runtime::Session> session);

  Bytes saved;  // as the host can store it; empty: not asked for

  const std::vector<int>& nodes() const { return nodes_; }
  std::span<const Port> inputs() const { return inputs_; }
  std::span<const Port> outputs() const { return outputs_; }
  std::string summary() const;

  // The host's memory, as the ports have it. Threads take turns.
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
  std::mutex mutex_;  // of all below
  std::vector<Bytes> staged_in_, staged_out_;
  std::vector<std::span<const uint8_t>> in_;
  std::vector<std::span<uint8_t>> out_;
};

}  // namespace skillet::onnx
