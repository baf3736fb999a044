// Additions and subtractions as convolutions: the image that they are done on and the filter that does it
// (section 8.6). Called by support.cpp (is there a way?) and lower.cpp. Must not know: slots, bit positions.
#pragma once

#include <optional>

#include "npus/vivante/compiler/numerics.h"
#include "npus/vivante/compiler/operations.h"

namespace skillet::npus::vivante {

// Both operands are one after the other; the job reads them as one image.
struct AdditionGeometry {
  Image in, out;
  int32_t kernel_width = 1, kernel_height = 1;
  bool recorded = true;  // cut as the recorded driver does; others compute the same
};
// Nothing when no image of these elements fits the chip's fields.
std::optional<AdditionGeometry> addition_geometry(const hw::ChipRow& chip, const Image& operand);

// Everything of the job but its slots and zero points. There must be a geometry.
NnOperation addition_job(const hw::ChipRow& chip, const Image& operand, const AdditionWeights& weights);

}  // namespace skillet::npus::vivante
