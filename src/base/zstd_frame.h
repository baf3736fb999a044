// One zstd frame, packed and unpacked: what our compressed files are made of.
// Called by program files and capture files.
// Must not know: what the bytes are.
#pragma once

#include <span>

#include "base/bytes.h"
#include "base/result.h"

namespace skillet {

// At zstd's default level: weights hardly shrink more at a higher one.
Result<Bytes> pack_zstd(std::span<const uint8_t> bytes);
// Error when the frame does not hold exactly `size_bytes`, which the caller has limited.
Result<Bytes> unpack_zstd(std::span<const uint8_t> frame, uint64_t size_bytes);

}  // namespace skillet
