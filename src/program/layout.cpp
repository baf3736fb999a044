#include "program/layout.h"

#include <algorithm>
#include <array>

#include "base/int_math.h"
#include "simd/byte_matrix.h"

namespace skillet::npu {
namespace {

constexpr int64_t kMaxTensorBytes = int64_t{1} << 40;

uint64_t u(int64_t value) { return static_cast<uint64_t>(value); }

struct Dimension {
  uint64_t count = 1, stride = 0;
};

// The dimensions of an element's position: images, rows, columns, blocks, channels of a block.
std::array<Dimension, 5> dimensions(const TensorLayout& l, const ImageShape& s) {
  const int64_t block = std::max(l.block, 1);
  return {{{u(s.images), l.image},
           {u(s.height), l.row},
           {u(s.width), l.px},
           {u(ceil_div(s.channels, block)), l.block_stride},
           {u(std::min<int64_t>(block, s.channels)), l.elem}}};
}

// A block size of 1 equals one block of all channels, whose elements are block_stride apart.
TensorLayout joined(TensorLayout layout, const ImageShape& shape) {
  if (layout.block != 1) return layout;
  layout.block = static_cast<int32_t>(std::max<int64_t>(shape.channels, 1));
  layout.elem = layout.block_stride;
  return layout;
}

constexpr int32_t kWidened = 16;

// Converts between host and device rows; `to_device`: from host to device.
class Mover {
 public:
  Mover(const TensorLayout& layout, const ImageShape& shape, const uint8_t* from, uint8_t* to, bool to_device)
      : l_(joined(layout, shape)),
        s_(shape),
        from_(from),
        to_(to),
        to_device_(to_device),
        widens_(to_device && shape.elem_bytes == 1 && layout.block == kWidened &&
                layout == blocked_layout(shape, kWidened, layout.xor_byte, layout.pad_byte)),
        joins_(to_device && shape.elem_bytes == 1 && shape.height == 2 && 2 * shape.channels <= kWidened &&
               layout == blocks_layout(shape, kWidened, layout.xor_byte, layout.pad_byte)) {}

  void run() const {
    if (joins_) return join();
    const int64_t whole = l_.elem == u(s_.elem_bytes) ? s_.channels / l_.block : 0;  // number of blocks copied together
    for (int64_t n = 0; n < s_.images; ++n) {
      if (whole != 0) blocks(n, 0, l_.block, whole);
      for (int64_t first = whole * l_.block; first < s_.channels; first += l_.block)
        blocks(n, first, std::min<int64_t>(l_.block, s_.channels - first), 1);
    }
  }

 private:
  // Joins pixels of two rows into one, for the whole image.
  void join() const {
    const uint64_t cols = u(s_.channels), row = cols * u(s_.width);
    for (uint64_t n = 0; n < u(s_.images); ++n)
      join_bytes(from_ + n * 2 * row, to_ + n * l_.image, {u(s_.width), cols, cols, l_.px, l_.xor_byte}, row,
                 l_.pad_byte);
  }

  // Converts `count` blocks of channels of one image. Contiguous rows are treated as one long row.
  void blocks(int64_t image, int64_t first, int64_t channels, int64_t count) const {
    const uint64_t host = u(image * s_.height * s_.width * s_.channels + first) * u(s_.elem_bytes);
    const uint64_t device = u(image) * l_.image + u(first / l_.block) * l_.block_stride;
    const uint64_t host_px = u(s_.channels * s_.elem_bytes), host_row = host_px * u(s_.width);
    const bool one_row = l_.row == l_.px * u(s_.width);
    const int64_t rows = one_row ? 1 : s_.height, pixels = one_row ? s_.height * s_.width : s_.width;
    for (int64_t y = 0; y < rows; ++y)
      row(host + u(y) * host_row, device + u(y) * l_.row, u(pixels), u(channels), u(count));
  }

