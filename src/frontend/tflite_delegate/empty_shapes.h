// Shapes of what has no elements: batches of no images, pictures of no rows. Nothing computes it; the host wants to
// know its shape. Called by Kernel. Must not know: devices, sessions.
#pragma once

#include <set>
#include <span>
#include <utility>
#include <vector>

#include "frontend/tflite_delegate/graph_builder.h"

namespace skillet::delegate {

// Host tensors from outside `nodes` that have no elements.
std::set<int> empty_inputs(const TfLiteContext* context, std::span<const HostNode> nodes);

// Host tensors and shapes of `outputs` where those `empty` ones have none. Sizes are taken to grow in proportion to
// those that are 0. Error: what has elements all the same, of which only the host's own kernels know the values.
Result<std::vector<std::pair<int, ir::Shape>>> empty_shapes(TfLiteContext* context, const std::set<int>& empty,
                                                            std::span<const HostNode> nodes,
                                                            std::span<const int> outputs,
                                                            std::span<const HostNode> shapes);

}  // namespace skillet::delegate
