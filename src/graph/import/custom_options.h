// Attributes of custom operations, which model files store as FlexBuffers.
// Called by options.cpp.
// Must not know: tensors, graphs.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include "base/result.h"
#include "graph/ir/op.h"

namespace skillet::tflite {

// Reads the options of TFLite_Detection_PostProcess. `options` may be null.
Result<ir::Attrs> read_detection_options(const flatbuffers::Vector<uint8_t>* options);

}  // namespace skillet::tflite
