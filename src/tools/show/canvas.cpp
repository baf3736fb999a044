#include "tools/show/canvas.h"

#include <algorithm>
#include <cmath>
#include <string>

#define STBI_WRITE_NO_STDIO
#include <stb/stb_easy_font.h>
#include <stb/stb_image_write.h>

namespace skillet::tools {
namespace {

// Output of stb_easy_font: rectangles of four corners.
struct Corner {
  float x, y, z;
  uint8_t colour[4];
};
constexpr size_t kCornersPerRectangle = 4;
constexpr int kLineHeightPx = 9, kMarginPx = 1;

std::string ascii(std::string_view text) {
  constexpr size_t kMaxLetters = 80;
  std::string out;
  for (const char c : text.substr(0, kMaxLetters)) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) != 0x80) out += byte >= ' ' && byte < 0x7F ? c : '?';  // one '?' for all bytes of a letter
  }
  return out;
}

std::vector<Corner> letters(std::string text) {
  constexpr size_t kRectanglesPerLetter = 32;
  std::vector<Corner> out(std::max<size_t>(1, text.size()) * kRectanglesPerLetter * kCornersPerRectangle);
  const int count =
      stb_easy_font_print(0, 0, text.data(), nullptr, out.data(), static_cast<int>(out.size() * sizeof(Corner)));
  out.resize(static_cast<size_t>(count) * kCornersPerRectangle);
  return out;
}

int rounded(double value, int highest) {
  return static_cast<int>(std::lround(std::clamp(value, 0.0, double(highest))));
}

bool is_dark(Colour colour) { return colour[0] * 77 + colour[1] * 150 + colour[2] * 29 < 128 * 256; }

}  // namespace

Colour class_colour(size_t index) {
  Colour out{};
  for (int bit = 7; bit >= 0 && index != 0; --bit, index >>= 3) {
    for (size_t i = 0; i < 3; ++i) out[i] = static_cast<uint8_t>(out[i] | (index >> i & 1) << bit);
  }
  return out;
}

void blend(Picture& picture, int x_px, int y_px, Colour colour, double opacity) {
  if (x_px < 0 || y_px < 0 || x_px >= picture.width_px || y_px >= picture.height_px) return;
  uint8_t* pixel = picture.pixels.data() + (static_cast<size_t>(y_px) * picture.width_px + x_px) * 3;
  for (size_t i = 0; i < 3; ++i)
    pixel[i] = static_cast<uint8_t>(std::lround(pixel[i] * (1 - opacity) + colour[i] * opacity));
}

void fill(Picture& picture, Point from, Point to, Colour colour, double opacity) {
  const int right = rounded(to.x_px, picture.width_px), bottom = rounded(to.y_px, picture.height_px);
  for (int y = rounded(from.y_px, picture.height_px); y < bottom; ++y) {
    for (int x = rounded(from.x_px, picture.width_px); x < right; ++x) blend(picture, x, y, colour, opacity);
  }
}

void outline(Picture& picture, Point from, Point to, Colour colour, int thickness_px) {
  const double t = thickness_px;
  fill(picture, from, {to.x_px, from.y_px + t}, colour);
  fill(picture, {from.x_px, to.y_px - t}, to, colour);
  fill(picture, from, {from.x_px + t, to.y_px}, colour);
  fill(picture, {to.x_px - t, from.y_px}, to, colour);
}

void line(Picture& picture, Point from, Point to, Colour colour, int thickness_px) {
  const double dx = to.x_px - from.x_px, dy = to.y_px - from.y_px;
  const int steps = std::clamp(static_cast<int>(std::ceil(std::max(std::abs(dx), std::abs(dy)))), 1, 1 << 16);
  for (int i = 0; i <= steps; ++i)
    disc(picture, {from.x_px + dx * i / steps, from.y_px + dy * i / steps}, thickness_px / 2.0, colour);
}

void disc(Picture& picture, Point centre, double radius_px, Colour colour) {
  const int top = rounded(centre.y_px - radius_px, picture.height_px);
  const int bottom = rounded(centre.y_px + radius_px + 1, picture.height_px);
  const int left = rounded(centre.x_px - radius_px, picture.width_px);
  const int right = rounded(centre.x_px + radius_px + 1, picture.width_px);
  for (int y = top; y < bottom; ++y) {
    for (int x = left; x < right; ++x) {
      if (std::hypot(x - centre.x_px, y - centre.y_px) <= radius_px) blend(picture, x, y, colour, 1);
    }
  }
}

int caption_height_px(int scale) { return kLineHeightPx * scale + 2 * kMarginPx; }

void caption(Picture& picture, Point at, std::string_view text, Colour colour, int scale) {
  const std::string shown = ascii(text);
  const std::vector<Corner> corners = letters(shown);
  float right = 0;
  for (const Corner& corner : corners) right = std::max(right, corner.x);
  const double width = right * static_cast<double>(scale) + 2.0 * kMarginPx + scale, height = caption_height_px(scale);
  at.x_px = std::max(0.0, std::min(at.x_px, picture.width_px - width));
  at.y_px = std::max(0.0, std::min(at.y_px, picture.height_px - height));
  fill(picture, at, {at.x_px + width, at.y_px + height}, colour);
  const Colour ink = is_dark(colour) ? Colour{255, 255, 255} : Colour{0, 0, 0};
  const auto place = [&](const Corner& corner) {
    return Point{at.x_px + kMarginPx + scale * static_cast<double>(corner.x),
                 at.y_px + kMarginPx + scale * static_cast<double>(corner.y)};
  };
  for (size_t i = 0; i < corners.size(); i += kCornersPerRectangle)
    fill(picture, place(corners[i]), place(corners[i + 2]), ink);
}

Result<Bytes> png_of(const Picture& picture) {
  Bytes out;
  const auto append = [](void* context, void* data, int size) {
    const auto* bytes = static_cast<const uint8_t*>(data);
    static_cast<Bytes*>(context)->insert(static_cast<Bytes*>(context)->end(), bytes, bytes + size);
  };
  if (stbi_write_png_to_func(append, &out, picture.width_px, picture.height_px, picture.channels, picture.pixels.data(),
                             picture.width_px * picture.channels) == 0)
    return error(ErrorCode::internal, "a picture of {} x {} cannot be written as PNG", picture.width_px,
                 picture.height_px);
  return out;
}

}  // namespace skillet::tools
