// Part: what the NPU runs of a model: a session, and what is copied to and from the host's memory on the way: channels
// second for the host, last for us; quantized, where the node that does it at the border is ours too.
// Called by capability.cpp and context.cpp (made) and provider.cpp (run). Must not know: the host.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "frontend/onnx/lowering.h"
#include "runtime/session.h"

namespace skillet::onnxruntime {

using namespace onnx;  // what models say

// A tensor of the host's, and one of the session's.
struct Port {
  std::string name;  // of the host's value
  std::vector<int64_t> dims;
  int64_t n = 1, c = 1, hw = 1;
  bool is_float = false;   // for the host: quantized, or dequantized, on the way
  bool flips = false;      // uint8 for one, int8 for the other
  bool is_signed = false;  // the session's
  float scale = 1;         // where it is float
  int32_t zero_point = 0;
  size_t session_port = 0;

  int64_t elems() const { return n * c * hw; }
  size_t host_bytes() const { return static_cast<size_t>(elems()) * (is_float ? 4 : 1); }
  bool is_as_it_is() const { return !is_float && !flips && (c == 1 || hw == 1); }
};
void copy_in(const Port& port, const void* from, std::span<uint8_t> to);
void copy_out(const Port& port, std::span<const uint8_t> from, void* to);

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
  Result<void> run(std::span<const void* const> inputs, std::span<void* const> outputs);

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

}  // namespace skillet::onnxruntime
