// Reproducible pseudo-random bytes, from a linear congruential generator.
// Called by tests that need arbitrary inputs.
// Must not know: what the bytes are for.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace skillet::testing {

// `size` bytes; advances the state, so that the next call returns others.
inline Bytes noise(size_t size, uint32_t& state) {
  Bytes bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}
// `size` bytes, the same at each call.
inline Bytes noise(size_t size) {
  uint32_t state = 1;
  return noise(size, state);
}

}  // namespace skillet::testing
