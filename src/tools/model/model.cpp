#include "tools/model/model.h"

#include <algorithm>

#include "base/text.h"
#include "frontend/onnx/import.h"

namespace skillet::tools {

bool is_model(const std::string& path) { return path.ends_with(".tflite") || is_onnx(path); }
bool is_onnx(const std::string& path) { return path.ends_with(".onnx"); }

Result<void> check_no_onnx(const std::string& path, std::string_view verb, std::string_view instead) {
  if (!is_onnx(path)) return {};
  return error(ErrorCode::invalid_argument, "{}: skillet {} is for TensorFlow Lite files{}{}", printable(path), verb,
               instead.empty() ? "" : "; ", instead);
}

Result<ir::Graph> import_model(const std::string& path, const tflite::ImportOptions& options) {
  if (!is_onnx(path)) return tflite::import_file(path, options);
  if (!options.signature.empty())
    return error(ErrorCode::invalid_argument, "{}: ONNX files have no signatures (--signature)", printable(path));
  return onnx::import_file(path, {.input_shapes = options.input_shapes, .folder = {}});
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
  return error(ErrorCode::unsupported, "{} takes no operation of {}{} (see skillet check)", device, printable(model),
               is_refused ? " with --unproven refuse; --unproven verify compares what no recorded job shows with the "
                            "CPU on the device first"
                          : "");
}

}  // namespace skillet::tools
