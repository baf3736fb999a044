// Reads how a camera was held from Exif data. Most cameras store pixels in the sensor's order, and the orientation
// beside them.
// Called by load_picture().
// Must not know: the rest of a JPEG or PNG file.
#pragma once

#include <cstdint>
#include <span>

#include "tools/tensors/picture.h"

namespace skillet::tools {

// 1 to 8, as in the tag; 1 (no rotation) if the file has none.
int exif_orientation(std::span<const uint8_t> file);

// The picture rotated for display.
Picture upright(const Picture& picture, int orientation);

}  // namespace skillet::tools
