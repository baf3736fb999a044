// Canvas: draws shapes and text on a picture in colour, clipped to it. Also encodes a picture as a PNG file.
// Called by paint.cpp.
// Must not know: what is drawn.
#pragma once

#include <array>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "tools/tensors/picture.h"

namespace skillet::tools {

using Colour = std::array<uint8_t, 3>;
struct Point {
  double x_px = 0, y_px = 0;
};

// A colour for each class, easy to distinguish from its neighbours; black for class 0, the background of masks.
Colour class_colour(size_t index);

void blend(Picture& picture, int x_px, int y_px, Colour colour, double opacity);
void fill(Picture& picture, Point from, Point to, Colour colour, double opacity = 1);
void outline(Picture& picture, Point from, Point to, Colour colour, int thickness_px);
void line(Picture& picture, Point from, Point to, Colour colour, int thickness_px);
void disc(Picture& picture, Point centre, double radius_px, Colour colour);
// Draws text on a background of `colour`, moved into the picture if necessary. Letters beyond ASCII become '?'.
void caption(Picture& picture, Point at, std::string_view text, Colour colour, int scale);
int caption_height_px(int scale);

Result<Bytes> png_of(const Picture& picture);

}  // namespace skillet::tools