  void row(uint64_t host, uint64_t device, uint64_t pixels, uint64_t channels, uint64_t blocks) const {
    const uint64_t elem = u(s_.elem_bytes);
    if (l_.elem == elem || channels == 1) return copy(host, device, pixels, channels * elem, blocks);
    if (elem == 1 && l_.px == 1) return transpose(host, device, pixels, channels);
    for (uint64_t c = 0; c < channels; ++c) copy(host + c * elem, device + c * l_.elem, pixels, elem, 1);
  }

  // Copies `cols` bytes of each pixel of `blocks` blocks.
  void copy(uint64_t host, uint64_t device, uint64_t pixels, uint64_t cols, uint64_t blocks) const {
    const uint64_t host_px = u(s_.channels * s_.elem_bytes);
    if (widens_ && cols < kWidened)
      widen_bytes(from_ + host, to_ + device, {pixels, cols, host_px, l_.px, l_.xor_byte}, l_.pad_byte);
    else if (to_device_)
      copy_bytes(from_ + host, to_ + device, {pixels, cols, host_px, l_.px, l_.xor_byte},
                 {blocks, cols, l_.block_stride});
    else
      copy_bytes(from_ + device, to_ + host, {pixels, cols, l_.px, host_px, l_.xor_byte},
                 {blocks, l_.block_stride, cols});
  }

  // Transposes pixels x channels on the host and channels x pixels on the device.
  void transpose(uint64_t host, uint64_t device, uint64_t pixels, uint64_t channels) const {
    const uint64_t host_px = u(s_.channels * s_.elem_bytes);
    if (to_device_)
      transpose_bytes(from_ + host, to_ + device, {pixels, channels, host_px, l_.elem, l_.xor_byte});
    else
      transpose_bytes(from_ + device, to_ + host, {channels, pixels, l_.elem, host_px, l_.xor_byte});
  }

