#include "tools/tensors/jpeg_scan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

namespace skillet::tools {
namespace {

using Span = std::span<const uint8_t>;

constexpr int kMostComponents = 4;  // CMYK
constexpr int kCoefficients = 64;
constexpr int kLongestCode = 16;
constexpr uint8_t kFirstRestart = 0xD0, kStart = 0xD8, kEnd = 0xD9, kScan = 0xDA;

bool is_restart(int marker) { return (marker & ~7) == kFirstRestart; }

// Reads entropy-coded bits up to the next marker. Reading beyond it returns zeros; is_short() reports it.
class Bits {
 public:
  Bits(Span file, size_t at) : file_(file), at_(at) {}

  uint32_t peek16() {
    fill();
    return static_cast<uint32_t>(buffer_ >> (64 - kLongestCode));
  }
  void skip(int count) {
    buffer_ <<= count;
    held_ -= count;
  }
  uint32_t take(int count) {
    if (count == 0) return 0;
    fill();
    const uint64_t value = buffer_ >> (64 - count);
    skip(count);
    return static_cast<uint32_t>(value);
  }
  bool is_short() const { return held_ < 0; }

  // Skips to the next marker. True if the bytes left before it are padding: of the last byte or word, or zeros that no
  // block has used.
  bool finish() {
    constexpr size_t kWordBytes = 4;
    auto left = static_cast<size_t>(held_ / 8);
    while (read_byte()) ++left;
    const size_t zeros = recent_zeros_;
    buffer_ = 0, held_ = 0, recent_zeros_ = 0;
    if (left <= kWordBytes) return true;
    // Zeros that began before the end of the last block are a gap, as in incomplete downloads to a preallocated file.
    return has_marker() && zeros >= left && zeros < left + kWordBytes;
  }
  bool has_marker() const { return at_ + 1 < file_.size(); }
  size_t at() const { return at_; }
  // Returns the marker and moves behind it.
  int take_marker() {
    while (at_ < file_.size() && file_[at_] == 0xFF) ++at_;
    return at_ < file_.size() ? file_[at_++] : 0;
  }

 private:
  void fill() {
    while (held_ <= 56 && held_ >= 0) {
      const size_t before = at_;
      if (!read_byte()) return;
      const uint8_t byte = file_[before];
      buffer_ |= uint64_t{byte} << (56 - held_);
      held_ += 8;
    }
  }
  // False at a marker, and at the end of the file. 0xFF is stored as 0xFF 0.
  bool read_byte() {
    if (at_ >= file_.size()) return false;
    if (file_[at_] == 0xFF) {
      if (at_ + 1 >= file_.size()) {
        at_ = file_.size();
        return false;
      }
      if (file_[at_ + 1] != 0) return false;
      ++at_;
    }
    recent_zeros_ = file_[at_] == 0 && file_[at_ - 1] != 0xFF ? recent_zeros_ + 1 : 0;
    ++at_;
    return true;
  }

  Span file_;
  size_t at_;
  uint64_t buffer_ = 0;  // the next bits, highest first
  int held_ = 0;         // number of bits in it; negative: more were taken than existed
  size_t recent_zeros_ = 0;
};

// Codes of one length follow each other, behind all shorter ones.
class Codes {
 public:
  // `lengths`: number of codes of each length from 1 to 16 bits.
  bool set(std::span<const uint8_t, kLongestCode> lengths, Span symbols) {
    symbols_.assign(symbols.begin(), symbols.end());
    short_ = {};
    uint32_t end = 0;
    size_t symbol = 0;
    for (int length = 1; length <= kLongestCode; ++length) {
      const uint32_t begin = end;
      end += uint32_t{lengths[length - 1]} << (kLongestCode - length);
      if (end > kAllCodes) return false;
      lengths_[length - 1] = {.begin = begin, .end = end, .first_symbol = symbol};
      symbol += lengths[length - 1];
      if (length > kShortCode) continue;
      std::fill(short_.begin() + (begin >> kBesideShort), short_.begin() + (end >> kBesideShort),
                static_cast<uint8_t>(length));
    }
    return true;
  }
  // -1: invalid code.
  int take(Bits& bits) const {
    const uint32_t next = bits.peek16();
    int length = short_[next >> kBesideShort];
    if (length == 0) length = long_code(next);
    if (length == 0) return -1;
    bits.skip(length);
    const Length& of = lengths_[length - 1];
    return symbols_[of.first_symbol + ((next - of.begin) >> (kLongestCode - length))];
  }

