// A stream is divided into slices, each with its own parameters: whether zeros are coded as runs or as weights, which
// values have short codes (the palette, most frequent first; after it all values in order), and the number of remainder
// bits of an index. The cheapest parameters are found by counting bits. The head of the simulator's decoder and the
// specification describe the bit layout.
#include "npus/ethosu/compiler/weights.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <numeric>
#include <optional>

#include "base/check.h"
#include "base/int_math.h"

namespace skillet::npus::ethosu {
namespace {

constexpr uint32_t kEndOfStream = 7, kNoRuns = 6, kUncompressed = 7;
constexpr uint32_t kRunBitsMax = 3, kRemainderBitsMax = 5, kPaletteMax = 32, kOffsetMax = 31;
constexpr uint32_t kCodes = 512, kQuotientMax = 31, kTruncatedMax = 2;
constexpr size_t kSliceMax = 32768;
constexpr size_t kRunsFrom = 5;  // with fewer zeros than one in this many weights, runs cost more bits than they save
constexpr uint32_t kChunkBits = 12, kShortChunkBits = 8, kLongRemainder = 5, kWeightBitsMax = 16;
constexpr int64_t kAhead = 8;
constexpr size_t kStreamAlign = 16;

class BitWriter {
 public:
  explicit BitWriter(size_t bytes) { words_.reserve(bytes / sizeof(uint32_t)); }
  // Writes the lowest `count` bits, at most 32.
  void put(uint64_t value, uint32_t count) {
    held_ |= (value & ((uint64_t{1} << count) - 1)) << held_bits_;
    held_bits_ += count;
    if (held_bits_ >= 32) put_word();
  }
  // Appends the bytes and the end of the stream: ones.
  void append_to(Bytes& out) {
    put(kEndOfStream, 3);
    const uint32_t missing = align_up(held_bits_, 8U) - held_bits_;
    put((1U << missing) - 1, missing);
    const size_t size = words_.size() * sizeof(uint32_t) + held_bits_ / 8, begin = out.size();
    words_.push_back(static_cast<uint32_t>(held_));
    const std::span<const uint8_t> bytes = as_bytes(words_).first(size);
    out.insert(out.end(), bytes.begin(), bytes.end());
    out.resize(begin + align_up(size, kStreamAlign), 0xFF);
  }

 private:
  // A separate function, so that put() is short enough to be inlined.
  void put_word() {
    words_.push_back(static_cast<uint32_t>(held_));
    held_ >>= 32, held_bits_ -= 32;
  }

  std::vector<uint32_t> words_;
  uint64_t held_ = 0;
  uint32_t held_bits_ = 0;
};

// Symbols to code: weights, and the zeros before the first and after each one; runs is empty if zeros are weights.
struct Symbols {
  std::vector<uint16_t> codes;
  std::vector<uint32_t> runs;
};

Symbols symbols_of(std::span<const int16_t> values) {
  Symbols out{.codes = std::vector<uint16_t>(values.size()), .runs = {}};
  for (size_t i = 0; i < values.size(); ++i) {
    const int sign = values[i] >> 15;  // 0 or -1, without a branch: signs are unpredictable
    out.codes[i] = static_cast<uint16_t>(2 * ((values[i] ^ sign) - sign) - sign);
  }
  return out;
}

// The same, with zeros as runs.
Symbols with_runs(const Symbols& plain) {
  const std::vector<uint16_t>& codes = plain.codes;
  Symbols out{.codes = std::vector<uint16_t>(codes.size() + 1), .runs = std::vector<uint32_t>(codes.size() + 1)};
  size_t count = 0;
  uint32_t run = 0;
  for (const uint16_t code : codes) {
    out.codes[count] = code, out.runs[count] = run;
    count += code != 0 ? 1 : 0;
    run = code != 0 ? 0 : run + 1;
  }
  if (count == 0 && !codes.empty()) {  // at least one weight is required
    out.runs[0] = run - 1;
    count = 1, run = 0;
  }
  out.runs[count] = run;
  out.codes.resize(count), out.runs.resize(count + 1);
  return out;
}

struct Parameters {
  std::vector<uint16_t> palette;
  uint32_t offset = 0, entry_bits = 2;
  uint32_t remainder_bits = kUncompressed;  // as coded in the stream
  bool truncated = false;
  uint32_t run_bits = kNoRuns;
  uint64_t cost = UINT64_MAX;  // approximate bits of the slice

