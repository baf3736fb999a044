// The prefix code of V8 coefficient streams: the code of a byte, its cost in bits, and the best assignment.
// Called by weights_v8.cpp and its report.
// Must not know: filters, cores' headers.
//
// A byte is sent as the bit length of its magnitude (0..7) and a payload. Eight symbols with fixed prefixes encode the
// lengths; the symbol map in the buffer's header assigns a length to each symbol (specification 6.3.4).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/bytes.h"

namespace skillet::npus::vivante::huffman {

constexpr int kSymbols = 8;

// The bit length of magnitude of each symbol: a permutation of 0..7.
using SymbolMap = std::array<uint8_t, kSymbols>;

// How often each byte value, or each length, occurs.
using ByteHistogram = std::array<uint32_t, 256>;
using LengthHistogram = std::array<int64_t, kSymbols>;

ByteHistogram count_bytes(std::span<const uint8_t> bytes);

// Lengths in the output of write() for these bytes, including the byte that makes their number even.
LengthHistogram count_lengths(const ByteHistogram& bytes, size_t count);

// Bits of a stream with these lengths.
int64_t stream_bits(const LengthHistogram& lengths, const SymbolMap& map);
// Bits with the best map for these lengths.
int64_t fewest_bits(const LengthHistogram& lengths);

// The recorded driver's map: lengths sorted by how often they occur in the model's own bytes (specification 6.3.5).
SymbolMap recorded_map(const ByteHistogram& model_bytes);

// The map with the fewest bytes of all streams together, each padded to `align_bits`; of equal ones the fewest bits.
// Exact: the best of all 40,320 maps.
SymbolMap smallest_map(std::span<const LengthHistogram> streams, int64_t align_bits);

// Writes the stream of `bytes`; `out` must have room for stream_bits() and BitWriter::kSlackBytes.
void write(std::span<const uint8_t> bytes, const SymbolMap& map, uint8_t* out);

}  // namespace skillet::npus::vivante::huffman
