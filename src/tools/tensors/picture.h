// Picture: BMP, PNG and JPEG files as bytes of an image input; and a picture as characters for a terminal.
// Called by `skillet run`.
// Must not know: networks beyond the one tensor that it fills.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "graph/ir/graph.h"

namespace skillet::tools {

// Interleaved 8-bit pixels, row by row; 1 channel (grey) or 3 (RGB).
struct Picture {
  int width_px = 0, height_px = 0, channels = 0;
  Bytes pixels;
};

inline constexpr int64_t kMaxPicturePixels = int64_t{1} << 26;

// `channels`: 1 or 3; the file's pixels are converted. The error names the file.
Result<Picture> load_picture(const std::string& path, int channels);
// Bilinear, pixel centres at half coordinates, edges repeated; no smoothing before shrinking.
Picture resize(const Picture& picture, int width_px, int height_px);

// Its longer side at most `largest_px`; a small picture several times as large, up to `smallest_px`.
Picture fit(const Picture& picture, int smallest_px, int largest_px);
// The same in colour (3), or grey (1).
Picture with_channels(const Picture& picture, int channels);

// Height, width and channels of an image input: channels are last, or, where only that can be, second.
struct ImageShape {
  int32_t height = 0, width = 0, channels = 0;
  bool channels_second = false;
};
ImageShape image_shape(const ir::Shape& shape);
// Whether pictures can be fed to `input`: 1 x height x width x (1 or 3), or channels second, uint8, int8 or float32.
Result<void> check_image_input(const ir::Tensor& input);
// What float32 inputs get for pixels of 0 to 255; no model says what it was trained with.
constexpr std::string_view kFloatPixels[] = {"-1..1", "0..1", "0..255"};
// The picture, resized, as the contents of `input`. uint8: the pixels; int8: pixel - 128; float32: one of kFloatPixels.
Result<Bytes> to_tensor(const Picture& picture, const ir::Tensor& input,
                        std::string_view float_pixels = kFloatPixels[0]);
// What to_tensor() does, for people.
std::string describe_mapping(const ir::Tensor& input, std::string_view float_pixels);

// Rows of characters, two pixel rows to a character row; at most `max_columns` wide.
std::vector<std::string> draw(const Picture& picture, int max_columns);

}  // namespace skillet::tools
