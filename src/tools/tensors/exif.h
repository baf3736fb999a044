// Exif: how a camera was held. Most cameras store the pixels as the sensor saw them, and this beside them.
// Called by load_picture().
// Must not know: the rest of a JPEG or PNG file.
#pragma once

#include <cstdint>
#include <span>

#include "tools/tensors/picture.h"

namespace skillet::tools {

// 1 to 8, as the tag has it; 1, which turns nothing, where the file tells none.
int exif_orientation(std::span<const uint8_t> file);

// The picture as it is to be looked at.
Picture upright(const Picture& picture, int orientation);

}  // namespace skillet::tools
