// A part as a node that the host stores in a model (EPContext), and back.
// Called by capability.cpp (saves), provider.cpp (writes, claims). Must not know: how parts are chosen.
#pragma once

#include <memory>
#include <string>

#include "frontend/host/options.h"
#include "frontend/onnxruntime/ort.h"
#include "frontend/onnxruntime/part.h"
#include "runtime/program_cache.h"

namespace skillet::onnxruntime {

constexpr const char* kProviderName = "SkilletExecutionProvider";

// Ports as text, and back: of that graph, as anybody may have written it.
std::string note_of(std::span<const Port> inputs, std::span<const Port> outputs);
struct Ports {
  std::vector<Port> inputs, outputs;
};
Result<Ports> ports_of(const std::string& note, const ir::Graph& graph);

// A node that stands for `part`, whose Part::saved has the bytes.
Result<OrtNode*> context_node(const Ort& ort, const std::string& name, const Part& part, const std::string& chip);

bool is_context(const Node& node);  // one of ours
// What such a node stands for. Compiled again where its programs are not for this target and build. Error: the bytes
// are none of ours, or damaged, or do not go with the node. `is_first` of the model: says that they are not.
Result<std::unique_ptr<Part>> part_from(const Model& model, int node, const runtime::Target& target,
                                        const host::Options& options, bool is_first);

}  // namespace skillet::onnxruntime
