// Weights and biases of a layer (convolution, matrix product) as constants of the graph. Called by ops_weights.cpp.
// Must not know: windows.
#pragma once

#include <vector>

#include "frontend/onnx/lowering.h"

namespace skillet::onnx {

// The bias as int32 with one value for each output channel, in steps of input scale times weight scale.
Result<ir::TensorId> bias(Lowering& l, size_t i, const ir::Quant& in, const ir::Quant& weights, int32_t channels);

// Weights with dimensions permuted; the axis of their scales moves to the operation's axis.
Result<ir::TensorId> weights(Lowering& l, const std::vector<int32_t>& dims, const std::vector<int>& perm,
                             std::vector<int32_t> shape, int channels_at, int scales_at);

}  // namespace skillet::onnx