  bool uncompressed() const { return remainder_bits == kUncompressed; }
  bool has_runs() const { return run_bits != kNoRuns; }
  uint32_t width() const {
    if (!uncompressed()) return remainder_bits;
    return palette.empty() ? entry_bits : static_cast<uint32_t>(std::bit_width(palette.size() - 1));
  }
};

constexpr uint64_t kHeaderBits = 3 + 15 + 3 + 1 + 1 + 5 + 5 + 3;
uint32_t bits_of(uint32_t largest) { return std::max(2U, static_cast<uint32_t>(std::bit_width(largest))); }

// Count of each code, and the codes by count.
struct Histogram {
  std::array<uint32_t, kCodes> counts{};
  std::vector<uint16_t> by_count;  // codes that occur, most frequent first
  uint64_t total = 0;

  explicit Histogram(std::span<const uint16_t> codes) : total(codes.size()) {
    // Uses two tables, because the next code is often the same.
    std::array<uint32_t, kCodes> others{};
    for (size_t i = 0; i + 1 < codes.size(); i += 2) ++counts[codes[i]], ++others[codes[i + 1]];
    if (is_odd(codes.size())) ++counts[codes.back()];
    for (uint32_t code = 0; code < kCodes; ++code) counts[code] += others[code];
    for (uint32_t code = 0; code < kCodes; ++code)
      if (counts[code] != 0) by_count.push_back(static_cast<uint16_t>(code));
    std::ranges::stable_sort(by_count, [&](uint16_t a, uint16_t b) { return counts[a] > counts[b]; });
  }
};

// For each index, the number of values below it.
using Below = std::array<uint32_t, kCodes + 1>;

// Finds the cheapest code for indices up to `largest`; sets remainder_bits, truncated and cost.
void choose_code(const Below& below, uint32_t largest, uint64_t total, Parameters& out) {
  out.remainder_bits = kUncompressed, out.truncated = false, out.cost = UINT64_MAX;
  // Uncompressed: all codes are in the palette, or none.
  if (out.palette.empty() || largest < out.palette.size()) out.cost = total * out.width();
  for (uint32_t bits = 0; bits <= kRemainderBitsMax; ++bits) {
    const uint32_t quotient_max = largest >> bits;
    if (quotient_max > kQuotientMax) continue;
    const bool truncates = quotient_max <= kTruncatedMax;
    uint64_t cost = total * (bits + 1);
    for (uint32_t quotient = 1; quotient <= (truncates ? std::min(quotient_max, 1U) : quotient_max); ++quotient)
      cost += total - below[quotient << bits];
    if (cost < out.cost) out.remainder_bits = bits, out.truncated = truncates, out.cost = cost;
  }
}

// Parameters with the `entries` most frequent codes in the palette; `direct`: counts of the other codes.
std::optional<Parameters> with_palette(const Histogram& histogram, std::span<const uint32_t> direct, uint32_t entries) {
  Parameters out;
  out.palette.assign(histogram.by_count.begin(), histogram.by_count.begin() + entries);
  uint32_t largest_entry = 0, largest = entries == 0 ? 0 : entries - 1;
  Below below{};
  for (uint32_t i = 0; i < entries; ++i) {
    below[i + 1] = below[i] + histogram.counts[out.palette[i]];
    largest_entry = std::max<uint32_t>(largest_entry, out.palette[i]);
  }
  const uint32_t in_palette = below[entries];
  if (entries == 1) out.palette.push_back(out.palette[0]), entries = 2;  // a palette of one entry cannot be written
  below[entries] = in_palette;
  const auto is_there = [](uint32_t count) { return count != 0; };
  const auto first = std::ranges::find_if(direct, is_there);
  if (first != direct.end()) {
    const auto last = std::find_if(direct.rbegin(), direct.rend(), is_there).base();
    out.offset = std::min(static_cast<uint32_t>(first - direct.begin()), kOffsetMax);
    const std::span<const uint32_t> indices(direct.begin() + out.offset, last);
    largest = entries + static_cast<uint32_t>(indices.size()) - 1;
    if (largest >= kCodes) return std::nullopt;
    std::partial_sum(indices.begin(), indices.end(), below.begin() + entries + 1);
    for (uint32_t i = entries + 1; i <= largest + 1; ++i) below[i] += in_palette;
  }
  out.entry_bits = bits_of(entries == 0 ? largest : largest_entry);
  choose_code(below, largest, histogram.total, out);
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

// Parameters for the symbols of one slice.
Parameters parameters_of(std::span<const uint16_t> codes, std::span<const uint32_t> runs) {
  const Histogram histogram(codes);
  const auto distinct = static_cast<uint32_t>(histogram.by_count.size());
  std::array<uint32_t, kCodes> direct = histogram.counts;
  Parameters best;
  for (uint32_t entries = 0; entries <= std::min(distinct, kPaletteMax); ++entries) {
    if (entries > 0) direct[histogram.by_count[entries - 1]] = 0;
    auto one = with_palette(histogram, direct, entries);
    if (one && one->cost < best.cost) best = std::move(*one);
  }
  SK_CHECK(best.cost != UINT64_MAX);
  if (!runs.empty()) choose_runs(runs, best);
  return best;
}

// A weight in the stream: its quotient as codes 0, 1 and 2, with two bits each (one for 0), and its remainder.
struct CodedWeight {
  uint16_t first = 0;   // bit i: code i is not 0
  uint16_t second = 0;  // bit i: the i-th code that is not 0 is 2
  uint8_t codes = 1, seconds = 0;
  uint16_t remainder = 0;
};

// Quotients above two are several twos and the rest; truncated ones have a single code.
CodedWeight coded_weight(uint32_t index, const Parameters& parameters) {
  CodedWeight out{.remainder = static_cast<uint16_t>(index & ((1U << parameters.width()) - 1))};
  if (parameters.uncompressed()) return out;
  const uint32_t quotient = std::min(index >> parameters.remainder_bits, kQuotientMax);  // largest quotient that occurs
  const uint32_t twos = parameters.truncated ? (quotient == 2 ? 1 : 0) : quotient / 2;
  const uint32_t ones = (1U << twos) - 1;
  const bool is_closed = parameters.truncated && twos != 0;
  out.first = static_cast<uint16_t>(ones | (is_closed ? 0 : quotient % 2) << twos);
  out.second = static_cast<uint16_t>(ones);
  out.codes = static_cast<uint8_t>(twos + (is_closed ? 0 : 1));
  out.seconds = static_cast<uint8_t>(std::popcount(out.first));
  return out;
}

// Bits of all weights of a slice, concatenated.
class BitList {
 public:
  explicit BitList(size_t most) : bytes_(std::make_unique_for_overwrite<uint8_t[]>(most / 8 + 2 * sizeof(uint64_t))) {}

  // At most 32 bits.
  uint64_t take(uint32_t count) {
    const uint64_t value = load_le<uint64_t>(&bytes_[taken_ / 8]) >> taken_ % 8;
    taken_ += count;
    return value & ((uint64_t{1} << count) - 1);
  }

 private:
  friend class BitFiller;
  std::unique_ptr<uint8_t[]> bytes_;
  size_t taken_ = 0;
};

// Separate from the list, so that its fields are in registers.
class BitFiller {
 public:
  explicit BitFiller(BitList& list) : at_(list.bytes_.get()) {}
  ~BitFiller() { store_le(at_, held_); }

  // `value` has at most `count` bits, and `count` is at most 16.
  void put(uint64_t value, uint32_t count) {
    held_ |= value << held_bits_;
    held_bits_ += count;
    if (held_bits_ < 32) return;
    store_le(at_, held_);
    at_ += sizeof(uint32_t), held_ >>= 32, held_bits_ -= 32;
  }

 private:
  uint8_t* at_;
  uint64_t held_ = 0;
  uint32_t held_bits_ = 0;
};

constexpr auto kOnes = [] {
  std::array<uint8_t, 1U << kChunkBits> out{};
  for (uint32_t i = 0; i < out.size(); ++i) out[i] = static_cast<uint8_t>(std::popcount(i));
  return out;
}();

// Writes one slice in the order of the decoder: quotients of a chunk, then remainders of the chunk before.
class SliceWriter {
 public:
  SliceWriter(BitWriter& bits, const Parameters& parameters, std::span<const uint16_t> codes,
              std::span<const uint32_t> runs)
      : bits_(bits), parameters_(parameters), codes_(codes), runs_(runs) {}

  void run() {
    write_header();
    list_weights();
    for (bool is_last = false; !is_last;) {
      const bool has_runs = parameters_.has_runs();
      const int64_t ahead = has_runs ? static_cast<int64_t>(weights_sent_) - static_cast<int64_t>(runs_sent_) : 0;
      const bool sends_weights = ahead < kAhead && weights_sent_ < codes_.size();
      const bool sends_runs = has_runs && ahead >= 0 && runs_sent_ < runs_.size();
      is_last = !sends_weights && !sends_runs;
      const size_t weights_due = weights_sent_, runs_due = runs_sent_;
      const uint32_t seconds = sends_weights ? send_weight_chunk() : 0;
      if (sends_runs) send_run_chunk();
      if (seconds != 0) bits_.put(second_.take(seconds), seconds);
      send_remainders(std::min(weights_due, codes_.size()));
      for (const size_t end = std::min(runs_due, runs_.size()); runs_done_ < end; ++runs_done_)
        bits_.put(runs_[runs_done_], parameters_.run_bits);
    }
  }

 private:
  void write_header() {
    bits_.put(parameters_.run_bits, 3);
    bits_.put(codes_.size() - 1, 15);
    bits_.put(parameters_.remainder_bits, 3);
    bits_.put(parameters_.truncated ? 1 : 0, 1);
    bits_.put(1, 1);  // a new palette
    bits_.put(parameters_.offset, 5);
    bits_.put(parameters_.palette.empty() ? 0 : parameters_.palette.size() - 1, 5);
    bits_.put(parameters_.entry_bits - 2, 3);
    for (const uint16_t code : parameters_.palette) bits_.put(code, parameters_.entry_bits);
  }

  void list_weights() {
    std::array<CodedWeight, kCodes> coded{};
    const auto entries = static_cast<uint32_t>(parameters_.palette.size());
    for (uint32_t code = parameters_.offset; code < kCodes; ++code)
      coded[code] = coded_weight(entries + code - parameters_.offset, parameters_);
    for (uint32_t i = entries; i-- > 0;) coded[parameters_.palette[i]] = coded_weight(i, parameters_);
    first_ = BitList(codes_.size() * kWeightBitsMax + kChunkBits);
    ends_ = BitList(codes_.size() * kWeightBitsMax + kChunkBits);
    second_ = BitList(codes_.size() * kWeightBitsMax), remainders_ = BitList(codes_.size() * kWeightBitsMax);
    BitFiller first(first_), ends(ends_), second(second_), remainders(remainders_);
    const uint32_t width = width_;
    for (const uint16_t code : codes_) {
      const CodedWeight weight = coded[code];
      first.put(weight.first, weight.codes);
      ends.put(uint64_t{1} << (weight.codes - 1), weight.codes);
      second.put(weight.second, weight.seconds);
      remainders.put(weight.remainder, width);
    }
    first.put(0, kChunkBits);  // zeros follow the last weight
    ends.put((1U << kChunkBits) - 1, kChunkBits);
  }

  // Writes the first bits of a chunk and returns the number of second bits.
  uint32_t send_weight_chunk() {
    if (parameters_.uncompressed()) {
      weights_sent_ += parameters_.width() > kLongRemainder ? kShortChunkBits : kChunkBits;
      return 0;
    }
    const uint64_t first = first_.take(kChunkBits);
    bits_.put(first, kChunkBits);
    weights_sent_ += kOnes[ends_.take(kChunkBits)];
    return kOnes[first];
  }

  void send_remainders(size_t end) {
    auto left = static_cast<uint32_t>(end - weights_done_) * width_;
    for (uint32_t count = 0; left != 0; left -= count)
      count = std::min(left, 32U), bits_.put(remainders_.take(count), count);
    weights_done_ = end;
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
  uint32_t width_ = parameters_.width();
  std::span<const uint16_t> codes_;
  std::span<const uint32_t> runs_;
  // For all weights: first bits of the codes, marks of the last code of each weight, and second bits.
  BitList first_{0}, ends_{0}, second_{0}, remainders_{0};
  uint32_t run_ones_ = 0;
  // Number of symbols whose quotients (sent) and remainders (done) are written.
  size_t weights_sent_ = 0, weights_done_ = 0, runs_sent_ = 0, runs_done_ = 0;
};

struct Slice {
  size_t first = 0, count = 0;  // range of codes
  std::vector<uint32_t> runs;
  Parameters parameters;
};

// Divides all values into the fewest slices.
std::vector<Slice> slices_of(const Symbols& symbols) {
  std::vector<Slice> out;
  for (size_t first = 0; first < symbols.codes.size(); first += kSliceMax) {
    Slice slice{
        .first = first, .count = std::min(kSliceMax, symbols.codes.size() - first), .runs = {}, .parameters = {}};
    if (!symbols.runs.empty()) {
      slice.runs.assign(symbols.runs.begin() + static_cast<int64_t>(first),
                        symbols.runs.begin() + static_cast<int64_t>(first + slice.count + 1));
      if (first != 0) slice.runs[0] = 0;  // written after the slice before
    }
    slice.parameters = parameters_of(std::span(symbols.codes).subspan(first, slice.count), slice.runs);
    out.push_back(std::move(slice));
  }
  return out;
}

}  // namespace

Bytes encode_weights(std::span<const int16_t> values, Bytes before) {
  const auto cost_of = [](const std::vector<Slice>& slices) {
    return std::accumulate(slices.begin(), slices.end(), uint64_t{0},
                           [](uint64_t sum, const Slice& slice) { return sum + slice.parameters.cost; });
  };
  Symbols symbols = symbols_of(values);
  std::vector<Slice> slices = slices_of(symbols);
  const auto zeros = static_cast<size_t>(std::ranges::count(values, 0));
  if (zeros * kRunsFrom >= values.size()) {
    Symbols other = with_runs(symbols);
    std::vector<Slice> slices_with_runs = slices_of(other);
    if (cost_of(slices_with_runs) < cost_of(slices)) symbols = std::move(other), slices = std::move(slices_with_runs);
  }
  BitWriter bits(values.size());  // most streams have fewer
  for (const Slice& slice : slices)
    SliceWriter(bits, slice.parameters, std::span(symbols.codes).subspan(slice.first, slice.count), slice.runs).run();
  bits.append_to(before);
  return before;
}

}  // namespace skillet::npus::ethosu
