#include "capture/packed.h"

#include <zstd.h>

namespace skillet::capture {
namespace {

constexpr int kLevel = 3;  // zstd's default: weights hardly shrink more at a higher one

}  // namespace

Result<Bytes> pack(std::span<const uint8_t> bytes) {
  Bytes packed(ZSTD_compressBound(bytes.size()));
  const size_t size = ZSTD_compress(packed.data(), packed.size(), bytes.data(), bytes.size(), kLevel);
  if (ZSTD_isError(size) != 0) return error(ErrorCode::internal, "zstd: {}", ZSTD_getErrorName(size));
  packed.resize(size);
  return packed;
}

Result<Bytes> unpack(std::span<const uint8_t> packed, uint64_t size_bytes) {
  // The frame must agree before anything is allocated.
  if (ZSTD_getFrameContentSize(packed.data(), packed.size()) != size_bytes)
    return error(ErrorCode::malformed, "the zstd frame does not hold the {} bytes announced", size_bytes);
  Bytes bytes(size_bytes);
  const size_t got = ZSTD_decompress(bytes.data(), bytes.size(), packed.data(), packed.size());
  if (ZSTD_isError(got) != 0) return error(ErrorCode::malformed, "zstd: {}", ZSTD_getErrorName(got));
  if (got != size_bytes) return error(ErrorCode::malformed, "{} bytes instead of {}", got, size_bytes);
  return bytes;
}

}  // namespace skillet::capture
