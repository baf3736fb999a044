// A model file as a graph; words that several verbs share.
// Called by the verbs that read a model.
// Must not know: how a session runs.
#pragma once

#include <string>

#include "base/result.h"
#include "compile/compile.h"
#include "graph/import/import.h"
#include "graph/ir/graph.h"

namespace skillet::tools {

// The imported graph; errors start with the path.
Result<ir::Graph> import_model(const std::string& path, const tflite::ImportOptions& options = {});

// Where no part is on the NPU: whether it would take some, and the partition leaves all to the CPU; and the error.
bool is_left_to_cpu(const compile::Compiled& compiled);
Error nothing_on_npu(const compile::Compiled& compiled, const std::string& device, const std::string& model);

// What --device takes, for help texts.
constexpr const char* kDeviceVariable = "SKILLET_DEVICE";
constexpr const char* kDeviceHelp =
    "auto, npu, cpu, a device such as /dev/dri/renderD128 or etnaviv0, or a\nsimulated chip such as sim:a311d (see "
    "skillet devices)";

}  // namespace skillet::tools
