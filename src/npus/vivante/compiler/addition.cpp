#include "npus/vivante/compiler/addition.h"

#include <algorithm>

#include "base/int_math.h"
#include "base/squares.h"

namespace skillet::npus::vivante {
namespace {

constexpr int64_t kMaxImageSize = 8191;  // 13-bit fields
constexpr int64_t kMaxChunks = 2048;     // the filter has twice the square of this many weights

Image image(int64_t width, int64_t height, int64_t channels) {
  return {static_cast<int32_t>(width), static_cast<int32_t>(height), static_cast<int32_t>(channels)};
}

// V7: the operands are the two channels of an image that is divided into rows as in the recorded driver.
std::optional<AdditionGeometry> planes_geometry(const Image& operand) {
  const int64_t elems = operand.bytes(), plane = operand.plane_bytes();
  int64_t rows = 0;
  for (const int64_t candidate : {128, 64, 32}) {
    if (rows == 0 && plane % candidate == 0) rows = candidate;
  }
  for (int64_t candidate = 63; rows == 0; --candidate) {
    if (plane % candidate == 0) rows = candidate;
  }
  // The recorded rule overflows the width field on large tensors; any other divisor computes the same.
  if (elems / rows > kMaxImageSize) {
    for (rows = ceil_div(elems, kMaxImageSize); rows <= kMaxImageSize && elems % rows != 0;) ++rows;
    if (rows > kMaxImageSize) return std::nullopt;
  }
  return AdditionGeometry{image(elems / rows, rows, 2), image(elems / rows, rows, 1), 2, 2};
}

// The fewest rows that fit the fields, each a chunk: with many channels filters have their number squared of weights.
std::optional<AdditionGeometry> fewest_chunks(int64_t elems) {
  for (int64_t chunks = ceil_div(elems, kMaxImageSize); chunks <= kMaxChunks; ++chunks) {
    if (elems % chunks != 0) continue;
    const int64_t size = elems / chunks;
    return AdditionGeometry{image(size, 1, 2 * chunks), image(size, 1, chunks), 1, 1, false};
  }
  return std::nullopt;
}

// V8: the operands are divided into equal chunks; chunk j of the first and of the second make output plane j. Chunks
// are rows or planes of the image, so a column of the filter reaches several of them.
std::optional<AdditionGeometry> chunks_geometry(const Image& operand) {
  const int64_t w = operand.width, h = operand.height, c = operand.channels;
  if (h % 2 == 0 && w * c <= kMaxImageSize && h <= kMaxChunks)
    return AdditionGeometry{image(w * c, 4, h / 2), image(w * c, 1, h), 1, 4};
  if (c % 3 == 0 && w * h <= kMaxImageSize && c <= kMaxChunks)
    return AdditionGeometry{image(w * h, 3, 2 * c / 3), image(w * h, 1, c), 1, 3};
  if (std::max(w, h) <= kMaxImageSize && c <= kMaxChunks)
    return AdditionGeometry{image(w, h, 2 * c), image(w, h, c), 1, 1};
  return fewest_chunks(operand.bytes());
}

// V8: the fewest chunks that are square images, a plane each. A filter of 1x1 makes its tiles as wide as those of
// convolutions.
std::optional<AdditionGeometry> square_chunks(int64_t elems) {
  constexpr int64_t kSquaresMax = 64;  // more have large filters
  const auto chunks = square_parts(elems, kSquaresMax, kMaxImageSize);
  if (!chunks) return std::nullopt;
  const int64_t side = *square_root(elems / *chunks);
  return AdditionGeometry{image(side, side, 2 * *chunks), image(side, side, *chunks), 1, 1};
}

Kernels planes_kernels(const AdditionWeights& w) {
  const auto first = static_cast<uint8_t>(w.first), second = static_cast<uint8_t>(w.second);
  auto weights = std::make_shared<const Bytes>(Bytes{first, 0, 0, 0, second, 0, 0, 0});
  return {.weights = *weights, .lowered = weights, .biases = {w.bias}};
}

Kernels chunks_kernels(const AdditionWeights& w, int64_t chunks, int32_t pixel_center) {
  auto weights = std::make_shared<Bytes>(static_cast<size_t>(chunks * 2 * chunks), w.zero_point);
  for (int64_t j = 0; j < chunks; ++j) {
    uint8_t* const kernel = weights->data() + j * 2 * chunks;
    kernel[j] = static_cast<uint8_t>(w.zero_point + w.first);
    kernel[j + chunks] = static_cast<uint8_t>(w.zero_point + w.second);
  }
  const int32_t bias = w.bias + pixel_center * (w.first + w.second);
  return {.zero_point = w.zero_point,
          .weights = *weights,
          .lowered = weights,
          .biases = std::vector<int32_t>(static_cast<size_t>(chunks), bias)};
}

}  // namespace

std::optional<AdditionGeometry> addition_geometry(const hw::ChipRow& chip, const Image& operand) {
  return hw::generation_of(chip).chunked_additions ? chunks_geometry(operand) : planes_geometry(operand);
}

NnOperation addition_job(const hw::ChipRow& chip, const Image& operand, const AdditionWeights& weights, bool square) {
  const hw::Generation& generation = hw::generation_of(chip);
  const auto squares = square && generation.chunked_additions ? square_chunks(operand.bytes()) : std::nullopt;
  const AdditionGeometry geometry = squares ? *squares : *addition_geometry(chip, operand);
  NnOperation nn{.in = geometry.in, .out = geometry.out, .sram_caches = chip.has(hw::kSramCaches)};
  nn.search_zero_runs = false;
  // Tiles as recorded: from the transposed image. The division of the buffer into rows is arbitrary anyway.
  nn.tile_basis_width = geometry.out.height;
  nn.tile_basis_height = geometry.out.width;
  nn.scale = weights.scale;
  nn.kernels = generation.chunked_additions ? chunks_kernels(weights, geometry.out.channels, generation.pixel_center)
                                            : planes_kernels(weights);
  nn.kernels.output_channels = geometry.out.channels;
  nn.kernels.input_channels = nn.kernels.band = geometry.in.channels;
  nn.kernels.width = geometry.kernel_width;
  nn.kernels.height = geometry.kernel_height;
  return nn;
}

}  // namespace skillet::npus::vivante
