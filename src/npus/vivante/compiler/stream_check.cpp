#include "npus/vivante/compiler/stream_check.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/int_math.h"

namespace skillet::npus::vivante {
namespace {

constexpr uint64_t kAlign = 64;             // of headers and streams, bytes
constexpr uint8_t kV8 = 0x10;               // first byte of V8's header; V7's begins with a multiple of 64
constexpr uint64_t kV8SizesAt = 28;         // of streams, in bits each
constexpr uint32_t kPlanesTogether = 6;     // of 1x1 filters, where the stream has them in groups
constexpr uint64_t kStreamHeaderBits = 24;  // length of a run's length, number of kernels

uint64_t load_bits(std::span<const uint8_t> bytes, uint64_t bit, int count) {
  uint64_t word = 0;
  const uint64_t at = bit / 8;
  if (at < bytes.size()) std::memcpy(&word, bytes.data() + at, std::min<uint64_t>(8, bytes.size() - at));
  return (word >> bit % 8) & ((uint64_t{1} << count) - 1);
}
uint32_t load_word(std::span<const uint8_t> bytes, uint64_t at) {
  return static_cast<uint32_t>(load_bits(bytes, at * 8, 32));
}

bool is_v8(const hw::ChipRow& chip, std::span<const uint8_t> bytes) {
  return chip.generation >= 8 || (chip.has(hw::kCoefficientEnhancement) && !bytes.empty() && bytes[0] == kV8);
}
uint64_t header_bytes_v7(const hw::ChipRow& chip) { return align_up(4 * static_cast<uint64_t>(chip.nn_cores), kAlign); }

// Walks one V7 stream from word to word: biases and places are between weights, which may be coded as runs.
class Words {
 public:
  explicit Words(std::span<const uint8_t> stream)
      : stream_(stream), run_bits_(static_cast<int>(load_bits(stream, 0, 8))) {}

  uint32_t kernels() const { return static_cast<uint32_t>(load_bits(stream_, 8, 16)); }
  // The word after `weights` more weights; none: a run reaches over it, or the stream has ended.
  std::optional<uint32_t> after(uint64_t weights) {
    if (run_bits_ >= static_cast<int>(std::size(kMany))) return std::nullopt;
    if (run_bits_ == 0) bit_ += weights * 8;
    uint64_t done = run_bits_ == 0 ? weights : (this->*kMany[run_bits_])(weights);
    for (; done < weights; bit_ += static_cast<uint64_t>(run_bits_) + 8) {
      done += load_bits(stream_, bit_, run_bits_) + 1;
      if (done > weights || bit_ > stream_.size() * 8) return std::nullopt;
    }
    if (bit_ + 32 > stream_.size() * 8) return std::nullopt;
    bit_ += 32;
    return static_cast<uint32_t>(load_bits(stream_, bit_ - 32, 32));
  }

 private:
  // Skips runs, several at a time, as long as they certainly hold at most `weights` weights; returns the weights
  // skipped.
  template <int kBits>
  uint64_t many(uint64_t weights) {
    constexpr uint64_t kLength = kBits + 8, kTogether = 56 / kLength, kOnes = (uint64_t{1} << kBits) - 1;
    uint64_t done = 0;
    for (; done + (kTogether << kBits) <= weights && bit_ / 8 + 8 <= stream_.size(); bit_ += kTogether * kLength) {
      uint64_t word = 0;
      std::memcpy(&word, stream_.data() + bit_ / 8, sizeof word);
      word >>= bit_ % 8;
      done += kTogether;
      for (uint64_t i = 0; i < kTogether; ++i) done += word >> i * kLength & kOnes;
    }
    return done;
  }
  using Many = uint64_t (Words::*)(uint64_t);
  static constexpr Many kMany[] = {nullptr,         &Words::many<1>, &Words::many<2>, &Words::many<3>, &Words::many<4>,
                                   &Words::many<5>, &Words::many<6>, &Words::many<7>, &Words::many<8>};

  std::span<const uint8_t> stream_;
  int run_bits_;
  uint64_t bit_ = kStreamHeaderBits;
};

// One core's kernels, `together` planes at a time.
class Core {
 public:
  Core(const hw::ChipRow& chip, const hw::NnInstruction& nn, uint32_t core, std::span<const uint8_t> stream)
      : nn_(nn),
        core_(core),
        words_(stream),
        cores_(std::min<uint32_t>(nn.out_z_size, static_cast<uint32_t>(chip.nn_cores))) {}

  // The first kernel, by its number in the stream, with a wrong place.
  std::optional<uint32_t> misplaced(uint32_t together) {
    const uint32_t kernels = words_.kernels();
    for (uint32_t first = 0; first < kernels; first += nn_.kernels_per_core) {
      const uint32_t count = std::min(nn_.kernels_per_core, kernels - first);
      if (const auto bad = superblock(first, count, together)) return first + *bad;
    }
    return std::nullopt;
  }

