#include "npus/vivante/compiler/huffman_v8.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "base/int_math.h"
#include "npus/vivante/compiler/bit_writer.h"

namespace skillet::npus::vivante::huffman {
namespace {

constexpr int kDummyPairs = 2;  // without payload, at the end of a stream
constexpr int kFirstBits = 3, kSecondBits = 2;
constexpr uint32_t kNeedsSecond = 2;  // a second prefix follows this first one

// Prefixes of the symbols. Three of them carry the payload's lowest bit.
struct Prefix {
  uint8_t first, second;
  bool carries_in_first, carries_in_second;
};
constexpr std::array<Prefix, kSymbols> kPrefixes = {{{0, 0, true, false},
                                                     {1, 0, true, false},
                                                     {7, 0, false, false},
                                                     {3, 0, false, false},
                                                     {6, 0, false, false},
                                                     {2, 1, false, true},
                                                     {2, 2, false, false},
                                                     {2, 0, false, false}}};

constexpr int prefix_bits(int symbol) {
  const Prefix& p = kPrefixes[static_cast<size_t>(symbol)];
  return kFirstBits + (p.first == kNeedsSecond ? kSecondBits : 0) - (p.carries_in_first || p.carries_in_second ? 1 : 0);
}
constexpr std::array<int, kSymbols> kPrefixBits = [] {
  std::array<int, kSymbols> bits{};
  for (int i = 0; i < kSymbols; ++i) bits[static_cast<size_t>(i)] = prefix_bits(i);
  return bits;
}();
static_assert(std::is_sorted(kPrefixBits.begin(), kPrefixBits.end()), "the shorter a prefix, the lower its symbol");

constexpr uint8_t magnitude(uint8_t byte) { return static_cast<uint8_t>(byte & 0x80 ? ~byte : byte); }
constexpr int length_of(uint8_t byte) { return std::bit_width(magnitude(byte)); }
constexpr int payload_bits(int length) { return std::max(length, 1); }

// The code of a byte: the bits of the three stages.
struct Code {
  uint8_t first = 0, second = 0, second_bits = 0, payload = 0, payload_bits = 0;
};

Code code_of(uint8_t byte, const SymbolMap& map) {
  const int length = length_of(byte);
  const auto symbol = std::find(map.begin(), map.end(), length) - map.begin();
  const Prefix& prefix = kPrefixes[static_cast<size_t>(symbol)];
  const auto low = static_cast<uint8_t>(byte >> 7);
  const auto high = static_cast<uint8_t>(length == 0 ? 0 : magnitude(byte) ^ 1U << (length - 1));
  const bool carried = prefix.carries_in_first || prefix.carries_in_second;
  Code code{.first = prefix.first, .second = prefix.second};
  if (prefix.carries_in_first) code.first = static_cast<uint8_t>(code.first | low << 2);
  if (prefix.carries_in_second) code.second = static_cast<uint8_t>(code.second | low << 1);
  code.second_bits = prefix.first == kNeedsSecond ? kSecondBits : 0;
  code.payload = static_cast<uint8_t>(carried ? high : high << 1 | low);
  code.payload_bits = static_cast<uint8_t>(payload_bits(length) - (carried ? 1 : 0));
  return code;
}

std::array<Code, 256> make_codes(const SymbolMap& map) {
  std::array<Code, 256> codes;
  for (size_t byte = 0; byte < codes.size(); ++byte) codes[byte] = code_of(static_cast<uint8_t>(byte), map);
  return codes;
}

// A few bits that precede others.
struct Bits {
  uint32_t value = 0;
  int count = 0;
};
Bits joined(uint32_t low, int low_bits, uint32_t high, int high_bits) {
  return {low | high << low_bits, low_bits + high_bits};
}

SymbolMap by_frequency(const LengthHistogram& lengths) {
  SymbolMap map;
  std::iota(map.begin(), map.end(), uint8_t{0});
  std::stable_sort(map.begin(), map.end(), [&](uint8_t a, uint8_t b) { return lengths[a] > lengths[b]; });
  return map;
}

// Size of the prefix of each length: the cost of a symbol map depends only on these.
using PrefixSizes = std::array<int, kSymbols>;

PrefixSizes prefix_sizes(const SymbolMap& map) {
  PrefixSizes sizes;
  for (size_t s = 0; s < kSymbols; ++s) sizes[map[s]] = kPrefixBits[s];
  return sizes;
}

SymbolMap map_with(const PrefixSizes& sizes) {
  SymbolMap map;
  std::iota(map.begin(), map.end(), uint8_t{0});
  std::stable_sort(map.begin(), map.end(), [&](uint8_t a, uint8_t b) { return sizes[a] < sizes[b]; });
  return map;
}

int64_t stream_bits(const LengthHistogram& lengths, const PrefixSizes& sizes) {
  int64_t bits = kDummyPairs * 2 * kFirstBits;
  for (int l = 0; l < kSymbols; ++l) {
    const auto i = static_cast<size_t>(l);
    bits += lengths[i] * (payload_bits(l) + sizes[i]);
  }
  return bits;
}

// Bytes, then bits.
using Cost = std::pair<int64_t, int64_t>;

Cost cost_of(std::span<const LengthHistogram> streams, const PrefixSizes& sizes, int64_t align_bits) {
  Cost cost{0, 0};
  for (const LengthHistogram& lengths : streams) {
    const int64_t bits = stream_bits(lengths, sizes);
    cost.first += align_up(bits, align_bits) / 8;
    cost.second += bits;
  }
  return cost;
}

}  // namespace

ByteHistogram count_bytes(std::span<const uint8_t> bytes) {
  // Four counters per value, so that equal bytes in a row do not wait for each other.
  std::array<ByteHistogram, 4> parts{};
  size_t i = 0;
  for (; i + 4 <= bytes.size(); i += 4) {
    for (size_t p = 0; p < 4; ++p) ++parts[p][bytes[i + p]];
  }
  for (; i < bytes.size(); ++i) ++parts[0][bytes[i]];
  for (size_t b = 0; b < 256; ++b) parts[0][b] += parts[1][b] + parts[2][b] + parts[3][b];
  return parts[0];
}

LengthHistogram count_lengths(const ByteHistogram& bytes, size_t count) {
  LengthHistogram lengths{};
  for (size_t b = 0; b < 256; ++b) lengths[static_cast<size_t>(length_of(static_cast<uint8_t>(b)))] += bytes[b];
  if (count % 2 != 0) ++lengths[0];
  return lengths;
}

int64_t stream_bits(const LengthHistogram& lengths, const SymbolMap& map) {
  return stream_bits(lengths, prefix_sizes(map));
}

// Rearrangement inequality: the sum of products is smallest when the longest prefix belongs to the rarest length.
int64_t fewest_bits(const LengthHistogram& lengths) { return stream_bits(lengths, by_frequency(lengths)); }

SymbolMap recorded_map(const ByteHistogram& model_bytes) {
  LengthHistogram lengths{};
  for (size_t b = 0; b < 256; ++b) {
    // The recorded driver counts 0xff as magnitude 1; it is coded as magnitude 0.
    const int length = b == 0xff ? 1 : length_of(static_cast<uint8_t>(b));
    lengths[static_cast<size_t>(length)] += model_bytes[b];
  }
  constexpr std::pair<int, int> kNetwork[] = {{0, 2}, {1, 3}, {4, 6}, {5, 7}, {0, 4}, {1, 5}, {2, 6},
                                              {3, 7}, {0, 1}, {2, 3}, {4, 5}, {6, 7}, {2, 4}, {3, 5},
                                              {1, 4}, {3, 6}, {1, 2}, {3, 4}, {5, 6}};
  SymbolMap map;
  std::iota(map.begin(), map.end(), uint8_t{0});
  for (const auto& [a, b] : kNetwork) {
    uint8_t& low = map[static_cast<size_t>(a)];
    uint8_t& high = map[static_cast<size_t>(b)];
    if (lengths[low] < lengths[high]) std::swap(low, high);
  }
  return map;
}

SymbolMap smallest_map(std::span<const LengthHistogram> streams, int64_t align_bits) {
  LengthHistogram total{};
  Cost bound{0, 0};
  for (const LengthHistogram& lengths : streams) {
    for (size_t l = 0; l < kSymbols; ++l) total[l] += lengths[l];
    bound.first += align_up(fewest_bits(lengths), align_bits) / 8;
  }
  // Fewest bits in all; if no stream could be a line shorter on its own, also fewest bytes.
  PrefixSizes best = prefix_sizes(by_frequency(total));
  Cost best_cost = cost_of(streams, best, align_bits);
  if (best_cost.first == bound.first) return map_with(best);
  // 1,680 assignments of prefix sizes to lengths cover all 40,320 maps.
  PrefixSizes sizes = kPrefixBits;
  do {
    const Cost cost = cost_of(streams, sizes, align_bits);
    if (cost >= best_cost) continue;
    best = sizes;
    best_cost = cost;
  } while (std::next_permutation(sizes.begin(), sizes.end()));
  return map_with(best);
}

void write(std::span<const uint8_t> bytes, const SymbolMap& map, uint8_t* out) {
  const std::array<Code, 256> codes = make_codes(map);
  const bool odd = bytes.size() % 2 != 0;
  BitWriter writer(out);
  Bits second, payload, payload_before;  // of the pair before; of the two before
  for (size_t i = 0; i < bytes.size(); i += 2) {
    const Code& a = codes[bytes[i]];
    const Code& b = codes[i + 1 < bytes.size() ? bytes[i + 1] : 0];
    const Bits first = joined(a.first, kFirstBits, b.first, kFirstBits);
    const uint64_t step = first.value | static_cast<uint64_t>(second.value) << first.count |
                          static_cast<uint64_t>(payload_before.value) << (first.count + second.count);
    writer.put(step, first.count + second.count + payload_before.count);
    payload_before = payload;
    payload = joined(a.payload, a.payload_bits, b.payload, b.payload_bits);
    second = joined(a.second, a.second_bits, b.second, b.second_bits);
  }
  const uint32_t dummy = odd ? 4 : 0;
  for (int i = 0; i < kDummyPairs; ++i) {
    writer.put(dummy | dummy << kFirstBits, 2 * kFirstBits);
    writer.put(second.value, second.count);
    writer.put(payload_before.value, payload_before.count);
    payload_before = payload;
    payload = second = {};
  }
}

}  // namespace skillet::npus::vivante::huffman
