// Custom operations: their attributes, which model files store as FlexBuffers or as the bytes of a C struct.
// Called by options.cpp and import.cpp.
// Must not know: subgraphs.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include "base/result.h"
#include "graph/ir/graph.h"

namespace skillet::tflite {

// Reads the options of TFLite_Detection_PostProcess. `options` may be null.
Result<ir::Attrs> read_detection_options(const flatbuffers::Vector<uint8_t>* options);

// MediaPipe's TRANSPOSE_CONV, which has a bias and no shape operand (input, filter, bias). `op` is opaque, with the
// operands of the file; it becomes a TRANSPOSE_CONV with the declared output shape. Left as it is if it has another
// form.
inline constexpr std::string_view kTransposeConvBias = "Convolution2DTransposeBias";
void take_transpose_conv_bias(const flatbuffers::Vector<uint8_t>* options, ir::Graph& graph, ir::Op& op);

}  // namespace skillet::tflite
