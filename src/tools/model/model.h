// A model file as a graph; words that several verbs share.
// Called by the verbs that read a model.
// Must not know: how a session runs.
#pragma once

#include <string>

#include "base/result.h"
#include "graph/import/import.h"
#include "graph/ir/graph.h"

namespace skillet::tools {

// The imported graph; errors start with the path.
Result<ir::Graph> import_model(const std::string& path, const tflite::ImportOptions& options = {});

// What --device takes, for help texts.
constexpr const char* kDeviceVariable = "SKILLET_DEVICE";
constexpr const char* kDeviceHelp =
    "auto, npu, cpu, a device such as /dev/dri/renderD128 or etnaviv0, or a\nsimulated chip such as sim:a311d (see "
    "skillet devices)";

}  // namespace skillet::tools
