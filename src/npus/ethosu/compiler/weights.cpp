// A stream is cut into slices, each with parameters of its own: whether zeros are runs beside the weights or weights
// themselves, which values have the short codes (the palette, most frequent first; behind it all values in order), and
// how many bits of an index are its remainder. The cheapest parameters are found by counting bits; how bits lie is
// written at the head of the simulator's decoder, and in the specification.
#include "npus/ethosu/compiler/weights.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <optional>

#include "base/check.h"
#include "base/int_math.h"

namespace skillet::npus::ethosu {
namespace {

constexpr uint32_t kInputUblock = 8, kSubkernel = 8;

constexpr uint32_t kEndOfStream = 7, kNoRuns = 6, kUncompressed = 7;
constexpr uint32_t kRunBitsMax = 3, kRemainderBitsMax = 5, kPaletteMax = 32, kOffsetMax = 31;
constexpr uint32_t kCodes = 512, kQuotientMax = 31, kTruncatedMax = 2;
constexpr size_t kSliceMax = 32768;
constexpr uint32_t kChunkBits = 12, kShortChunkBits = 8, kLongRemainder = 5;
constexpr int64_t kAhead = 8;
constexpr size_t kStreamAlign = 16;

class BitWriter {
 public:
  void put(uint64_t value, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i, ++at_) {
      if (at_ % 8 == 0) bytes_.push_back(0);
      bytes_.back() = static_cast<uint8_t>(bytes_.back() | (value >> i & 1) << (at_ % 8));
    }
  }
  // The end of the stream: ones.
  Bytes take() {
    put(kEndOfStream, 3);
    while (at_ % 8 != 0) put(1, 1);
    while (bytes_.size() % kStreamAlign != 0) bytes_.push_back(0xFF);
    return std::move(bytes_);
  }

 private:
  Bytes bytes_;
  uint64_t at_ = 0;
};

uint32_t code_of(int32_t value) {
  return static_cast<uint32_t>(value < 0 ? -value : value) << 1 | (value < 0 ? 1U : 0U);
}

// What is coded: weights, and the zeros before the first and behind each one; runs is empty where zeros are weights.
struct Symbols {
  std::vector<uint16_t> codes;
  std::vector<uint32_t> runs;
};

Symbols symbols_of(std::span<const int16_t> values, bool has_runs) {
  Symbols out;
  if (has_runs) out.runs.push_back(0);
  for (size_t i = 0; i < values.size(); ++i) {
    // One weight there must be.
    const bool is_only_one = out.codes.empty() && i + 1 == values.size();
    if (has_runs && values[i] == 0 && !is_only_one) {
      ++out.runs.back();
      continue;
    }
    out.codes.push_back(static_cast<uint16_t>(code_of(values[i])));
    if (has_runs) out.runs.push_back(0);
  }
  return out;
}

struct Parameters {
  std::vector<uint16_t> palette;
  uint32_t offset = 0, entry_bits = 2;
  uint32_t remainder_bits = kUncompressed;  // as the stream has it
  bool truncated = false;
  uint32_t run_bits = kNoRuns;
  uint64_t cost = UINT64_MAX;  // bits of the slice, about

  bool uncompressed() const { return remainder_bits == kUncompressed; }
  bool has_runs() const { return run_bits != kNoRuns; }
  uint32_t width() const {
    if (!uncompressed()) return remainder_bits;
    return palette.empty() ? entry_bits : static_cast<uint32_t>(std::bit_width(palette.size() - 1));
  }
};

constexpr uint64_t kHeaderBits = 3 + 15 + 3 + 1 + 1 + 5 + 5 + 3;
uint32_t bits_of(uint32_t largest) { return std::max(2U, static_cast<uint32_t>(std::bit_width(largest))); }

// How often each code is there, by how often.
struct Histogram {
  std::array<uint32_t, kCodes> counts{};
  std::vector<uint16_t> by_count;  // codes that are there, most frequent first

