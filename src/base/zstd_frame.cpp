#include "base/zstd_frame.h"

#include <zstd.h>

namespace skillet {

Result<Bytes> pack_zstd(std::span<const uint8_t> bytes) {
  constexpr int kLevel = 3;
  Bytes packed(ZSTD_compressBound(bytes.size()));
  const size_t size = ZSTD_compress(packed.data(), packed.size(), bytes.data(), bytes.size(), kLevel);
  if (ZSTD_isError(size) != 0) return error(ErrorCode::internal, "zstd: {}", ZSTD_getErrorName(size));
  packed.resize(size);
  return packed;
}

Result<Bytes> unpack_zstd(std::span<const uint8_t> frame, uint64_t size_bytes) {
  // Checks the stated size before anything is allocated.
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != size_bytes)
    return error(ErrorCode::malformed, "the zstd frame does not contain the {} announced bytes", size_bytes);
  Bytes bytes(size_bytes);
  const size_t got = ZSTD_decompress(bytes.data(), bytes.size(), frame.data(), frame.size());
  if (ZSTD_isError(got) != 0) return error(ErrorCode::malformed, "zstd: {}", ZSTD_getErrorName(got));
  if (got != bytes.size()) return error(ErrorCode::malformed, "{} bytes instead of {}", got, bytes.size());
  return bytes;
}

}  // namespace skillet
