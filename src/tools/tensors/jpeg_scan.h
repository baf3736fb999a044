// Whether a JPEG holds all that its header promises: libjpeg reads its coefficients, and computes no pixels. The
// decoder of stb_image fills what is lacking with grey, and believes tables of codes whatever they hold: ask before it
// sees the file. Called by load_picture(). Must not know: pixels.
#pragma once

#include <cstdint>
#include <span>

namespace skillet::tools {

enum class JpegState {
  whole,    // or no JPEG, or one of a kind that libjpeg does not read, or too large: the decoder decides
  endless,  // all is there but the mark of its end
  damaged,  // its headers or tables are wrong; its data end before its last block, are no codes, or go on after it
};

JpegState jpeg_state(std::span<const uint8_t> file, int64_t most_pixels = INT64_MAX);

}  // namespace skillet::tools
