// Checks that a JPEG contains all that its header declares: walks its entropy-coded data block by block, without
// computing pixels. stb_image's decoder fills missing data with grey and trusts the code tables, so check a file before
// decoding. Called by load_picture(). Must not know: pixels.
#pragma once

#include <cstdint>
#include <span>

namespace skillet::tools {

enum class JpegState {
  whole,    // or not checked: no JPEG, neither baseline nor progressive, or too large
  endless,  // complete, but without an end marker
  damaged,  // its data end before the last block, have invalid codes, or continue after the end
};

JpegState jpeg_state(std::span<const uint8_t> file, int64_t most_pixels = INT64_MAX);

}  // namespace skillet::tools
