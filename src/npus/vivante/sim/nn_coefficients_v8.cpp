// Decoder of the V8 coefficient buffer: docs/hw/vivante.md, hardware specification 6.3. Bytes are Huffman-coded by
// their magnitude. Run-length mode, precode and average bias are known only by name and are refused.
#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "base/int_math.h"
#include "npus/vivante/sim/bit_reader.h"
#include "npus/vivante/sim/nn_coefficients.h"

namespace skillet::sim::vivante {
namespace {

using ::skillet::vivante::hw::ChipRow;

constexpr int64_t kHeaderBytes = 64;
constexpr int64_t kStreamAlignBits = 512;
constexpr size_t kSizesAt = 28;         // stream sizes, one per core
constexpr int64_t kBlock = 9;           // weights of one kernel at a time
constexpr int64_t kBitsPerPairMin = 6;  // two prefixes
constexpr int kSymbols = 8;

// A header field other than stream sizes: name, place, the only value that is modelled.
struct HeaderField {
  const char* name;
  size_t first, count;
  uint8_t value;
};
constexpr std::array kHeaderFields = {
    HeaderField{"version and data type", 0, 1, 0x10}, HeaderField{"run_length_size", 1, 1, 0},
    HeaderField{"run_length_table", 2, 18, 0},        HeaderField{"avg_bias", 24, 2, 0},
    HeaderField{"unknown bytes 26, 27", 26, 2, 0},
};

Result<void> check_zero(std::span<const uint8_t> header, size_t from) {
  for (size_t i = from; i < kHeaderBytes; ++i) {
    if (header[i] != 0)
      return error(ErrorCode::device, "coefficient header: byte {} = 0x{:02x}: must be 0", i, header[i]);
  }
  return {};
}

Result<void> check_header(std::span<const uint8_t> header, int nn_cores) {
  for (const HeaderField& field : kHeaderFields) {
    for (size_t i = 0; i < field.count; ++i) {
      const uint8_t byte = header[field.first + i];
      if (byte != field.value)
        return error(ErrorCode::device, "coefficient header: {}, byte {} = 0x{:02x}: only 0x{:02x} is modelled",
                     field.name, field.first + i, byte, field.value);
    }
  }
  return check_zero(header, kSizesAt + 4 * static_cast<size_t>(nn_cores));
}

int64_t cores_used(const ChipRow& chip, const CoefficientShape& shape) {
  return std::min<int64_t>(chip.nn_cores, shape.output_planes);
}

uint32_t stream_bits(std::span<const uint8_t> header, int64_t core) {
  return load_le<uint32_t>(header.data() + kSizesAt + static_cast<size_t>(core) * 4);
}

constexpr int64_t stream_bytes(int64_t bits) { return align_up(bits, kStreamAlignBits) / 8; }

int64_t header_bytes(const ChipRow&) { return kHeaderBytes; }

Result<int64_t> buffer_bytes(std::span<const uint8_t> header, const ChipRow& chip, const CoefficientShape& shape) {
  SK_TRY(check_header(header, chip.nn_cores));
  int64_t total = kHeaderBytes + 4 * shape.output_planes;
  for (int64_t core = 0; core < chip.nn_cores; ++core) {
    const uint32_t bits = stream_bits(header, core);
    const bool has_kernels = core < cores_used(chip, shape);
    if ((bits != 0) != has_kernels)
      return error(ErrorCode::device,
                   "stream size of core {} = {} bits, but {} of {} cores have kernels ({} output planes)", core, bits,
                   cores_used(chip, shape), chip.nn_cores, shape.output_planes);
    total += stream_bytes(bits);
  }
  return total;
}

// Bit length of each symbol's magnitude.
using SymbolMap = std::array<int, kSymbols>;

Result<SymbolMap> read_symbol_map(std::span<const uint8_t> header) {
  const auto word = load_le<uint32_t>(header.data() + 20);
  SymbolMap map;
  uint32_t seen = 0;
  for (int i = 0; i < kSymbols; ++i) {
    map[static_cast<size_t>(i)] = static_cast<int>(word >> 4 * i & 0xf);
    seen |= 1U << map[static_cast<size_t>(i)];
  }
  if (seen != 0xff)
    return error(ErrorCode::device, "coefficient header: symbol map 0x{:08x} is no permutation of the lengths 0 to 7",
                 word);
  return map;
}

// The content of a prefix: the symbol, and for three symbols the lowest bit of the payload.
struct Prefix {
  uint8_t symbol = 0;
  bool has_bit = false;
  uint8_t bit = 0;
};
constexpr uint32_t kNeedsSecond = 2;  // the second prefix contains the symbol of this first one
constexpr Prefix kFirst[8] = {{0, true, 0}, {1, true, 0}, {}, {3}, {0, true, 1}, {1, true, 1}, {4}, {2}};
constexpr Prefix kSecond[4] = {{7}, {5, true, 0}, {6}, {5, true, 1}};

// Decodes the bits of one core to bytes. Bytes come in pairs; first prefixes, second prefixes and payloads of three
// successive pairs are interleaved. Two pairs without payload end the stream.
class HuffmanReader {
 public:
  HuffmanReader(std::span<const uint8_t> stream, int64_t size_bits, const SymbolMap& map)
      : bits_(stream), size_bits_(size_bits), map_(map) {}

