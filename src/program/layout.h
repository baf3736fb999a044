// TensorLayout: how a tensor is stored in device memory, and the conversions to and from the host's NHWC.
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

// A tensor as images of pixels of channels. Rank 4: NHWC. Lower ranks: the last dimension is channels, the one before
// it columns, then rows. Higher ranks: the leading dimensions are images.
struct ImageShape {
  int64_t images = 1, height = 1, width = 1, channels = 1;
  int64_t elem_bytes = 1;

  // At most the size limit of a tensor after check().
  uint64_t bytes() const { return static_cast<uint64_t>(images * height * width * channels * elem_bytes); }
  bool operator==(const ImageShape&) const = default;
};
ImageShape image_shape(const ir::Tensor& tensor);
// The same bytes, in the same order, as images of two rows each, where a pixel is two pixels of a row. None: the number
// of rows or columns is odd.
std::optional<ImageShape> in_blocks(const ImageShape& shape);

// Element (n, y, x, c) starts at byte
//   n * image + y * row + x * px + (c / block) * block_stride + (c % block) * elem
// Examples: NHWC, planes, NC1HWC2 (blocks of 8 or 16 channels), NHCWB16, padded rows.
struct TensorLayout {
  int32_t block = 1;                                                // channels stored together, in elements
  uint64_t elem = 1, px = 0, row = 0, block_stride = 0, image = 0;  // bytes
  uint8_t xor_byte = 0;     // each byte of an element is XORed with this in both directions (0x80: int8 <-> uint8)
  uint8_t pad_byte = 0;     // value of bytes that belong to no element
  uint64_t size_bytes = 0;  // of the whole tensor, gaps included

  bool operator==(const TensorLayout&) const = default;
};

TensorLayout nhwc_layout(const ImageShape& shape, uint8_t xor_byte = 0);
// All of channel 0, then all of channel 1, ...
TensorLayout planar_layout(const ImageShape& shape, uint8_t xor_byte = 0);
// Blocks of `block` channels as separate images, the last one padded: NC1HWC2.
TensorLayout blocked_layout(const ImageShape& shape, int32_t block, uint8_t xor_byte = 0, uint8_t pad_byte = 0);
// For in_blocks(): a pixel of `px` bytes for each block of 2x2, which starts with the block's two rows.
TensorLayout blocks_layout(const ImageShape& shape, int32_t px, uint8_t xor_byte = 0, uint8_t pad_byte = 0);

// Error if elements overlap or exceed size_bytes, or if sizes are not the tensor's. A layout from a file is checked
// before use.
Result<void> check(const TensorLayout& layout, const ImageShape& shape);
// True if the bytes equal the host's.
bool same_as_host(const TensorLayout& layout, const ImageShape& shape);

// The conversions; layouts must have passed check(). `host` has shape.bytes() bytes, `device` layout.size_bytes.
// fill_padding() writes the bytes between elements once; store() leaves them unchanged, or writes the same value.
void fill_padding(const TensorLayout& layout, const ImageShape& shape, std::span<uint8_t> device);
void store(const TensorLayout& layout, const ImageShape& shape, std::span<const uint8_t> host,
           std::span<uint8_t> device);
void load(const TensorLayout& layout, const ImageShape& shape, std::span<const uint8_t> device,
          std::span<uint8_t> host);

// "block 16, strides px 16 row 320 block 6400 image 12800, xor 0x80": for text forms and errors.
std::string print(const TensorLayout& layout);

}  // namespace skillet::npu
