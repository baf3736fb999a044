// SHA-256 (FIPS 180-4) of a byte span, as lower-case hex.
// Called by the readers of golden cases, whose large outputs are recorded as hashes only.
// Must not know: files, cases.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace skillet::golden {

std::string sha256_hex(std::span<const uint8_t> bytes);

}  // namespace skillet::golden