  explicit Histogram(std::span<const uint16_t> codes) {
    for (const uint16_t code : codes) ++counts[code];
    for (uint32_t code = 0; code < kCodes; ++code)
      if (counts[code] != 0) by_count.push_back(static_cast<uint16_t>(code));
    std::ranges::stable_sort(by_count, [&](uint16_t a, uint16_t b) { return counts[a] > counts[b]; });
  }
};

// The best way to code indices, `counts` of each, that are known; fills remainder_bits, truncated and cost.
void choose_code(std::span<const uint32_t> counts, uint32_t largest, uint64_t total, Parameters& out) {
  out.remainder_bits = kUncompressed, out.truncated = false, out.cost = UINT64_MAX;
  // As they are: all in the palette, or none is.
  if (out.palette.empty() || largest < out.palette.size()) out.cost = total * out.width();
  for (uint32_t bits = 0; bits <= kRemainderBitsMax; ++bits) {
    if (largest >> bits > kQuotientMax) continue;
    uint64_t plain = total * bits, cut = plain;
    for (uint32_t index = 0; index <= largest; ++index) {
      const uint32_t quotient = index >> bits;
      plain += uint64_t{counts[index]} * (quotient + 1);
      cut += uint64_t{counts[index]} * (quotient == 0 ? 1 : 2);
    }
    const bool truncates = largest >> bits <= kTruncatedMax;
    if (const uint64_t cost = truncates ? cut : plain; cost < out.cost)
      out.remainder_bits = bits, out.truncated = truncates, out.cost = cost;
  }
}

// With the `entries` most frequent codes in the palette.
std::optional<Parameters> with_palette(const Histogram& histogram, uint64_t total, uint32_t entries) {
  Parameters out;
  out.palette.assign(histogram.by_count.begin(), histogram.by_count.begin() + entries);
  std::array<uint32_t, kCodes> counts{};
  uint32_t largest_entry = 0, largest = 0, first = kCodes, last = 0;
  for (uint32_t i = 0; i < entries; ++i) {
    counts[i] = histogram.counts[out.palette[i]];
    largest_entry = std::max<uint32_t>(largest_entry, out.palette[i]);
    largest = i;
  }
  const std::span<const uint16_t> direct = std::span(histogram.by_count).subspan(entries);
  if (entries == 1) out.palette.push_back(out.palette[0]), entries = 2;  // a palette of one cannot be written
  for (const uint16_t code : direct) first = std::min<uint32_t>(first, code), last = std::max<uint32_t>(last, code);
  if (!direct.empty()) {
    out.offset = std::min(first, kOffsetMax);
    largest = entries + last - out.offset;
    if (largest >= kCodes) return std::nullopt;
    for (const uint16_t code : direct) counts[entries + code - out.offset] = histogram.counts[code];
  }
  out.entry_bits = bits_of(entries == 0 ? largest : largest_entry);
  choose_code(counts, largest, total, out);
  if (out.cost == UINT64_MAX) return std::nullopt;
  out.cost += kHeaderBits + uint64_t{entries} * out.entry_bits;
  return out;
}

void choose_runs(std::span<const uint32_t> runs, Parameters& out) {
  uint64_t best = UINT64_MAX;
  for (uint32_t bits = 0; bits <= kRunBitsMax; ++bits) {
    uint64_t cost = 0;
    for (const uint32_t run : runs) cost += (run >> bits) + 1 + bits;
    if (cost < best) best = cost, out.run_bits = bits;
  }
  out.cost += best;
}

// `symbols` of one slice.
Parameters parameters_of(std::span<const uint16_t> codes, std::span<const uint32_t> runs) {
  const Histogram histogram(codes);
  const auto distinct = static_cast<uint32_t>(histogram.by_count.size());
  Parameters best;
  for (uint32_t entries = 0; entries <= std::min(distinct, kPaletteMax); ++entries) {
    const auto one = with_palette(histogram, codes.size(), entries);
    if (one && one->cost < best.cost) best = *one;
  }
  SK_CHECK(best.cost != UINT64_MAX);
  if (!runs.empty()) choose_runs(runs, best);
  return best;
}

// Writes one slice as the decoder reads it: quotients of a chunk, then remainders of the chunk before.
class SliceWriter {
 public:
  SliceWriter(BitWriter& bits, const Parameters& parameters, std::span<const uint16_t> codes,
              std::span<const uint32_t> runs)
      : bits_(bits), parameters_(parameters), runs_(runs) {
    std::array<uint16_t, kCodes> index{};
    const auto entries = static_cast<uint32_t>(parameters.palette.size());
    for (uint32_t code = parameters.offset; code < kCodes; ++code)
      index[code] = static_cast<uint16_t>(entries + code - parameters.offset);
    for (uint32_t i = entries; i-- > 0;) index[parameters.palette[i]] = static_cast<uint16_t>(i);
    indices_.reserve(codes.size());
    for (const uint16_t code : codes) indices_.push_back(index[code]);
    list_quotients();
  }

