// What of a model goes to the NPU, in which parts, and why not the rest; each part compiled.
// Called by a host's plug-in, and by tests without one. Must not know: the host.
#pragma once

#include <memory>

#include "frontend/host/choice.h"
#include "frontend/onnx/part.h"
#include "runtime/device_context.h"

namespace skillet::onnx {

struct Capability {
  std::vector<std::unique_ptr<Part>> parts;
  host::Told told;  // an operation: a unit
};

// `options.problems` have been told. Errors: nothing is to be claimed. The model may go afterwards.
// `saves`: Part::saved is there.
Result<Capability> capability_of(const Model& model, const runtime::Target& target, const host::Options& options,
                                 bool saves = false);

// All units that can be expressed, as one graph; the others get their refusals. For tests, and the plan of the whole.
struct Whole {
  std::vector<Unit> units;
  ir::DType type = ir::DType::uint8;
  std::vector<Edge> inputs, outputs;
  ir::Graph graph;
};
Result<Whole> whole_of(const Model& model, const Links& links);

}  // namespace skillet::onnx
