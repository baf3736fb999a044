#include "tools/tensors/picture.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>

#define STBI_NO_STDIO
#include <stb/stb_image.h>

#include "base/bytes.h"
#include "base/magic.h"
#include "tools/tensors/exif.h"
#include "tools/tensors/jpeg_scan.h"
#include "tools/tensors/zip_file.h"

namespace skillet::tools {

namespace fs = std::filesystem;

std::string ending_of(const std::string& path) {
  std::string out = fs::path(path).extension().string();
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

Result<std::vector<std::string>> files_in(const std::string& folder, std::initializer_list<std::string_view> endings,
                                          std::string_view kinds) {
  std::vector<std::string> out;
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure); !failure && at != fs::directory_iterator(); at.increment(failure)) {
    const std::string path = at->path().string();
    if (std::ranges::find(endings, ending_of(path)) != endings.end()) out.push_back(path);
  }
  if (failure) return error(ErrorCode::io, "{}: {}", folder, failure.message());
  if (out.empty()) return error(ErrorCode::invalid_argument, "{}: it contains no {}", folder, kinds);
  std::ranges::sort(out);
  return out;
}

namespace {

// Position of output pixel `i` of `out_count` between two input pixels, with the weight of the second.
struct Sample {
  int first, second;
  double weight_second;
};

std::vector<Sample> samples(int in_count, int out_count) {
  std::vector<Sample> out;
  for (int i = 0; i < out_count; ++i) {
    const double at = std::max(0.0, (i + 0.5) * in_count / out_count - 0.5);
    const int first = std::min(static_cast<int>(at), in_count - 1);
    out.push_back({first, std::min(first + 1, in_count - 1), at - first});
  }
  return out;
}

uint8_t pixel_at(const Picture& picture, int x, int y, int channel) {
  return picture.pixels[(static_cast<size_t>(y) * picture.width_px + x) * picture.channels + channel];
}

// stb reads a truncated BMP as if the rest were black.
bool is_cut_bmp(std::span<const uint8_t> file) {
  constexpr size_t kHeaderBytes = 54;
  if (file.size() < kHeaderBytes || file[0] != 'B' || file[1] != 'M') return false;
  const auto word = [&](size_t at) { return load_le<uint32_t>(file.data() + at); };
  const uint32_t bits = load_le<uint16_t>(file.data() + 28), compression = word(30);
  if (compression != 0 && compression != 3) return false;
  const uint64_t row_bytes = (uint64_t{word(18)} * bits + 31) / 32 * 4;
  const uint64_t rows = static_cast<uint64_t>(std::abs(int64_t{static_cast<int32_t>(word(22))}));
  return word(10) + row_bytes * rows > file.size();
}

// stb ignores damage in a PNG, so check its chunks: length, type, data, checksum.
bool is_damaged_png(std::span<const uint8_t> file) {
  constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n";
  constexpr size_t kFrameBytes = 12;
  if (!std::ranges::equal(file.first(std::min(file.size(), kSignature.size())), kSignature,
                          [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); }))
    return false;
  const auto word = [&](size_t at) { return __builtin_bswap32(load_le<uint32_t>(file.data() + at)); };
  for (size_t at = kSignature.size(); at < file.size();) {
    if (file.size() - at < kFrameBytes || file.size() - at - kFrameBytes < word(at)) return true;
    const size_t covered = size_t{word(at)} + 4;
    if (crc32(file.subspan(at + 4, covered)) != word(at + 4 + covered)) return true;
    if (load_le<uint32_t>(file.data() + at + 4) == 0x444E4549) return false;  // "IEND"
    at += covered + 8;
  }
  return true;
}

// Other common picture formats, by their first bytes.
std::string_view other_format(std::span<const uint8_t> file) {
  static constexpr Magic kRows[] = {
      {8, "WEBP", "WebP"},        {0, "GIF8", "GIF"},      {0, {"II*\0", 4}, "TIFF"},  {0, {"MM\0*", 4}, "TIFF"},
      {4, "ftypavif", "AVIF"},    {4, "ftypavis", "AVIF"}, {4, "ftyphei", "HEIF"},     {4, "ftyphev", "HEIF"},
      {4, "ftypmif1", "HEIF"},    {4, "ftypmsf1", "HEIF"}, {0, "\xFF\x0A", "JPEG XL"}, {4, "JXL ", "JPEG XL"},
      {4, "jP  ", "JPEG 2000"},   {0, "P5", "PGM"},        {0, "P6", "PPM"},           {0, "<svg", "SVG"},
      {0, "<?xml", "SVG or XML"}, {0, "%PDF", "PDF"},      {0, "8BPS", "PSD"},         {0, "#?RADIANCE", "HDR"}};
  return name_of_magic(file, kRows);
}

}  // namespace

