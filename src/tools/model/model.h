// A model file as a graph; words that several verbs share.
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

// By its ending: a model of any kind; an ONNX file.
bool is_model(const std::string& path);
bool is_onnx(const std::string& path);
// Whose operations and tools texts about that file name: those of the file that a compiled model was made of.
compile::Words words_of(const std::string& path);
compile::Words words_of(const runtime::CompiledModel& model);
// CompiledModel::note of `skillet compile` of such a file; that of another format has none.
std::string note_for(compile::Words words);

// Where a verb writes TensorFlow Lite files and was given an ONNX file: what to do instead.
Result<void> check_no_onnx(const std::string& path, std::string_view verb, std::string_view instead);

// The imported graph, of a TensorFlow Lite or an ONNX file or a compiled model; errors start with the path.
// `compiled`: the programs that the latter has too.
Result<ir::Graph> import_model(const std::string& path, const tflite::ImportOptions& options = {},
                               std::optional<runtime::CompiledModel>* compiled = nullptr);
// For a session on that target; says why where they are of no use. Null: there are none.
std::shared_ptr<runtime::ProgramStore> programs_for(const std::optional<runtime::CompiledModel>& compiled,
                                                    const runtime::Target& target);
constexpr const char* kModelHelp = "a .tflite or .onnx file, or what skillet compile -o wrote";

// After that session was made: says which programs for its chip were of no use, and which options differ.
void say_unused(const std::optional<runtime::CompiledModel>& compiled, const runtime::ProgramStore* programs,
                const runtime::Target& target, const runtime::SessionOptions& session, const std::string& path);
// Where no part is on the NPU: whether it would take some, and the partition leaves all to the CPU; and the error.
bool is_left_to_cpu(const compile::Compiled& compiled);
Error nothing_on_npu(const compile::Compiled& compiled, const std::string& device, const std::string& model);

// What --device takes, for help texts.
constexpr const char* kDeviceVariable = "SKILLET_DEVICE";
constexpr const char* kDeviceHelp =
    "auto, npu, cpu, a device such as /dev/dri/renderD128 or etnaviv0, or a\nsimulated chip such as sim:a311d (see "
    "skillet devices)";

}  // namespace skillet::tools
