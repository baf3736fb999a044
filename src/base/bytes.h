// Little-endian loads and stores on byte spans, hex text, whole-file reading and writing.
// Called by every reader and writer of binary data.
// Must not know: anything above base/.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace skillet {

using Bytes = std::vector<uint8_t>;

template <typename T>
T load_le(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <typename T>
void store_le(uint8_t* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

inline std::span<const uint8_t> as_bytes(std::span<const uint32_t> words) {
  return {reinterpret_cast<const uint8_t*>(words.data()), words.size() * 4};
}

// Whole file; the error names the path and the cause.
Result<Bytes> read_file(const std::string& path);
Result<void> write_file(const std::string& path, std::span<const uint8_t> bytes);

}  // namespace skillet
