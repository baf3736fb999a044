// Corrects the length and the checksum in the bytes of a compiled model that were changed. Called by
// compiled_model_test.cpp and compiled_model_fuzz.cpp. Must not know: the contents after the header.
#pragma once

#include <xxhash.h>

#include "base/bytes.h"

namespace skillet::runtime {

constexpr size_t kHeaderBytes = 96, kStoredAt = 40, kChecksumAt = 48;

// `bytes` has a header.
inline Bytes repaired(Bytes bytes) {
  const size_t stored = bytes.size() - kHeaderBytes;
  store_le<uint64_t>(&bytes[kStoredAt], stored);
  store_le<uint64_t>(&bytes[kChecksumAt], 0);
  const uint64_t seed = XXH3_64bits(bytes.data(), kHeaderBytes);
  store_le<uint64_t>(&bytes[kChecksumAt], XXH3_64bits_withSeed(bytes.data() + kHeaderBytes, stored, seed));
  return bytes;
}

}  // namespace skillet::runtime
