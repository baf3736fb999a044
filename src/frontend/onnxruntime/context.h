// A part as a node that the host stores in a model (EPContext), and back.
// Called by provider.cpp. Must not know: how parts are chosen.
#pragma once

#include <memory>
#include <string>

#include "frontend/host/options.h"
#include "frontend/onnx/part.h"
#include "frontend/onnxruntime/ort.h"

namespace skillet::onnxruntime {

constexpr const char* kProviderName = "SkilletExecutionProvider";

// So many bytes of parts in one model. Error: no file of ONNX holds them.
Result<void> check_fits_model(uint64_t bytes);
// A node that stands for `part`, whose Part::saved has the bytes: in the node, or in `file`, which is beside the model.
Result<OrtNode*> context_node(const Ort& ort, const std::string& name, const Part& part, const std::string& chip,
                              const std::string& file);

bool is_context(const Node& node);  // one of ours
// What such a node stands for. Compiled again where its programs are not for this target and build. Error: the bytes
// are none of ours, or damaged, or do not go with the node. `path` of the model; empty: none. `is_first` of the model:
// says that they are not.
struct StoredPart {
  std::unique_ptr<Part> part;
  std::string unused;  // of its programs, and why; empty: all are as stored, or it was said
};
Result<StoredPart> part_from(const Model& model, int node, const std::string& path, const runtime::Target& target,
                             const host::Options& options, bool is_first);

}  // namespace skillet::onnxruntime