  void run() {
    write_header();
    for (bool is_last = false; !is_last;) {
      const bool has_runs = parameters_.has_runs();
      const int64_t ahead = has_runs ? static_cast<int64_t>(weights_sent_) - static_cast<int64_t>(runs_sent_) : 0;
      const bool sends_weights = ahead < kAhead && weights_sent_ < indices_.size();
      const bool sends_runs = has_runs && ahead >= 0 && runs_sent_ < runs_.size();
      is_last = !sends_weights && !sends_runs;
      const size_t weights_due = weights_sent_, runs_due = runs_sent_;
      uint64_t first = 0, second = 0;
      uint32_t second_bits = 0;
      if (sends_weights) take_weight_chunk(first, second, second_bits);
      if (sends_weights && !parameters_.uncompressed()) bits_.put(first, kChunkBits);
      if (sends_runs) send_run_chunk();
      bits_.put(second, second_bits);
      for (; weights_done_ < std::min(weights_due, indices_.size()); ++weights_done_)
        bits_.put(indices_[weights_done_], parameters_.width());
      for (; runs_done_ < std::min(runs_due, runs_.size()); ++runs_done_)
        bits_.put(runs_[runs_done_], parameters_.run_bits);
    }
  }

 private:
  void write_header() {
    bits_.put(parameters_.run_bits, 3);
    bits_.put(indices_.size() - 1, 15);
    bits_.put(parameters_.remainder_bits, 3);
    bits_.put(parameters_.truncated ? 1 : 0, 1);
    bits_.put(1, 1);  // a palette of its own
    bits_.put(parameters_.offset, 5);
    bits_.put(parameters_.palette.empty() ? 0 : parameters_.palette.size() - 1, 5);
    bits_.put(parameters_.entry_bits - 2, 3);
    for (const uint16_t code : parameters_.palette) bits_.put(code, parameters_.entry_bits);
  }

  // A quotient is one code, or twos and the rest.
  void list_quotients() {
    if (parameters_.uncompressed()) return;
    for (const uint16_t index : indices_) {
      const uint32_t quotient = static_cast<uint32_t>(index) >> parameters_.remainder_bits;
      if (!parameters_.truncated) unary_.insert(unary_.end(), quotient / 2, 2);
      unary_.push_back(static_cast<uint8_t>(parameters_.truncated ? quotient : quotient % 2));
    }
  }

  // What is missing in the last chunk are zeros.
  void take_weight_chunk(uint64_t& first, uint64_t& second, uint32_t& second_bits) {
    if (parameters_.uncompressed()) {
      weights_sent_ += parameters_.width() > kLongRemainder ? kShortChunkBits : kChunkBits;
      return;
    }
    for (uint32_t i = 0; i < kChunkBits; ++i) {
      const uint32_t code = unary_at_ < unary_.size() ? unary_[unary_at_++] : 0;
      if (code < 2 || parameters_.truncated) ++weights_sent_;
      if (code == 0) continue;
      first |= uint64_t{1} << i;
      second |= uint64_t{code - 1} << second_bits++;
    }
  }

  void send_run_chunk() {
    const uint32_t count = parameters_.run_bits < kRunBitsMax ? kChunkBits : kShortChunkBits;
    for (uint32_t i = 0; i < count; ++i) {
      const bool is_more = runs_sent_ < runs_.size() && run_ones_ < runs_[runs_sent_] >> parameters_.run_bits;
      bits_.put(is_more ? 1 : 0, 1);
      run_ones_ = is_more ? run_ones_ + 1 : 0;
      if (!is_more) ++runs_sent_;
    }
  }

