// TensorLayout: how a tensor is stored in device memory, and the conversions between that and the host's NHWC.
// Called by drivers (describe), runtime (convert), tools.
// Must not know: which layouts a vendor uses; devices.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "graph/ir/graph.h"

namespace skillet::npu {

// A tensor as images of pixels of channels. Rank 4: NHWC; fewer dimensions: the last is channels, before it columns,
// before that rows; more: the leading ones are images.
struct ImageShape {
  int64_t images = 1, height = 1, width = 1, channels = 1;
  int64_t elem_bytes = 1;

  // No larger than a tensor can be, once check() has seen it.
  uint64_t bytes() const { return static_cast<uint64_t>(images * height * width * channels * elem_bytes); }
  bool operator==(const ImageShape&) const = default;
};
ImageShape image_shape(const ir::Tensor& tensor);
// The same bytes, in the same order, as images of two rows each whose pixels are two of a row. Nothing: rows or columns
// are odd.
std::optional<ImageShape> in_blocks(const ImageShape& shape);

// Element (n, y, x, c) starts at byte
//   n * image + y * row + x * px + (c / block) * block_stride + (c % block) * elem
// Values of this are NHWC, planes, NC1HWC2 (blocks of 8 or 16 channels), NHCWB16, padded rows.
struct TensorLayout {
  int32_t block = 1;                                                // channels that are together, elements
  uint64_t elem = 1, px = 0, row = 0, block_stride = 0, image = 0;  // bytes
  uint8_t xor_byte = 0;     // each byte of an element is XORed with this on the way in and out (0x80: int8 <-> uint8)
  uint8_t pad_byte = 0;     // what bytes hold that belong to no element
  uint64_t size_bytes = 0;  // of the whole tensor, gaps included

  bool operator==(const TensorLayout&) const = default;
};

TensorLayout nhwc_layout(const ImageShape& shape, uint8_t xor_byte = 0);
// All of channel 0, then all of channel 1, ...
TensorLayout planar_layout(const ImageShape& shape, uint8_t xor_byte = 0);
// Blocks of `block` channels as images of their own, the last one padded: NC1HWC2.
TensorLayout blocked_layout(const ImageShape& shape, int32_t block, uint8_t xor_byte = 0, uint8_t pad_byte = 0);
// Of in_blocks(): a pixel of `px` bytes for each block of 2x2, its two rows one behind the other at its beginning.
TensorLayout blocks_layout(const ImageShape& shape, int32_t px, uint8_t xor_byte = 0, uint8_t pad_byte = 0);

// Error when elements overlap, leave size_bytes, or sizes are not the tensor's. A layout of a file is checked before
// use.
Result<void> check(const TensorLayout& layout, const ImageShape& shape);
// True when the bytes are the host's as they are.
bool same_as_host(const TensorLayout& layout, const ImageShape& shape);

// The conversions; layouts have passed check(). `host` has shape.bytes() bytes, `device` layout.size_bytes.
// fill_padding() writes the bytes between elements once; store() leaves them alone, or
// writes the same once more.
void fill_padding(const TensorLayout& layout, const ImageShape& shape, std::span<uint8_t> device);
void store(const TensorLayout& layout, const ImageShape& shape, std::span<const uint8_t> host,
           std::span<uint8_t> device);
void load(const TensorLayout& layout, const ImageShape& shape, std::span<const uint8_t> device,
          std::span<uint8_t> host);

// "block 16, strides px 16 row 320 block 6400 image 12800, xor 0x80": for text forms and errors.
std::string print(const TensorLayout& layout);

}  // namespace skillet::npu
