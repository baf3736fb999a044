// Any bytes, and any bytes behind a right beginning and checksum: deserialise() returns an error, or a program that
// verifies and survives writing and reading.
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "program/program.h"

namespace {

using skillet::Bytes;

constexpr size_t kHeaderBytes = 64, kTableAt = 16, kStoredAt = 24, kChecksumAt = 32, kReservedAt = 40;

// Without the length and the checksum of what is stored nothing behind them is ever read.
Bytes repaired(Bytes bytes) {
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

void check(Bytes bytes, bool packed) {
  using namespace skillet::npu;
  const auto program = deserialise(std::move(bytes));
  if (!program.ok()) return;
  const auto file = serialise(*program, packed);
  if (!file.ok() || print(*program).empty() || !(deserialise(*file).value() == *program)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes bytes(data, data + size);
  check(bytes, size % 2 == 0);
  if (size >= kHeaderBytes) check(repaired(bytes), size % 2 == 0);
  return 0;
}