  const TensorLayout l_;
  const ImageShape& s_;
  const uint8_t* from_;
  uint8_t* to_;
  bool to_device_;
  bool widens_;  // short blocks are copied with their padding: faster than skipping it
  bool joins_;   // the same for blocks of 2x2
};

}  // namespace

ImageShape image_shape(const ir::Tensor& tensor) {
  const ir::Shape& shape = tensor.shape;
  ImageShape image{.height = shape.back(2), .width = shape.back(1), .channels = shape.back(0)};
  image.elem_bytes = ir::dtype_bytes(tensor.dtype);
  const int64_t per_image = image.height * image.width * image.channels;
  image.images = per_image == 0 ? 0 : shape.elems() / per_image;
  return image;
}

std::optional<ImageShape> in_blocks(const ImageShape& s) {
  if (s.height % 2 != 0 || s.width % 2 != 0) return std::nullopt;
  return ImageShape{s.images * s.height / 2, 2, s.width / 2, s.channels * 2, s.elem_bytes};
}

TensorLayout nhwc_layout(const ImageShape& s, uint8_t xor_byte) {
  TensorLayout l{.block = static_cast<int32_t>(std::max<int64_t>(s.channels, 1)), .elem = u(s.elem_bytes)};
  l.px = l.elem * u(s.channels);
  l.row = l.px * u(s.width);
  l.image = l.row * u(s.height);
  l.block_stride = l.px;
  l.xor_byte = xor_byte;
  l.size_bytes = s.bytes();
  return l;
}

TensorLayout planar_layout(const ImageShape& s, uint8_t xor_byte) { return blocked_layout(s, 1, xor_byte); }

TensorLayout blocked_layout(const ImageShape& s, int32_t block, uint8_t xor_byte, uint8_t pad_byte) {
  TensorLayout l{.block = block, .elem = u(s.elem_bytes)};
  l.px = l.elem * u(block);
  l.row = l.px * u(s.width);
  l.block_stride = l.row * u(s.height);
  l.image = l.block_stride * u(ceil_div(s.channels, int64_t{block}));
  l.xor_byte = xor_byte;
  l.pad_byte = pad_byte;
  l.size_bytes = l.image * u(s.images);
  return l;
}

TensorLayout blocks_layout(const ImageShape& s, int32_t px, uint8_t xor_byte, uint8_t pad_byte) {
  TensorLayout l{.block = static_cast<int32_t>(std::max<int64_t>(s.channels, 1)), .elem = u(s.elem_bytes)};
  l.px = u(px);
  l.row = l.elem * u(s.channels);
  l.block_stride = l.row;
  l.image = l.px * u(s.width);
  l.xor_byte = xor_byte;
  l.pad_byte = pad_byte;
  l.size_bytes = l.image * u(s.images);
  return l;
}

namespace {

bool has_sound_size(const ImageShape& s) {
  int64_t bytes = 1;
  for (const int64_t one : {s.images, s.height, s.width, s.channels, s.elem_bytes}) {
    if (one < 0 || __builtin_mul_overflow(bytes, one, &bytes)) return false;
  }
  return s.elem_bytes >= 1 && bytes <= kMaxTensorBytes;
}

}  // namespace

// Elements do not overlap if, from the smallest stride up, each stride exceeds the extent of all smaller dimensions.
Result<void> check(const TensorLayout& l, const ImageShape& s) {
  const auto bad = [&](std::string_view what) {
    return error(ErrorCode::malformed, "layout ({}): {}", print(l), what);
  };
  if (!has_sound_size(s)) return bad("a tensor with an invalid size");
  if (l.block < 1) return bad("no channels in a block");
  if (s.bytes() == 0) return {};
  auto dims = dimensions(l, s);
  std::ranges::sort(dims, {}, &Dimension::stride);
  uint64_t reach = u(s.elem_bytes);
  for (const Dimension& d : dims) {
    if (d.count == 1) continue;
    if (d.stride < reach) return bad("elements overlap");
    uint64_t span = 0;
    if (__builtin_mul_overflow(d.stride, d.count - 1, &span) || __builtin_add_overflow(reach, span, &reach))
      return bad("larger than any address space");
  }
  if (reach > l.size_bytes) return bad(fmt::format("elements reach to byte {} of {}", reach, l.size_bytes));
  return {};
}

// Strides of dimensions of size 1 do not matter.
bool same_as_host(const TensorLayout& layout, const ImageShape& shape) {
  if (layout.xor_byte != 0 || layout.size_bytes != shape.bytes()) return false;
  const auto mine = dimensions(layout, shape);
  TensorLayout host = nhwc_layout(shape);
  host.block = layout.block;
  host.block_stride = host.elem * u(layout.block);
  const auto wanted = dimensions(host, shape);
  return std::ranges::equal(
      mine, wanted, [](const Dimension& a, const Dimension& b) { return a.count == 1 || a.stride == b.stride; });
}

void fill_padding(const TensorLayout& layout, const ImageShape& shape, std::span<uint8_t> device) {
  if (layout.size_bytes != shape.bytes()) std::ranges::fill(device.first(layout.size_bytes), layout.pad_byte);
}

void store(const TensorLayout& layout, const ImageShape& shape, std::span<const uint8_t> host,
           std::span<uint8_t> device) {
  Mover(layout, shape, host.data(), device.data(), true).run();
}

void load(const TensorLayout& layout, const ImageShape& shape, std::span<const uint8_t> device,
          std::span<uint8_t> host) {
  Mover(layout, shape, device.data(), host.data(), false).run();
}

std::string print(const TensorLayout& l) {
  std::string text = fmt::format("block {}, strides elem {} px {} row {} block {} image {}, {} bytes", l.block, l.elem,
                                 l.px, l.row, l.block_stride, l.image, l.size_bytes);
  if (l.xor_byte != 0) text += fmt::format(", xor {:#04x}", l.xor_byte);
  if (l.pad_byte != 0) text += fmt::format(", pad {:#04x}", l.pad_byte);
  return text;
}

}  // namespace skillet::npu