 private:
  static constexpr uint32_t kAllCodes = 1U << kLongestCode;
  static constexpr int kShortCode = 8, kBesideShort = kLongestCode - kShortCode;

  struct Length {
    uint32_t begin = 0, end = 0;  // its codes, followed by zeros to 16 bits
    size_t first_symbol = 0;
  };
  // 0: there is none.
  int long_code(uint32_t next) const {
    for (int length = kShortCode + 1; length <= kLongestCode; ++length) {
      if (next < lengths_[length - 1].end) return length;
    }
    return 0;
  }

  std::vector<uint8_t> symbols_;
  std::array<Length, kLongestCode> lengths_ = {};
  std::array<uint8_t, 1U << kShortCode> short_ =
      {};  // by the next bits, the length of a code; 0: a longer one, or none
};

struct Component {
  int id, across, down;                         // sampling factors
  int blocks_x = 0, blocks_y = 0;               // with pixels
  int stored_x = 0;                             // with padding for the last unit of an interleaved scan
  std::array<int, kCoefficients> lacking = {};  // by coefficient: number of low bits that no scan has contained yet
  std::vector<uint64_t> known = {};             // progressive: by block, a bit for each nonzero coefficient
  int dc_codes = 0, ac_codes = 0;
};

struct Scan {
  std::vector<Component*> components;
  int first, last, high, low;  // range of coefficients; number of missing low bits before and after the scan
};

class Jpeg {
 public:
  Jpeg(Span file, int64_t most_pixels) : file_(file), most_pixels_(most_pixels) {}
  JpegState state();

 private:
  JpegState segment(int marker, Span data);
  JpegState frame(Span data);
  JpegState code_tables(Span data);
  JpegState scan(Span data);
  JpegState walk(Scan& scan);
  bool unit(Scan& scan, Bits& bits, int x, int y);
  bool block(const Scan& scan, Bits& bits, Component& component, uint64_t* known);
  bool sequential_block(Bits& bits, const Component& component);
  bool first_ac(const Scan& scan, Bits& bits, const Codes& codes, uint64_t& known);
  bool refined_ac(const Scan& scan, Bits& bits, const Codes& codes, uint64_t& known);
  bool is_complete() const;

