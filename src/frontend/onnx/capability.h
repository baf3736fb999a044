// Chooses which units of a model go to the NPU, compiles them in parts, and gives a reason for each of the rest.
// Called by a host's plug-in, and by tests without a host. Must not know: the host.
#pragma once

#include <memory>

#include "frontend/host/choice.h"
#include "frontend/onnx/part.h"
#include "runtime/device_context.h"

namespace skillet::onnx {

struct Capability {
  std::vector<std::unique_ptr<Part>> parts;
  host::Told told;  // its operations are units
};

// `options.problems` have been reported before. On an error nothing must be claimed. The model may be freed afterwards.
// `saves`: also fill Part::saved.
Result<Capability> capability_of(const Model& model, const runtime::Target& target, const host::Options& options,
                                 bool saves = false);

// All units that can be expressed, as one graph; the others get refusals. For tests, and to plan the whole model.
struct Whole {
  std::vector<Unit> units;
  ir::DType type = ir::DType::uint8;
  std::vector<Edge> inputs, outputs;
  ir::Graph graph;
};
Result<Whole> whole_of(const Model& model, const Links& links);

}  // namespace skillet::onnx
