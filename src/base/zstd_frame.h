// Compresses and decompresses one zstd frame, as used in our compressed files.
// Called by program files and capture files.
// Must not know: what the bytes are.
#pragma once

#include <span>

#include "base/bytes.h"
#include "base/result.h"

namespace skillet {

// Uses zstd's default level: higher ones hardly shrink weights further.
Result<Bytes> pack_zstd(std::span<const uint8_t> bytes);
// Error if the frame does not contain exactly `size_bytes`, which the caller has limited.
Result<Bytes> unpack_zstd(std::span<const uint8_t> frame, uint64_t size_bytes);

}  // namespace skillet
