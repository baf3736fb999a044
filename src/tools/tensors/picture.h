// Picture: BMP, PNG and JPEG files as contents of an image input; pictures as characters for a terminal.
// Called by `skillet run`.
// Must not know: networks, except the tensor to fill.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

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

// Of a file's name, with the point, in small letters.
std::string ending_of(const std::string& path);
// The files of a folder with one of these endings, in order; an error that names `kinds` if there are none.
Result<std::vector<std::string>> files_in(const std::string& folder, std::initializer_list<std::string_view> endings,
                                          std::string_view kinds);
// `channels`: 1 or 3; the file's pixels are converted. Errors name the file.
Result<Picture> load_picture(const std::string& path, int channels);
// Bilinear, pixel centres at half coordinates, edges repeated; no smoothing before shrinking.
Picture resize(const Picture& picture, int width_px, int height_px);

// Scales the picture so that its longer side is at most `largest_px`; a small one by an integer, up to `smallest_px`.
Picture fit(const Picture& picture, int smallest_px, int largest_px);
// Converts to colour (3) or grey (1).
Picture with_channels(const Picture& picture, int channels);

// Size of an image input. Channels are last, or second if only that is possible.
struct ImageShape {
  int32_t height = 0, width = 0, channels = 0;
  bool channels_second = false;
};
ImageShape image_shape(const ir::Shape& shape);
// An error if `input` does not fit pictures: 1 x height x width x (1 or 3), or channels second, uint8, int8 or float32.
Result<void> check_image_input(const ir::Tensor& input);
// Ranges of float32 inputs for pixels of 0 to 255. Model files do not contain the range used in training.
constexpr std::string_view kFloatPixels[] = {"-1..1", "0..1", "0..255"};
// Resizes the picture and converts it to the contents of `input`. uint8: the pixels; int8: pixel - 128; float32: one of
// kFloatPixels.
Result<Bytes> to_tensor(const Picture& picture, const ir::Tensor& input,
                        std::string_view float_pixels = kFloatPixels[0]);
// Describes the conversion of to_tensor(), for people.
std::string describe_mapping(const ir::Tensor& input, std::string_view float_pixels);

// Rows of characters, two pixel rows to a character row; at most `max_columns` wide.
std::vector<std::string> draw(const Picture& picture, int max_columns);

}  // namespace skillet::tools
