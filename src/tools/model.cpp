#include "tools/model.h"

namespace skillet::tools {

Result<ir::Graph> import_model(const std::string& path, const tflite::ImportOptions& options) {
  return tflite::import_file(path, options);
}

void add_import(const Verb& verb, tflite::ImportOptions& options) {
  verb.option("--input-shape", options.input_shapes,
              "sizes of an input, such as 1x224x224x3 or NAME=1x224x224x3, for models whose sizes are free\n"
              "(may be given several times)");
  verb.option("--signature", options.signature, "which of the model's signatures; otherwise its first subgraph");
}

}  // namespace skillet::tools
