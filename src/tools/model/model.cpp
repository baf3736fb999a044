#include "tools/model/model.h"

#include <algorithm>

#include "base/text.h"

namespace skillet::tools {

Result<ir::Graph> import_model(const std::string& path, const tflite::ImportOptions& options) {
  return tflite::import_file(path, options);
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
  return error(ErrorCode::unsupported, "{} takes no operation of {} (see skillet check)", device, printable(model));
}

}  // namespace skillet::tools
