// Corrects the length and the checksum in the bytes of a program file that were changed: otherwise nothing after them
// would be read. Called by program_fuzz.cpp and tests/answers. Must not know: the contents after the header.
#pragma once

#include <xxhash.h>

#include <algorithm>
#include <string_view>

#include "base/bytes.h"

namespace skillet::npu::testing {

constexpr size_t kHeaderBytes = 64, kTableAt = 16, kStoredAt = 24, kChecksumAt = 32, kReservedAt = 40;

// `bytes` has a header.
inline Bytes repaired(Bytes bytes) {
  constexpr std::string_view kStart = {"SKILPRG\n\3\0\0\0", 12};
  std::ranges::copy(kStart, bytes.begin());
  std::fill(bytes.begin() + kReservedAt, bytes.begin() + kHeaderBytes, uint8_t{0});
  const size_t stored = bytes.size() - kHeaderBytes;
  const bool is_packed = bytes[kStart.size()] != 0;
  if (!is_packed) skillet::store_le<uint64_t>(&bytes[kTableAt], stored);
  skillet::store_le<uint64_t>(&bytes[kStoredAt], stored);
  const uint64_t seed = XXH3_64bits(bytes.data(), kChecksumAt);
  const uint64_t checksum = XXH3_64bits_withSeed(bytes.data() + kHeaderBytes, stored, seed);
  skillet::store_le<uint64_t>(&bytes[kChecksumAt], checksum);
  return bytes;
}

}  // namespace skillet::npu::testing
