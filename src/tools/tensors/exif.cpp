#include "tools/tensors/exif.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace skillet::tools {
namespace {

using Span = std::span<const uint8_t>;

// Reads numbers of the TIFF block in an Exif segment; 0 beyond its end.
class Tiff {
 public:
  explicit Tiff(Span bytes) : bytes_(bytes), is_big_endian_(!bytes.empty() && bytes[0] == 'M') {}
  uint32_t number(size_t at, size_t size_bytes) const {
    if (at + size_bytes > bytes_.size()) return 0;
    uint32_t value = 0;
    for (size_t i = 0; i < size_bytes; ++i)
      value = value << 8 | bytes_[is_big_endian_ ? at + i : at + size_bytes - 1 - i];
    return value;
  }

 private:
  Span bytes_;
  bool is_big_endian_;
};

int orientation_of(const Tiff& tiff) {
  constexpr uint32_t kOrientationTag = 0x0112;
  constexpr size_t kEntryBytes = 12;
  const size_t entries = tiff.number(4, 4), count = tiff.number(entries, 2);
  for (size_t i = 0; i < count; ++i) {
    const size_t entry = entries + 2 + i * kEntryBytes;
    if (tiff.number(entry, 2) != kOrientationTag) continue;
    constexpr uint32_t kLong = 4;  // other types: SHORT
    const uint32_t value = tiff.number(entry + 8, tiff.number(entry + 2, 2) == kLong ? 4 : 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

// Contents of the first Exif segment. A JPEG file is a chain of segments, each with its size.
std::optional<Span> exif_of_jpeg(Span jpeg) {
  constexpr uint8_t kMark = 0xFF, kStart = 0xD8, kApp1 = 0xE1, kScan = 0xDA;
  constexpr std::string_view kExif{"Exif\0\0", 6};
  if (jpeg.size() < 2 || jpeg[0] != kMark || jpeg[1] != kStart) return std::nullopt;
  for (Span rest = jpeg.subspan(2); rest.size() >= 4 && rest[0] == kMark && rest[1] != kScan;) {
    const size_t size_bytes = size_t{rest[2]} << 8 | rest[3];
    if (size_bytes < 2 || size_bytes + 2 > rest.size()) return std::nullopt;
    const Span body = rest.subspan(4, size_bytes - 2);
    if (rest[1] == kApp1 && body.size() > kExif.size() && std::equal(kExif.begin(), kExif.end(), body.begin()))
      return body.subspan(kExif.size());
    rest = rest.subspan(2 + size_bytes);
  }
  return std::nullopt;
}

// Contents of the chunk eXIf. A PNG file is a chain of chunks, each with its length before its name and a checksum
// after it.
std::optional<Span> exif_of_png(Span png) {
  constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n", kChunk = "eXIf";
  constexpr size_t kHeadBytes = 8, kChecksumBytes = 4;
  const auto is = [](Span bytes, std::string_view text) {
    return bytes.size() >= text.size() && std::equal(text.begin(), text.end(), bytes.begin(),
                                                     [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
  };
  if (!is(png, kSignature)) return std::nullopt;
  for (Span rest = png.subspan(kSignature.size()); rest.size() >= kHeadBytes + kChecksumBytes;) {
    const size_t size_bytes = size_t{rest[0]} << 24 | size_t{rest[1]} << 16 | size_t{rest[2]} << 8 | rest[3];
    if (size_bytes > rest.size() - kHeadBytes - kChecksumBytes) return std::nullopt;
    if (is(rest.subspan(4), kChunk)) return rest.subspan(kHeadBytes, size_bytes);
    rest = rest.subspan(kHeadBytes + size_bytes + kChecksumBytes);
  }
  return std::nullopt;
}

}  // namespace

int exif_orientation(Span file) {
  const std::optional<Span> jpeg = exif_of_jpeg(file);
  const std::optional<Span> exif = jpeg ? jpeg : exif_of_png(file);
  return exif ? orientation_of(Tiff(*exif)) : 1;
}

// Each orientation mirrors the stored picture or its transpose, left to right or top to bottom.
Picture upright(const Picture& picture, int orientation) {
  if (orientation <= 1 || orientation > 8) return picture;
  const bool transposed = orientation >= 5;
  const bool mirror_x = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool mirror_y = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  Picture out = picture;
  if (transposed) std::swap(out.width_px, out.height_px);
  uint8_t* to = out.pixels.data();
  for (int y = 0; y < out.height_px; ++y) {
    for (int x = 0; x < out.width_px; ++x) {
      int from_x = mirror_x ? out.width_px - 1 - x : x, from_y = mirror_y ? out.height_px - 1 - y : y;
      if (transposed) std::swap(from_x, from_y);
      const size_t from = (static_cast<size_t>(from_y) * picture.width_px + from_x) * picture.channels;
      to = std::copy_n(picture.pixels.begin() + static_cast<std::ptrdiff_t>(from), picture.channels, to);
    }
  }
  return out;
}

}  // namespace skillet::tools
