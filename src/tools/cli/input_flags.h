// How a model is read and what its inputs get for pixels, as options.
// Called by the verbs that read models.
// Must not know: what is done with them.
#pragma once

#include <string>
#include <vector>

#include "graph/import/import.h"
#include "tools/cli/command_line.h"

namespace skillet::tools {

// --input-shape, of ImportOptions.
void add_input_shape(const Verb& verb, std::vector<std::string>& shapes);
// --input-shape and --signature.
void add_import(const Verb& verb, tflite::ImportOptions& options);
// --float-pixels, of InputOptions.
void add_float_pixels(const Verb& verb, std::string& place);

}  // namespace skillet::tools
