// Bytes that look like any, and are always the same: of a linear congruential generator.
// Called by tests that need inputs of no meaning.
// Must not know: what the bytes are for.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace skillet::testing {

// `size` bytes; the state goes on, so that the next call gives others.
inline Bytes noise(size_t size, uint32_t& state) {
  Bytes bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}
// `size` bytes that are the same at each call.
inline Bytes noise(size_t size) {
  uint32_t state = 1;
  return noise(size, state);
}

}  // namespace skillet::testing
