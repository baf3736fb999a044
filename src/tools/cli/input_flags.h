// Options for reading a model and for converting pixels to its inputs.
// Called by the verbs that read models.
// Must not know: what the verbs do with the model.
#pragma once

#include <string>
#include <vector>

#include "graph/import/import.h"
#include "tools/cli/command_line.h"

namespace skillet::tools {

// --input-shape, for ImportOptions.
void add_input_shape(const Verb& verb, std::vector<std::string>& shapes);
// --input-shape and --signature.
void add_import(const Verb& verb, tflite::ImportOptions& options);
// --float-pixels, for InputOptions.
void add_float_pixels(const Verb& verb, std::string& place);

}  // namespace skillet::tools
