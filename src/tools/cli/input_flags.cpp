#include "tools/cli/input_flags.h"

#include "tools/tensors/picture.h"

namespace skillet::tools {

void add_float_pixels(const Verb& verb, std::string& place) {
  verb.option("--float-pixels", place, "range of float32 inputs for pixels of 0 to 255, as in training. Default: -1..1")
      .check(one_of(kFloatPixels));
}

void add_input_shape(const Verb& verb, std::vector<std::string>& shapes) {
  verb.option("--input-shape", shapes,
              "sizes of an input, such as 1x224x224x3 or NAME=1x224x224x3, for models with free sizes (may be given "
              "several times)");
}

void add_import(const Verb& verb, tflite::ImportOptions& options) {
  add_input_shape(verb, options.input_shapes);
  verb.option("--signature", options.signature, "name of the signature to use. Default: the first subgraph");
}

}  // namespace skillet::tools
