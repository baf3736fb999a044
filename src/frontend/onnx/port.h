// Port: an input or output of a part, in the host's form and in the session's form. Converts between both, and stores
// ports as text with a part. Called by part.cpp, capability.cpp and a host's plug-in. Must not know: the host.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/ir/graph.h"

namespace skillet::onnx {

// A tensor of the host and its counterpart in the session.
struct Port {
  std::string name;  // name of the host's value
  std::vector<int64_t> dims;
  int64_t n = 1, c = 1, hw = 1;
  bool is_float = false;   // the host has floats: quantized or dequantized during the copy
  bool flips = false;      // uint8 on one side, int8 on the other
  bool is_signed = false;  // the session's type
  float scale = 1;         // if is_float
  int32_t zero_point = 0;
  size_t session_port = 0;

  int64_t elems() const { return n * c * hw; }
  size_t host_bytes() const { return static_cast<size_t>(elems()) * (is_float ? 4 : 1); }
  bool is_as_it_is() const { return !is_float && !flips && (c == 1 || hw == 1); }
};
void copy_in(const Port& port, const void* from, std::span<uint8_t> to);
void copy_out(const Port& port, std::span<const uint8_t> from, void* to);

// Writes ports as text, and reads them for a graph. The text is untrusted.
std::string note_of(std::span<const Port> inputs, std::span<const Port> outputs);
struct Ports {
  std::vector<Port> inputs, outputs;
};
Result<Ports> ports_of(const std::string& note, const ir::Graph& graph);

}  // namespace skillet::onnx
