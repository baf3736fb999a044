// Filters of an op in the form that the coefficient writers read: unsigned, [oc][ic][row][column], biases folded.
// Called by lower.cpp.
// Must not know: streams, cores.
#pragma once

#include "npus/vivante/compiler/numerics.h"
#include "npus/vivante/compiler/operations.h"
#include "npus/vivante/compiler/support.h"

namespace skillet::npus::vivante {

// How the filter of the model becomes the filter of the job.
enum class FilterTransform : uint8_t {
  none,
  linear,          // fully connected: the model's list, unchanged
  space_to_depth,  // 4 channels per input channel, half the size (section 8.2)
  widen_to_2x2,    // {w, zp, zp, zp}: the chip cannot run 1x1x1 filters (section 8.4)
};
Kernels make_kernels(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId op, const ConvShape& shape,
                     FilterTransform transform, SignedBytes signed_bytes = SignedBytes::raised);

// Depthwise filters of some of the channels: one of `parts` equal parts. `center_offset`: pixel center minus the
// input's zero point.
Kernels channel_part(const Kernels& all, int32_t part, int32_t parts, int64_t center_offset);

}  // namespace skillet::npus::vivante
