#include "tools/model/model.h"

namespace skillet::tools {

Result<ir::Graph> import_model(const std::string& path, const tflite::ImportOptions& options) {
  return tflite::import_file(path, options);
}

}  // namespace skillet::tools
