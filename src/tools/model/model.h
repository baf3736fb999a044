// Reads a model file as a graph; texts that several verbs share.
// Called by the verbs that read a model.
// Must not know: how a session runs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "compile/advice.h"
#include "compile/compile.h"
#include "graph/import/import.h"
#include "graph/ir/graph.h"
#include "runtime/program_cache.h"

namespace skillet::tools {

// By file extension: any kind of model; an ONNX file.
bool is_model(const std::string& path);
bool is_onnx(const std::string& path);
// Names of operations and tools for texts about that file, or about the file that a compiled model was made from.
compile::Words words_of(const std::string& path);
compile::Words words_of(const runtime::CompiledModel& model);
// CompiledModel::note of `skillet compile` for files of that format; empty for TensorFlow Lite.
std::string note_for(compile::Words words);

// An error for an ONNX file, for a verb that writes TensorFlow Lite files. `instead`: advice.
Result<void> check_no_onnx(const std::string& path, std::string_view verb, std::string_view instead);

// The imported graph of a TensorFlow Lite or ONNX file or a compiled model; errors start with the path. `compiled`:
// receives the compiled model, with its programs.
Result<ir::Graph> import_model(const std::string& path, const tflite::ImportOptions& options = {},
                               std::optional<runtime::CompiledModel>* compiled = nullptr);
// For a session on that target; reports why programs are of no use. Null: no programs.
std::shared_ptr<runtime::ProgramStore> programs_for(const std::optional<runtime::CompiledModel>& compiled,
                                                    const runtime::Target& target);
constexpr const char* kModelHelp = "a .tflite or .onnx file, or what skillet compile -o wrote";

// Call after making that session: reports programs for its chip that were not used, and options that differ.
void say_unused(const std::optional<runtime::CompiledModel>& compiled, const runtime::ProgramStore* programs,
                const runtime::Target& target, const runtime::SessionOptions& session, const std::string& path);
// For models without a part on the NPU: whether --partition all would move operations there; and the error.
bool is_left_to_cpu(const compile::Compiled& compiled);
Error nothing_on_npu(const compile::Compiled& compiled, const std::string& device, const std::string& model);

// Values of --device, for help texts.
constexpr const char* kDeviceVariable = "SKILLET_DEVICE";
constexpr const char* kDeviceHelp =
    "auto, npu, cpu, a device such as /dev/dri/renderD128 or etnaviv0, or a\nsimulated chip such as sim:a311d (see "
    "skillet devices)";

}  // namespace skillet::tools