  BitWriter& bits_;
  const Parameters& parameters_;
  std::vector<uint16_t> indices_;
  std::span<const uint32_t> runs_;
  std::vector<uint8_t> unary_;
  size_t unary_at_ = 0;
  uint32_t run_ones_ = 0;
  // Symbols whose quotients, and whose remainders, are written.
  size_t weights_sent_ = 0, weights_done_ = 0, runs_sent_ = 0, runs_done_ = 0;
};

// Calls `take(o, y, x, i)` in the order of a stream; the kernel or its channels may end before.
template <typename Take>
void for_each_weight(const WeightOrder& order, const Take& take) {
  const bool is_depthwise = order.traversal == Traversal::depthwise;
  const bool is_part = order.traversal == Traversal::part_kernel;
  const uint32_t block_inputs = is_part ? 16 : 32, tall = kSubkernel / order.dilation_h,
                 wide = kSubkernel / order.dilation_w;
  const uint32_t pad = is_depthwise || is_part ? 4 : 1, last_inputs = is_depthwise ? 1 : kInputUblock;
  for (uint32_t ob = 0; ob < order.outputs; ob += order.block_depth) {
    const uint32_t outputs = std::min(order.block_depth, order.outputs - ob);
    for (uint32_t ib = 0; ib < order.inputs; ib += block_inputs) {
      const uint32_t outer = is_part ? std::min(block_inputs, order.inputs - ib) : 1;
      const uint32_t inner = order.traversal == Traversal::depth_first ? block_inputs : 1;
      for (uint32_t sy = 0; sy < order.kernel_h; sy += tall) {
        const uint32_t height = std::min(tall, order.kernel_h - sy);
        for (uint32_t sx = 0; sx < order.kernel_w; sx += wide) {
          const uint32_t width = std::min(wide, order.kernel_w - sx), taps = align_up(height * width, pad);
          for (uint32_t iu = 0; iu < outer; iu += kInputUblock)
            for (uint32_t ou = 0; ou < outputs; ou += order.ublock_depth)
              for (uint32_t e = 0; e < taps; ++e)
                for (uint32_t ii = 0; ii < inner; ii += kInputUblock)
                  for (uint32_t oz = 0; oz < order.ublock_depth; ++oz)
                    for (uint32_t iz = 0; iz < last_inputs; ++iz)
                      take(ob + ou + oz, e / width < height ? sy + e / width : order.kernel_h, sx + e % width,
                           ib + iu + ii + iz);
        }
      }
    }
  }
}

struct Slice {
  size_t first = 0, count = 0;  // of the codes
  std::vector<uint32_t> runs;
  Parameters parameters;
};

// Of all values, in the fewest slices.
std::vector<Slice> slices_of(const Symbols& symbols) {
  std::vector<Slice> out;
  for (size_t first = 0; first < symbols.codes.size(); first += kSliceMax) {
    Slice slice{
        .first = first, .count = std::min(kSliceMax, symbols.codes.size() - first), .runs = {}, .parameters = {}};
    if (!symbols.runs.empty()) {
      slice.runs.assign(symbols.runs.begin() + static_cast<int64_t>(first),
                        symbols.runs.begin() + static_cast<int64_t>(first + slice.count + 1));
      if (first != 0) slice.runs[0] = 0;  // stands behind the slice before
    }
    slice.parameters = parameters_of(std::span(symbols.codes).subspan(first, slice.count), slice.runs);
    out.push_back(std::move(slice));
  }
  return out;
}

}  // namespace

std::vector<int16_t> in_order(const WeightOrder& order, const Weight& weight) {
  std::vector<int16_t> out;
  for_each_weight(order, [&](uint32_t o, uint32_t y, uint32_t x, uint32_t i) {
    const bool is_there = y < order.kernel_h && o < order.outputs && i < order.inputs;
    out.push_back(is_there ? weight(o, y, x, i) : int16_t{0});
  });
  return out;
}

Bytes encode_weights(std::span<const int16_t> values) {
  const auto cost_of = [](const std::vector<Slice>& slices) {
    return std::accumulate(slices.begin(), slices.end(), uint64_t{0},
                           [](uint64_t sum, const Slice& slice) { return sum + slice.parameters.cost; });
  };
  Symbols symbols = symbols_of(values, false), with_runs = symbols_of(values, true);
  std::vector<Slice> slices = slices_of(symbols), slices_with_runs = slices_of(with_runs);
  if (cost_of(slices_with_runs) < cost_of(slices)) {
    std::swap(symbols, with_runs);
    std::swap(slices, slices_with_runs);
  }
  BitWriter bits;
  for (const Slice& slice : slices)
    SliceWriter(bits, slice.parameters, std::span(symbols.codes).subspan(slice.first, slice.count), slice.runs).run();
  return bits.take();
}

}  // namespace skillet::npus::ethosu
