// Additions and subtractions as convolutions: the image and the filter of the job (section 8.6). Called by support.cpp
// (is there such a job?) and lower.cpp. Must not know: slots, bit positions.
#pragma once

#include <optional>

#include "npus/vivante/compiler/numerics.h"
#include "npus/vivante/compiler/operations.h"

namespace skillet::npus::vivante {

// The operands follow each other in memory; the job reads them as one image.
struct AdditionGeometry {
  Image in, out;
  int32_t kernel_width = 1, kernel_height = 1;
  bool recorded = true;  // divided as in the recorded driver; other divisions compute the same
};
// Nothing if no image of these elements fits the chip's fields.
std::optional<AdditionGeometry> addition_geometry(const hw::ChipRow& chip, const Image& operand);

// The whole job except its slots and zero points. There must be a geometry. `square`: with square images where the chip
// divides operands into chunks and there are such images.
NnOperation addition_job(const hw::ChipRow& chip, const Image& operand, const AdditionWeights& weights, bool square);

}  // namespace skillet::npus::vivante
