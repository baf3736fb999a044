// A model file as a graph; words that several verbs share.
// Called by the verbs that read a model.
// Must not know: how a session runs.
#pragma once

#include <string>

#include "base/result.h"
#include "frontend/tflite/import.h"
#include "ir/graph.h"

namespace skillet::tools {

// The imported graph; errors start with the path.
Result<ir::Graph> import_model(const std::string& path, const tflite::ImportOptions& options = {});

// What --device takes, for help texts.
constexpr const char* kDeviceHelp =
    "auto, npu, cpu, a device such as /dev/dri/renderD128 or etnaviv0, or a\nsimulated chip such as sim:a311d (see "
    "skillet devices)";

// For --allow-unproven, which is also the environment variable.
constexpr const char* kAllowUnprovenHelp =
    "a real NPU also takes operations that no known driver ever ran on silicon\n(simulated ones do anyway)";
constexpr const char* kAllowUnprovenVariable = "SKILLET_ALLOW_UNPROVEN";

// For --per-channel, the same.
constexpr const char* kPerChannelHelp =
    "weights with more scales than the chip takes: exact (each layer within 1 of its own result, else\non the CPU) or "
    "approximate (docs/models.md)";
constexpr const char* kPerChannelVariable = "SKILLET_PER_CHANNEL";

}  // namespace skillet::tools