Result<Picture> load_picture(const std::string& path, int channels) {
  SK_TRY_ASSIGN(Bytes file, read_file(path));
  Picture out;
  int file_channels = 0;
  const auto file_bytes = [&] { return static_cast<int>(std::min<size_t>(file.size(), INT32_MAX)); };
  // Checked before decoding: a small file may hold a large picture of one colour.
  const JpegState jpeg = jpeg_state(file, kMaxPicturePixels);
  if (jpeg == JpegState::damaged) return error(ErrorCode::malformed, "{}: the picture is damaged or cut off", path);
  const bool has_size =
      stbi_info_from_memory(file.data(), file_bytes(), &out.width_px, &out.height_px, &file_channels) != 0;
  // A BMP with the top row first has a negative height.
  if (const int64_t area = int64_t{out.width_px} * out.height_px; has_size && std::abs(area) > kMaxPicturePixels)
    return error(ErrorCode::unsupported, "{}: a picture of {} x {}; at most {} pixels are read", path, out.width_px,
                 out.height_px, kMaxPicturePixels);
  if (is_damaged_png(file)) return error(ErrorCode::malformed, "{}: the picture is damaged or cut off", path);
  if (is_cut_bmp(file)) return error(ErrorCode::malformed, "{}: the picture is cut off", path);
  if (jpeg == JpegState::endless) file.insert(file.end(), {0xFF, 0xD9});
  const std::unique_ptr<stbi_uc, void (*)(void*)> pixels(
      stbi_load_from_memory(file.data(), file_bytes(), &out.width_px, &out.height_px, &file_channels, channels),
      stbi_image_free);
  if (const std::string_view other = other_format(file); !pixels && !other.empty())
    return error(ErrorCode::unsupported, "{}: this is {}; convert it to PNG, JPEG or BMP", path, other);
  if (!pixels)
    return error(ErrorCode::malformed, "{}: not a BMP, PNG or JPEG picture that we can read ({})", path,
                 stbi_failure_reason());
  if (out.width_px < 1 || out.height_px < 1)
    return error(ErrorCode::malformed, "{}: a picture of {} x {} pixels", path, out.width_px, out.height_px);
  out.channels = channels;
  const size_t size = static_cast<size_t>(out.width_px) * out.height_px * channels;
  out.pixels.assign(pixels.get(), pixels.get() + size);
  return upright(out, exif_orientation(file));
}

Picture resize(const Picture& picture, int width_px, int height_px) {
  if (picture.width_px == width_px && picture.height_px == height_px) return picture;
  const std::vector<Sample> columns = samples(picture.width_px, width_px), rows = samples(picture.height_px, height_px);
  Picture out{.width_px = width_px, .height_px = height_px, .channels = picture.channels};
  out.pixels.reserve(static_cast<size_t>(width_px) * height_px * picture.channels);
  for (const Sample& row : rows) {
    for (const Sample& column : columns) {
      for (int c = 0; c < picture.channels; ++c) {
        const auto line = [&](int y) {
          const double a = pixel_at(picture, column.first, y, c), b = pixel_at(picture, column.second, y, c);
          return a * (1 - column.weight_second) + b * column.weight_second;
        };
        const double top = line(row.first), bottom = line(row.second);
        out.pixels.push_back(
            static_cast<uint8_t>(std::nearbyint(top * (1 - row.weight_second) + bottom * row.weight_second)));
      }
    }
  }
  return out;
}

Picture fit(const Picture& picture, int smallest_px, int largest_px) {
  const int longest = std::max(picture.width_px, picture.height_px);
  if (longest <= 0) return picture;
  const double ratio = static_cast<double>(largest_px) / longest;
  const int times = std::max(1, smallest_px / longest);
  const auto side = [&](int px) {
    return longest > largest_px ? std::max(1, static_cast<int>(std::nearbyint(px * ratio))) : px * times;
  };
  return resize(picture, side(picture.width_px), side(picture.height_px));
}

Picture with_channels(const Picture& picture, int channels) {
  if (picture.channels == channels) return picture;
  Picture out{.width_px = picture.width_px, .height_px = picture.height_px, .channels = channels, .pixels = {}};
  const size_t count = static_cast<size_t>(out.width_px) * out.height_px;
  out.pixels.reserve(count * channels);
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* pixel = picture.pixels.data() + i * picture.channels;
    if (channels == 3)
      out.pixels.insert(out.pixels.end(), 3, pixel[0]);
    else  // the weights of stb's grey conversion
      out.pixels.push_back(static_cast<uint8_t>((pixel[0] * 77 + pixel[1] * 150 + pixel[2] * 29) >> 8));
  }
  return out;
}

