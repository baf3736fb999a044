#include "tools/model/model.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "compile/report.h"
#include "frontend/onnx/import.h"

namespace skillet::tools {

bool is_model(const std::string& path) { return path.ends_with(".tflite") || is_onnx(path); }
bool is_onnx(const std::string& path) { return path.ends_with(".onnx"); }

constexpr const char* kOfOnnx = "onnx";
constexpr const char* kOfProvider = "in ";  // begins the note of a part that ONNX Runtime stores (onnx/port.h)

std::string note_for(compile::Words words) { return words == compile::Words::onnx ? kOfOnnx : ""; }
compile::Words words_of(const runtime::CompiledModel& model) {
  const bool is_of_onnx = model.note == kOfOnnx || model.note.starts_with(kOfProvider);
  return is_of_onnx ? compile::Words::onnx : compile::Words::tflite;
}
compile::Words words_of(const std::string& path) {
  const auto is_of_onnx = [&] {
    const auto is_compiled = runtime::is_compiled_model(path);
    if (!is_compiled.ok() || !*is_compiled) return false;
    auto file = read_file(path);
    const auto model =
        file.ok() ? runtime::read_compiled(std::move(*file)) : Result<runtime::CompiledModel>(file.error());
    return model.ok() && words_of(*model) == compile::Words::onnx;
  };
  return is_onnx(path) || is_of_onnx() ? compile::Words::onnx : compile::Words::tflite;
}

Result<void> check_no_onnx(const std::string& path, std::string_view verb, std::string_view instead) {
  if (!is_onnx(path)) return {};
  return error(ErrorCode::invalid_argument, "{}: skillet {} is for TensorFlow Lite files{}{}", printable(path), verb,
               instead.empty() ? "" : "; ", instead);
}

namespace {

Result<runtime::CompiledModel> read_compiled(const std::string& path, const tflite::ImportOptions& options) {
  if (!options.signature.empty() || !options.input_shapes.empty())
    return error(ErrorCode::invalid_argument, "it is compiled: its sizes and its signature are fixed");
  SK_TRY_ASSIGN(Bytes file, read_file(path));
  return runtime::read_runnable(std::move(file));
}

// The refusal of the first operation other than QUANTIZE and DEQUANTIZE, else of the first one.
std::string first_refusal(const compile::Compiled& compiled, compile::Words words) {
  auto rows = compile::rows(compiled);
  compile::put_in_words(words, rows);
  const auto computes = [&](const compile::OpRow& row) {
    const ir::OpKind kind = compiled.graph.op(row.op).kind;
    return kind != ir::OpKind::quantize && kind != ir::OpKind::dequantize;
  };
  auto found = std::ranges::find_if(rows, computes);
  if (found == rows.end()) found = rows.begin();
  return found == rows.end() ? "" : fmt::format("; op {} {}: {}", found->number, found->kind, found->why);
}

}  // namespace

Result<ir::Graph> import_model(const std::string& path, const tflite::ImportOptions& options,
                               std::optional<runtime::CompiledModel>* compiled) {
  if (is_onnx(path)) {
    if (!options.signature.empty())
      return error(ErrorCode::invalid_argument, "{}: ONNX files have no signatures (--signature)", printable(path));
    return onnx::import_file(path, {.input_shapes = options.input_shapes, .folder = {}});
  }
  if (const auto is_compiled = runtime::is_compiled_model(path); !is_compiled.ok() || !*is_compiled)
    return tflite::import_file(path, options);
  SK_TRY_ASSIGN(runtime::CompiledModel made, read_compiled(path, options).with_context(printable(path)));
  ir::Graph graph = std::move(made.graph);
  if (compiled != nullptr) *compiled = std::move(made);
  return graph;
}

std::shared_ptr<runtime::ProgramStore> programs_for(const std::optional<runtime::CompiledModel>& compiled,
                                                    const runtime::Target& target) {
  if (!compiled) return nullptr;
  runtime::say_what_differs(*compiled, target);
  return std::make_shared<runtime::ProgramStore>(compiled->programs);
}

void say_unused(const std::optional<runtime::CompiledModel>& compiled, const runtime::ProgramStore* programs,
                const runtime::Target& target, const runtime::SessionOptions& session, const std::string& path) {
  if (programs == nullptr || !compiled) return;
  const std::string unused = runtime::what_is_unused(*compiled, *programs, target, session);
  if (!unused.empty()) log::warning("{}: {}", printable(path), unused);
}

bool is_left_to_cpu(const compile::Compiled& compiled) {
  return std::ranges::count(compiled.ops, npu::Remedy::take_all, &compile::OpPlace::remedy) != 0;
}

Error nothing_on_npu(const compile::Compiled& compiled, const std::string& device, const std::string& model) {
  if (is_left_to_cpu(compiled))
    return error(
        ErrorCode::unsupported,
        "all of {} stays on the CPU, which is predicted to be faster than {}; --partition all takes what it can",
        printable(model), device);
  const bool is_refused = std::ranges::any_of(compiled.ops, [](const compile::OpPlace& place) {
    return place.remedy == npu::Remedy::unproven || place.remedy == npu::Remedy::one_job;
  });
  return error(
      ErrorCode::unsupported, "{} takes no operation of {}{}{} (see skillet check)", device, printable(model),
      is_refused
          ? " with --unproven refuse; --unproven verify takes more, after a comparison with the CPU on the device"
          : "",
      first_refusal(compiled, words_of(model)));
}

}  // namespace skillet::tools