  Result<Bytes> read(int64_t count) {
    const int64_t pairs = ceil_div(count, int64_t{2});
    if ((pairs + 2) * kBitsPerPairMin > size_bits_)
      return error(ErrorCode::device, "truncated coefficient stream: {} bits cannot hold {} bytes", size_bits_, count);
    Bytes out;
    out.reserve(static_cast<size_t>(pairs) * 2);
    Pair newest{}, middle{}, oldest{};
    for (int64_t step = 0; step < pairs + 2; ++step) {
      oldest = middle;
      middle = newest;
      newest = {bits_.get(3), bits_.get(3)};
      if (step >= pairs) SK_TRY(check_dummy(newest, is_odd(count)));
      Pair second{};
      if (step >= 1) second = {second_prefix(middle[0]), second_prefix(middle[1])};
      if (step >= 2) out.insert(out.end(), {byte(prefixes_[0]), byte(prefixes_[1])});
      prefixes_ = {prefix(middle[0], second[0]), prefix(middle[1], second[1])};
    }
    SK_TRY(check_end(count, out));
    out.resize(static_cast<size_t>(count));
    return out;
  }

 private:
  using Pair = std::array<uint32_t, 2>;

  static bool is_odd(int64_t count) { return count % 2 != 0; }
  uint32_t second_prefix(uint32_t first) { return first == kNeedsSecond ? bits_.get(2) : 0; }
  static Prefix prefix(uint32_t first, uint32_t second) {
    return first == kNeedsSecond ? kSecond[second] : kFirst[first];
  }

  uint8_t byte(const Prefix& code) {
    const int length = map_[code.symbol];
    const int payload_bits = std::max(length, 1);
    const uint32_t payload = code.has_bit ? bits_.get(payload_bits - 1) << 1 | code.bit : bits_.get(payload_bits);
    const uint32_t magnitude = length == 0 ? 0 : 1U << (length - 1) | payload >> 1;
    return static_cast<uint8_t>((payload & 1) != 0 ? ~magnitude : magnitude);
  }

  Result<void> check_dummy(const Pair& pair, bool odd) const {
    const uint32_t expected = odd ? 4 : 0;
    if (pair[0] == expected && pair[1] == expected) return {};
    return error(ErrorCode::device, "prefixes {} and {} after the last byte, before bit {}: must be {}", pair[0],
                 pair[1], bits_.position(), expected);
  }

  Result<void> check_end(int64_t count, const Bytes& out) {
    if (bits_.position() != size_bits_)
      return error(ErrorCode::device, "stream size {} bits, but its {} bytes end at bit {}", size_bits_, count,
                   bits_.position());
    if (is_odd(count) && out.back() != 0)
      return error(ErrorCode::device, "the byte that makes the count even is 0x{:02x}: must be 0", out.back());
    while (bits_.position() < align_up(size_bits_, kStreamAlignBits)) {
      const int64_t at = bits_.position();
      if (bits_.get(static_cast<int>(8 - at % 8)) != 0)
        return error(ErrorCode::device, "padding after the stream is not 0 at bit {}", at);
    }
    return {};
  }

  BitReader bits_;
  int64_t size_bits_;
  const SymbolMap& map_;
  std::array<Prefix, 2> prefixes_{};  // of the pair with the next payload
};

// The output channels of a core, and their order.
class Split {
 public:
  Split(const ChipRow& chip, const CoefficientShape& shape)
      : shape_(shape), cores_(cores_used(chip, shape)), per_core_(ceil_div(shape.output_planes, cores_)) {}

  int64_t cores() const { return cores_; }
  int64_t superblocks() const { return ceil_div(per_core_, shape_.kernels_per_core); }
  int64_t total(int64_t core) const { return dealt(shape_.output_planes, core); }
  int64_t count(int64_t superblock, int64_t core) const {
    if (superblock + 1 < superblocks()) return shape_.kernels_per_core;
    return dealt(shape_.output_planes - first(superblock), core);
  }
  // Dense filters are distributed in runs; depthwise ones one to each core in order, the last core first.
  int64_t channel(int64_t superblock, int64_t core, int64_t k) const {
    if (shape_.depthwise) {
      const int64_t base = first(superblock) + k * cores_;
      return base + std::min(cores_, shape_.output_planes - base) - 1 - core;
    }
    int64_t before = 0;
    for (int64_t c = 0; c < core; ++c) before += count(superblock, c);
    return first(superblock) + before + k;
  }

 private:
  int64_t first(int64_t superblock) const { return superblock * shape_.kernels_per_core * cores_; }
  int64_t dealt(int64_t channels, int64_t core) const { return channels / cores_ + (core < channels % cores_ ? 1 : 0); }

