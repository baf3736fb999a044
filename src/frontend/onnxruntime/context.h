// Writes a part as a node that the host stores in a model (EPContext), and reads it back.
// Called by provider.cpp. Must not know: how parts are chosen.
#pragma once

#include <memory>
#include <string>

#include "frontend/host/options.h"
#include "frontend/onnx/part.h"
#include "frontend/onnxruntime/ort.h"

namespace skillet::onnxruntime {

constexpr const char* kProviderName = "SkilletExecutionProvider";

// `bytes`: size of all parts in one model. Error: too large for an ONNX file.
Result<void> check_fits_model(uint64_t bytes);
// Makes a node for `part`. The bytes of Part::saved go into the node, or into `file` beside the model.
Result<OrtNode*> context_node(const Ort& ort, const std::string& name, const Part& part, const std::string& chip,
                              const std::string& file);

bool is_context(const Node& node);  // made by Skillet
// Reads the part of such a node. Compiles it again if its programs are not for this target and build. Error: the bytes
// are not Skillet's, are damaged, or do not fit the node. `path`: path of the model; empty: none. `is_first`: the
// model's first part; only this one is reported as different from the target.
struct StoredPart {
  std::unique_ptr<Part> part;
  std::string unused;  // programs that are not used, and why; empty: none, or already reported
};
Result<StoredPart> part_from(const Model& model, int node, const std::string& path, const runtime::Target& target,
                             const host::Options& options, bool is_first);

}  // namespace skillet::onnxruntime
