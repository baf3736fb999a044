// Whether a JPEG holds all that its header promises: its entropy-coded data are walked, block by block, without
// computing pixels. The decoder of stb_image fills what is lacking with grey, and believes tables of codes whatever
// they hold: ask before it sees the file. Called by load_picture(). Must not know: pixels.
#pragma once

#include <cstdint>
#include <span>

namespace skillet::tools {

enum class JpegState {
  whole,    // or no JPEG, or one that is neither baseline nor progressive, or too large: for the decoder to judge
  endless,  // all is there but the mark of its end
  damaged,  // its data end before its last block, are no codes, or go on after it
};

JpegState jpeg_state(std::span<const uint8_t> file, int64_t most_pixels = INT64_MAX);

}  // namespace skillet::tools
