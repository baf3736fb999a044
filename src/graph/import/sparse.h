// Converts sparse weights of a model file to dense ones. Called by the importer. Must not know: operations.
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "graph/ir/graph.h"
#include "tflite_schema_generated.h"

namespace skillet::tflite {

// The contents of `tensor` in the order of its shape. `stored` are the elements in the file, `how` gives their
// positions. At most `bytes_max`. Error: the lists do not fit the shape, one another or `stored`.
Result<Bytes> dense_contents(const schema::SparsityParameters& how, const ir::Tensor& tensor,
                             std::span<const uint8_t> stored, size_t bytes_max);

}  // namespace skillet::tflite
