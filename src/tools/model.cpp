#include "tools/model.h"

#include "frontend/tflite/import.h"

namespace skillet::tools {

Result<ir::Graph> import_model(const std::string& path) { return tflite::import_file(path); }

}  // namespace skillet::tools