namespace {

bool are_channels(int32_t count) { return count == 1 || count == 3; }

// Converts interleaved channels to planes.
Bytes with_channels_second(const Bytes& from, size_t channels) {
  Bytes to(from.size());
  const size_t pixels = from.size() / channels;
  for (size_t pixel = 0; pixel < pixels; ++pixel) {
    for (size_t c = 0; c < channels; ++c) to[c * pixels + pixel] = from[pixel * channels + c];
  }
  return to;
}

}  // namespace

ImageShape image_shape(const ir::Shape& shape) {
  if (shape.rank() != 4) return {};
  if (!are_channels(shape[3]) && are_channels(shape[1])) return {shape[2], shape[3], shape[1], true};
  return {shape[1], shape[2], shape[3], false};
}

Result<void> check_image_input(const ir::Tensor& input) {
  const ir::Shape& shape = input.shape;
  const ImageShape image = image_shape(shape);
  const bool fits =
      shape.rank() == 4 && shape[0] == 1 && image.height > 0 && image.width > 0 && are_channels(image.channels);
  if (!fits)
    return error(ErrorCode::invalid_argument,
                 "the input '{}' has shape {}; a picture needs 1 x height x width x (1 or 3), or channels second",
                 input.name, shape.to_string());
  if (input.dtype != ir::DType::uint8 && input.dtype != ir::DType::int8 && input.dtype != ir::DType::float32)
    return error(ErrorCode::invalid_argument,
                 "the input '{}' has type {}; pictures fill uint8, int8 and float32 inputs", input.name,
                 ir::dtype_name(input.dtype));
  return {};
}

Result<Bytes> to_tensor(const Picture& picture, const ir::Tensor& input, std::string_view float_pixels) {
  SK_TRY(check_image_input(input));
  const ImageShape image = image_shape(input.shape);
  if (picture.channels != image.channels)
    return error(ErrorCode::internal, "picture with {} channels for {}", picture.channels, input.shape.to_string());
  Bytes pixels = resize(picture, image.width, image.height).pixels;
  if (image.channels_second) pixels = with_channels_second(pixels, static_cast<size_t>(image.channels));
  if (input.dtype == ir::DType::uint8) return pixels;
  if (input.dtype == ir::DType::int8) {
    for (uint8_t& pixel : pixels) pixel ^= 0x80;  // pixel - 128
    return pixels;
  }
  const float middle = float_pixels == "-1..1" ? 127.5F : 0,
              unit = float_pixels == "0..1" ? 255 : std::max(middle, 1.0F);
  Bytes out(pixels.size() * sizeof(float));
  for (size_t i = 0; i < pixels.size(); ++i)
    store_le(out.data() + i * sizeof(float), (static_cast<float>(pixels[i]) - middle) / unit);
  return out;
}

std::string describe_mapping(const ir::Tensor& input, std::string_view float_pixels) {
  const std::string values = input.dtype == ir::DType::uint8  ? "pixel bytes as they are"
                             : input.dtype == ir::DType::int8 ? "pixel - 128"
                                                              : fmt::format("{} (--float-pixels)", float_pixels);
  const ImageShape image = image_shape(input.shape);
  return fmt::format("resized to {}x{} {} (bilinear), values: {}", image.width, image.height,
                     image.channels == 1 ? "grey" : "RGB", values);
}

std::vector<std::string> draw(const Picture& picture, int max_columns) {
  constexpr std::string_view kRamp = " .:-=+*#%@";
  const int columns = std::min(picture.width_px, max_columns);
  const Picture small =
      resize(picture, columns, std::max(1, picture.height_px * columns / std::max(1, picture.width_px)));
  std::vector<std::string> out;
  for (int y = 0; y < small.height_px; y += 2) {
    std::string& line = out.emplace_back();
    for (int x = 0; x < small.width_px; ++x) {
      int sum = 0;
      for (int c = 0; c < small.channels; ++c)
        sum += pixel_at(small, x, y, c) + pixel_at(small, x, std::min(y + 1, small.height_px - 1), c);
      line += kRamp[static_cast<size_t>(sum) * kRamp.size() / (small.channels * 2 * 256)];
    }
  }
  return out;
}

}  // namespace skillet::tools