 private:
  // A bias follows each kernel's first weight, its place the last weight.
  std::optional<uint32_t> superblock(uint32_t first, uint32_t count, uint32_t together) {
    const uint64_t taps = uint64_t{nn_.kernel_x_size} * nn_.kernel_y_size, planes = nn_.kernel_z_size;
    const uint64_t last = (planes - 1) / together * together;  // the planes of the last group begin here
    uint64_t open = 0;                                         // weights since the last word
    for (uint32_t k = 0; k < count; ++k) {
      if (!words_.after(open + 1)) return k;
      open = std::min<uint64_t>(planes, together) * taps - 1;
      if (last == 0 && !is_placed(first, count, k, std::exchange(open, 0))) return k;
    }
    if (last == 0) return std::nullopt;
    open += (last - together) * taps * count;
    for (uint32_t k = 0; k < count; ++k) {
      if (!is_placed(first, count, k, std::exchange(open, 0) + (planes - last) * taps)) return k;
    }
    return std::nullopt;
  }
  bool is_placed(uint32_t first, uint32_t count, uint32_t k, uint64_t weights) {
    const uint64_t plane = uint64_t{first} * cores_ + uint64_t{core_} * count + k;
    const auto place = words_.after(weights);
    return place && *place == plane * nn_.out_x_stride * nn_.out_y_stride;
  }

  const hw::NnInstruction& nn_;
  uint32_t core_;
  Words words_;
  uint32_t cores_;
};

std::string misplaced_kernel(const hw::ChipRow& chip, const hw::NnInstruction& nn, std::span<const uint8_t> bytes) {
  uint64_t at = header_bytes_v7(chip);
  for (uint32_t core = 0; core < static_cast<uint32_t>(chip.nn_cores); ++core) {
    const uint64_t size = load_word(bytes, uint64_t{core} * 4);
    if (size == 0) break;
    const std::span<const uint8_t> stream =
        at < bytes.size() ? bytes.subspan(at, std::min<uint64_t>(size, bytes.size() - at)) : std::span<const uint8_t>{};
    at += size;
    auto bad = Core(chip, nn, core, stream).misplaced(1);
    if (bad && nn.kernel_x_size == 1 && nn.kernel_y_size == 1)
      bad = Core(chip, nn, core, stream).misplaced(kPlanesTogether);
    if (bad) return fmt::format("kernel {} of core {} does not write its own plane", *bad, core);
  }
  return "";
}

// Specification 6.3: fields known by name only are 0, and so are the bytes after the sizes of the streams.
std::string refused_header_v8(const hw::ChipRow& chip, const hw::NnInstruction& nn, std::span<const uint8_t> bytes) {
  constexpr uint64_t kMapAt = 20, kMapBytes = 4;
  const auto cores = static_cast<uint64_t>(chip.nn_cores), sizes_end = kV8SizesAt + cores * 4;
  for (uint64_t i = 0; i < kAlign; ++i) {
    const bool is_free = (i >= kMapAt && i < kMapAt + kMapBytes) || (i >= kV8SizesAt && i < sizes_end);
    const auto byte = static_cast<uint8_t>(load_bits(bytes, i * 8, 8));
    if (!is_free && byte != (i == 0 ? kV8 : 0))
      return fmt::format("byte {} of the coefficients' header is 0x{:02x}: no program has that", i, byte);
  }
  for (uint64_t core = 0; core < cores; ++core) {
    if ((load_word(bytes, kV8SizesAt + core * 4) != 0) != (core < nn.out_z_size))
      return fmt::format("the coefficients of core {} are not those of {} planes", core, nn.out_z_size);
  }
  return "";
}

// Bytes of the coefficients that the chip keeps in its own memory (specification 9.5).
uint64_t kept_bytes(const hw::ChipRow& chip, const hw::NnInstruction& nn, std::span<const uint8_t> bytes) {
  if (is_v8(chip, bytes)) return coefficient_bytes(chip, nn, bytes).value_or(UINT64_MAX);
  uint64_t longest = 0, cores = 0;
  for (; cores < static_cast<uint64_t>(chip.nn_cores) && load_word(bytes, cores * 4) != 0; ++cores)
    longest = std::max<uint64_t>(longest, load_word(bytes, cores * 4));
  return longest * cores;
}

}  // namespace

std::optional<uint64_t> coefficient_bytes(const hw::ChipRow& chip, const hw::NnInstruction& nn,
                                          std::span<const uint8_t> bytes) {
  const bool v8 = is_v8(chip, bytes);
  uint64_t total = v8 ? kAlign + uint64_t{4} * nn.out_z_size : header_bytes_v7(chip);
  uint64_t before = 1;
  for (uint64_t core = 0; core < static_cast<uint64_t>(chip.nn_cores); ++core) {
    const uint64_t size = load_word(bytes, (v8 ? kV8SizesAt : 0) + core * 4);
    if (!v8 && (size % kAlign != 0 || (size != 0 && before == 0))) return std::nullopt;
    before = size;
    total += v8 ? align_up(size, kAlign * 8) / 8 : size;
  }
  return total;
}

std::string refused_coefficients(const hw::ChipRow& chip, const hw::NnInstruction& nn, std::span<const uint8_t> bytes) {
  const bool v8 = is_v8(chip, bytes);
  if (!v8 && load_word(bytes, 0) == 0) return "nn_instruction.kernel_address: no core has coefficients";
  std::string bad = v8 ? refused_header_v8(chip, nn, bytes) : misplaced_kernel(chip, nn, bytes);
  if (bad.empty() && nn.kernel_caching_mode == hw::Caching::full &&
      kept_bytes(chip, nn, bytes) > nn.kernel_cache_end - nn.kernel_cache_start)
    bad = "its window of on-chip memory is smaller than the coefficients";
  return bad.empty() ? "" : "nn_instruction.kernel_address: " + bad;
}

}  // namespace skillet::npus::vivante
