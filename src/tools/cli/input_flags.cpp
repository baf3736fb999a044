#include "tools/cli/input_flags.h"

#include "tools/tensors/picture.h"

namespace skillet::tools {

void add_float_pixels(const Verb& verb, std::string& place) {
  verb.option("--float-pixels", place,
              "what inputs of float32 get for pixels of 0 to 255, as the network was trained with. Default: -1..1")
      .check(one_of(kFloatPixels));
}

void add_input_shape(const Verb& verb, std::vector<std::string>& shapes) {
  verb.option("--input-shape", shapes,
              "sizes of an input, such as 1x224x224x3 or NAME=1x224x224x3, for models whose sizes are free\n"
              "(may be given several times)");
}

void add_import(const Verb& verb, tflite::ImportOptions& options) {
  add_input_shape(verb, options.input_shapes);
  verb.option("--signature", options.signature, "which of the model's signatures; otherwise its first subgraph");
}

}  // namespace skillet::tools