  const CoefficientShape& shape_;
  int64_t cores_, per_core_;
};

class BufferDecoder {
 public:
  BufferDecoder(std::span<const uint8_t> buffer, const ChipRow& chip, const CoefficientShape& shape)
      : buffer_(buffer),
        shape_(shape),
        split_(chip, shape),
        pixel_center_(::skillet::vivante::hw::generation_of(chip).pixel_center) {}

  Result<Coefficients> decode() {
    SK_TRY_ASSIGN(map_, read_symbol_map(buffer_));
    all_.cores = split_.cores();
    all_.kernels_per_core = split_.total(0);
    all_.cache_bytes = static_cast<int64_t>(buffer_.size());
    int64_t at = kHeaderBytes;
    for (int64_t core = 0; core < split_.cores(); ++core) {
      const int64_t bits = stream_bits(buffer_, core);
      const auto stream = buffer_.subspan(static_cast<size_t>(at), static_cast<size_t>(stream_bytes(bits)));
      SK_TRY_IN_CONTEXT(read_core(core, stream, bits), fmt::format("coefficient stream of core {}", core));
      at += stream_bytes(bits);
    }
    return std::move(all_);
  }

 private:
  int64_t kernel_weights() const { return shape_.taps() * (shape_.depthwise ? 1 : shape_.planes); }
  int64_t kernel_bytes() const { return align_up(std::max(kernel_weights(), kBlock), kBlock); }

  Result<void> read_core(int64_t core, std::span<const uint8_t> stream, int64_t bits) {
    const int64_t kernels = split_.total(core);
    SK_TRY_ASSIGN(const Bytes bytes, HuffmanReader(stream, bits, map_).read(2 + kernels * kernel_bytes()));
    if (const auto announced = load_le<uint16_t>(bytes.data()); announced != kernels)
      return error(ErrorCode::device, "kernel count = {}: {} output planes make {}", announced, shape_.output_planes,
                   kernels);
    std::span<const uint8_t> rest = std::span(bytes).subspan(2);
    for (int64_t s = 0; s < split_.superblocks(); ++s) {
      const int64_t count = split_.count(s, core);
      const auto size = static_cast<size_t>(count * kernel_bytes());
      for (int64_t k = 0; k < count; ++k) SK_TRY(read_kernel(split_.channel(s, core, k), rest.first(size), k, count));
      rest = rest.subspan(size);
    }
    return {};
  }

  // Weight minus zero point. It is already subtracted from the bytes, modulo 256, unless they are raw.
  int weight_of(uint8_t byte) const {
    const auto weight = static_cast<uint8_t>(shape_.raw_weights ? byte : byte + shape_.zero_point);
    return weight - shape_.zero_point;
  }

  // Kernel `k` of the `count` in the bytes of one superblock: blocks outside, kernels inside; a depthwise kernel is one
  // block.
  Result<void> read_kernel(int64_t channel, std::span<const uint8_t> bytes, int64_t k, int64_t count) {
    const int64_t block = shape_.depthwise ? kernel_bytes() : kBlock;
    weights_.clear();
    for (int64_t at = k * block; at < static_cast<int64_t>(bytes.size()); at += count * block) {
      for (const uint8_t byte : bytes.subspan(static_cast<size_t>(at), static_cast<size_t>(block)))
        weights_.push_back(static_cast<int16_t>(weight_of(byte)));
    }
    for (auto i = static_cast<size_t>(kernel_weights()); i < weights_.size(); ++i) {
      if (weights_[i] != weight_of(0))
        return error(ErrorCode::device,
                     "kernel of output plane {}: weight {} only fills up a block but is {}: must be {}", channel, i,
                     weights_[i], weight_of(0));
    }
    add_kernel(channel);
    return {};
  }

  void add_kernel(int64_t channel) {
    Kernel kernel{.output_offset = static_cast<uint32_t>(channel * shape_.plane_bytes)};
    const auto taps = static_cast<size_t>(shape_.taps());
    const std::span<const int16_t> weights(weights_.data(), static_cast<size_t>(kernel_weights()));
    for (size_t plane = 0; plane * taps < weights.size(); ++plane)
      kernel.add_plane(shape_.depthwise ? channel : static_cast<int64_t>(plane), weights.subspan(plane * taps, taps));
    const auto biases = buffer_.last(4 * static_cast<size_t>(shape_.output_planes));
    kernel.bias = static_cast<int32_t>(load_le<uint32_t>(biases.data() + 4 * static_cast<size_t>(channel)));
    for (const int16_t weight : weights) kernel.bias -= pixel_center_ * int64_t{weight};
    all_.kernels.push_back(std::move(kernel));
  }

  std::span<const uint8_t> buffer_;
  const CoefficientShape& shape_;
  Split split_;
  int64_t pixel_center_;
  SymbolMap map_{};
  Coefficients all_;
  std::vector<int16_t> weights_;
};

Result<Coefficients> decode(std::span<const uint8_t> buffer, const ChipRow& chip, const CoefficientShape& shape) {
  return BufferDecoder(buffer, chip, shape).decode();
}

}  // namespace

const CoefficientFormat kCoefficientFormatV8{8, header_bytes, buffer_bytes, decode};

}  // namespace skillet::sim::vivante