  Span file_;
  int64_t most_pixels_;
  size_t at_ = 0;
  bool is_foreign_ = false;  // another kind of JPEG, which is not checked
  bool is_progressive_ = false;
  int units_x_ = 0, units_y_ = 0, interval_ = 0;
  uint32_t blocks_to_skip_ = 0;  // progressive: blocks without further data in this scan
  std::vector<Component> components_;
  std::array<Codes, 4> dc_, ac_;
};

int number16(Span data, size_t at) { return data[at] << 8 | data[at + 1]; }

JpegState Jpeg::state() {
  const auto start =
      static_cast<size_t>(std::ranges::find_if(file_, [](uint8_t one) { return one != 0xFF; }) - file_.begin());
  if (start == 0 || start + 2 >= file_.size() || file_[start] != kStart) return JpegState::whole;
  at_ = start + 1;
  while (true) {
    while (at_ < file_.size() && file_[at_] != 0xFF) ++at_;
    while (at_ < file_.size() && file_[at_] == 0xFF) ++at_;
    if (at_ >= file_.size()) return is_complete() ? JpegState::endless : JpegState::damaged;
    const int marker = file_[at_++];
    if (marker == kEnd) return is_complete() ? JpegState::whole : JpegState::damaged;
    if (marker == 0 || marker == 1 || marker == kStart || is_restart(marker)) continue;  // these markers have no data
    if (file_.size() - at_ < 2) return is_complete() ? JpegState::endless : JpegState::damaged;
    const auto size = static_cast<size_t>(number16(file_, at_));
    if (size < 2) return JpegState::damaged;
    if (size > file_.size() - at_) return JpegState::damaged;
    const Span data = file_.subspan(at_ + 2, size - 2);
    at_ += size;
    if (const JpegState state = segment(marker, data); state != JpegState::whole || is_foreign_) return state;
  }
}

JpegState Jpeg::segment(int marker, Span data) {
  switch (marker) {
    case 0xC0:
    case 0xC1:
    case 0xC2: is_progressive_ = marker == 0xC2; return frame(data);
    case 0xC4: return code_tables(data);
    case 0xDD:
      if (data.size() != 2) return JpegState::damaged;
      interval_ = number16(data, 0);
      return JpegState::whole;
    case kScan: return scan(data);
    default: is_foreign_ = marker >= 0xC3 && marker <= 0xCF; return JpegState::whole;
  }
}

JpegState Jpeg::frame(Span data) {
  if (!components_.empty() || data.size() < 6 || data.size() != 6 + size_t{data[5]} * 3) return JpegState::damaged;
  if (data[5] > kMostComponents) return JpegState::damaged;
  const int height = number16(data, 1), width = number16(data, 3);
  if (height == 0 || width == 0 || data[0] != 8 || int64_t{height} * width > most_pixels_) {
    is_foreign_ = true;
    return JpegState::whole;
  }
  int across = 1, down = 1;
  for (size_t at = 6; at < data.size(); at += 3) {
    components_.push_back({.id = data[at], .across = data[at + 1] >> 4, .down = data[at + 1] & 15});
    const Component& component = components_.back();
    if (component.across < 1 || component.across > 4 || component.down < 1 || component.down > 4)
      return JpegState::damaged;
    across = std::max(across, component.across), down = std::max(down, component.down);
  }
  const auto parts = [](int count, int size) { return (count + size - 1) / size; };
  units_x_ = parts(width, 8 * across), units_y_ = parts(height, 8 * down);
  for (Component& component : components_) {
    component.blocks_x = parts(parts(width * component.across, across), 8);
    component.blocks_y = parts(parts(height * component.down, down), 8);
    component.stored_x = units_x_ * component.across;
    component.lacking.fill(kCoefficients);
    if (is_progressive_) component.known.resize(size_t(component.stored_x) * units_y_ * component.down);
  }
  return JpegState::whole;
}

JpegState Jpeg::code_tables(Span data) {
  while (!data.empty()) {
    if (data.size() < 1 + kLongestCode) return JpegState::damaged;
    const int kind = data[0] >> 4, which = data[0] & 15;
    const auto lengths = data.subspan<1, kLongestCode>();
    size_t symbols = 0;
    for (uint8_t count : lengths) symbols += count;
    data = data.subspan(1 + kLongestCode);
    auto& tables = kind == 0 ? dc_ : ac_;
    if (kind > 1 || which > 3 || symbols > data.size() || !tables[which].set(lengths, data.first(symbols)))
      return JpegState::damaged;
    data = data.subspan(symbols);
  }
  return JpegState::whole;
}

JpegState Jpeg::scan(Span data) {
  if (data.empty() || data[0] < 1 || data[0] > 4 || data.size() != 4 + size_t{data[0]} * 2) return JpegState::damaged;
  Scan scan = {};
  for (size_t at = 1; at + 3 < data.size(); at += 2) {
    const auto found = std::ranges::find(components_, data[at], &Component::id);
    if (found == components_.end() || (data[at + 1] & 0xCC) != 0) return JpegState::damaged;
    found->dc_codes = data[at + 1] >> 4, found->ac_codes = data[at + 1] & 15;
    scan.components.push_back(&*found);
  }
  const Span last = data.last(3);
  scan.first = last[0], scan.last = last[1], scan.high = last[2] >> 4, scan.low = last[2] & 15;
  if (!is_progressive_) scan.first = 0, scan.last = kCoefficients - 1, scan.high = 0, scan.low = 0;
  const bool mixed = scan.first == 0 && scan.last != 0, several_ac = scan.first != 0 && scan.components.size() != 1;
  if (scan.first > scan.last || scan.last >= kCoefficients || (is_progressive_ && (mixed || several_ac)))
    return JpegState::damaged;
  const JpegState state = walk(scan);
  for (Component* component : scan.components)
    std::fill(component->lacking.begin() + scan.first, component->lacking.begin() + scan.last + 1, scan.low);
  return state;
}

JpegState Jpeg::walk(Scan& scan) {
  const bool single = scan.components.size() == 1;
  const int across = single ? scan.components[0]->blocks_x : units_x_;
  const int units = across * (single ? scan.components[0]->blocks_y : units_y_);
  Bits bits(file_, at_);
  blocks_to_skip_ = 0;
  for (int i = 0, restarts = 0; i < units; ++i) {
    if (interval_ != 0 && i != 0 && i % interval_ == 0) {
      if (!bits.finish() || bits.take_marker() != kFirstRestart + restarts % 8) return JpegState::damaged;
      ++restarts, blocks_to_skip_ = 0;
    }
    const bool is_code = unit(scan, bits, i % across, i / across);
    if (bits.is_short() || !is_code) return JpegState::damaged;
  }
  if (!bits.finish()) return JpegState::damaged;
  at_ = bits.at();
  return JpegState::whole;
}

// Reads a block of the only component, or all blocks of a unit of several components.
bool Jpeg::unit(Scan& scan, Bits& bits, int x, int y) {
  const bool single = scan.components.size() == 1;
  for (Component* component : scan.components) {
    const int across = single ? 1 : component->across, down = single ? 1 : component->down;
    for (int i = 0; i < across * down; ++i) {
      const size_t row = size_t(y) * down + i / across, column = size_t(x) * across + i % across;
      uint64_t* known = is_progressive_ ? &component->known[row * component->stored_x + column] : nullptr;
      if (!block(scan, bits, *component, known)) return false;
    }
  }
  return true;
}

bool Jpeg::block(const Scan& scan, Bits& bits, Component& component, uint64_t* known) {
  if (known == nullptr) return sequential_block(bits, component);
  if (scan.first == 0) {
    const int size = scan.high == 0 ? dc_[component.dc_codes].take(bits) : 1;
    if (size < 0 || size > 15) return false;
    bits.take(size);
    return true;
  }
  const Codes& codes = ac_[component.ac_codes];
  return scan.high == 0 ? first_ac(scan, bits, codes, *known) : refined_ac(scan, bits, codes, *known);
}

bool Jpeg::sequential_block(Bits& bits, const Component& component) {
  const int dc_size = dc_[component.dc_codes].take(bits);
  if (dc_size < 0 || dc_size > 15) return false;
  bits.take(dc_size);
  for (int k = 1; k < kCoefficients; ++k) {
    const int symbol = ac_[component.ac_codes].take(bits);
    if (symbol < 0) return false;
    const int zeros = symbol >> 4, size = symbol & 15;
    if (size == 0 && zeros != 15) break;
    k += zeros;
    if (size != 0 && k >= kCoefficients) return false;
    bits.take(size);
  }
  return true;
}

bool Jpeg::first_ac(const Scan& scan, Bits& bits, const Codes& codes, uint64_t& known) {
  if (blocks_to_skip_ != 0) {
    --blocks_to_skip_;
    return true;
  }
  for (int k = scan.first; k <= scan.last; ++k) {
    const int symbol = codes.take(bits);
    if (symbol < 0) return false;
    const int zeros = symbol >> 4, size = symbol & 15;
    if (size == 0 && zeros != 15) {
      blocks_to_skip_ = (1U << zeros) + bits.take(zeros) - 1;
      break;
    }
    k += zeros;
    if (size == 0) continue;
    if (k > scan.last) return false;
    bits.take(size);
    known |= uint64_t{1} << k;
  }
  return true;
}

// Reads a bit for each coefficient that is already nonzero, and between them codes for those that become nonzero.
bool Jpeg::refined_ac(const Scan& scan, Bits& bits, const Codes& codes, uint64_t& known) {
  int k = scan.first;
  while (k <= scan.last && blocks_to_skip_ == 0) {
    const int symbol = codes.take(bits);
    if (symbol < 0) return false;
    int zeros = symbol >> 4;
    const int size = symbol & 15;
    if (size > 1) return false;
    if (size == 0 && zeros != 15) {
      blocks_to_skip_ = (1U << zeros) + bits.take(zeros);
      break;
    }
    bits.take(size);
    for (; k <= scan.last; ++k) {
      if ((known >> k & 1) != 0)
        bits.take(1);
      else if (--zeros < 0)
        break;
    }
    if (size != 0 && k > scan.last) return false;
    if (size != 0) known |= uint64_t{1} << k;
    ++k;
  }
  if (blocks_to_skip_ == 0) return true;
  --blocks_to_skip_;
  for (; k <= scan.last; ++k)
    if ((known >> k & 1) != 0) bits.take(1);
  return true;
}

bool Jpeg::is_complete() const {
  return !components_.empty() && std::ranges::all_of(components_, [](const Component& component) {
    return std::ranges::all_of(component.lacking, [](int bits) { return bits == 0; });
  });
}

}  // namespace

JpegState jpeg_state(Span file, int64_t most_pixels) { return Jpeg(file, most_pixels).state(); }

}  // namespace skillet::tools
