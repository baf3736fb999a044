// Bits of a stream count from the lowest bit of its first byte. It is divided into slices, each with its own
// parameters:
//
//   zdiv 3  length 15  wdiv 3  trunc 1  new palette 1 [offset 5  entries 5  bits 3  palette]  chunks
//
// A weight is an index into the palette, and after its end into the direct values; runs of zeros are coded separately.
// Indices and runs have Golomb-Rice codes: a unary quotient and `wdiv` or `zdiv` bits of remainder. A chunk has at most
// 12 bits of quotients of weights and 8 or 12 of runs; the remainders of a chunk follow the quotients of the next.
#include "npus/ethosu/sim/weights.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace skillet::sim::ethosu {
namespace {

constexpr uint32_t kEndOfStream = 7, kNoZeroRuns = 6, kLongestZdiv = 3;
constexpr uint32_t kUncompressed = 7, kLongestWdiv = 5;
constexpr uint32_t kChunkBits = 12, kShortChunkBits = 8;
constexpr int64_t kAhead = 8;  // weights that may be ahead of runs

class BitReader {
 public:
  explicit BitReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  // Zeros after the end, see is_past_end().
  uint32_t read(uint32_t count) {
    uint32_t value = 0;
    for (uint32_t i = 0; i < count; ++i, ++at_) {
      if (at_ / 8 < bytes_.size()) value |= static_cast<uint32_t>(bytes_[at_ / 8] >> (at_ % 8) & 1) << i;
    }
    return value;
  }
  void align() { at_ = (at_ + 7) / 8 * 8; }
  bool is_at_end() const { return at_ / 8 >= bytes_.size(); }
  bool is_past_end() const { return at_ > bytes_.size() * 8; }
  uint64_t byte() const { return at_ / 8; }

 private:
  std::span<const uint8_t> bytes_;
  uint64_t at_ = 0;
};

class Decoder {
 public:
  Decoder(std::span<const uint8_t> stream, uint64_t most) : bits_(stream), most_(most) {}

  Result<std::vector<int16_t>> run() {
    bool is_first = true;
    while (!bits_.is_at_end()) {
      zdiv_ = bits_.read(3);
      if (zdiv_ == kEndOfStream) {
        bits_.align();
        is_first = true;
        continue;
      }
      SK_TRY_IN_CONTEXT(read_parameters(is_first), fmt::format("byte {} of the weight stream", bits_.byte()));
      SK_TRY_IN_CONTEXT(read_slice(), fmt::format("byte {} of the weight stream", bits_.byte()));
      is_first = false;
    }
    return std::move(values_);
  }

 private:
  Result<void> read_parameters(bool is_first) {
    weights_ = bits_.read(15) + 1;
    wdiv_ = bits_.read(3);
    is_truncated_ = bits_.read(1) != 0;
    has_new_palette_ = bits_.read(1) != 0;
    if ((zdiv_ > kLongestZdiv && zdiv_ != kNoZeroRuns) || (wdiv_ > kLongestWdiv && wdiv_ != kUncompressed))
      return error(ErrorCode::fault, "a slice with divisors {} and {}, which have no meaning", zdiv_, wdiv_);
    if (!has_new_palette_) return is_first ? no_palette() : Result<void>();
    offset_ = bits_.read(5);
    const uint32_t last = bits_.read(5);
    bits_of_entry_ = bits_.read(3) + 2;
    palette_.clear();
    for (uint32_t i = 0; last > 0 && i <= last; ++i) palette_.push_back(bits_.read(bits_of_entry_));
    return {};
  }
  static Error no_palette() { return error(ErrorCode::fault, "the first slice sets up no palette"); }

  uint32_t remainder_bits() const {
    if (wdiv_ != kUncompressed) return wdiv_;
    return palette_.empty() ? bits_of_entry_ : static_cast<uint32_t>(std::bit_width(palette_.size() - 1));
  }

  int16_t value_of(uint32_t index) const {
    const auto entries = static_cast<uint32_t>(palette_.size());
    const uint32_t code = index < entries ? palette_[index] : index - entries + offset_;
    const auto magnitude = static_cast<int16_t>(code >> 1);
    return static_cast<int16_t>((code & 1) != 0 ? -magnitude : magnitude);
  }

  Result<void> read_slice() {
    const bool has_runs = zdiv_ != kNoZeroRuns;
    const size_t run_count = has_runs ? weights_ + (has_new_palette_ ? 1 : 0) : 0;
    indices_.clear(), runs_.clear();
    quotient_ = run_quotient_ = 0;
    size_t weights_seen = 0, runs_seen = 0;
    std::vector<uint32_t> quotients, quotients_before, run_quotients, run_quotients_before;
    for (bool is_last = false; !is_last;) {
      const int64_t ahead = has_runs ? static_cast<int64_t>(weights_seen) - static_cast<int64_t>(runs_seen) : 0;
      const bool reads_weights = ahead < kAhead && weights_seen < weights_;
      const bool reads_runs = has_runs && ahead >= 0 && runs_seen < run_count;
      is_last = !reads_weights && !reads_runs;
      quotients.clear(), run_quotients.clear();
      const uint32_t unary = reads_weights && wdiv_ != kUncompressed ? bits_.read(kChunkBits) : 0;
      if (reads_runs) read_run_quotients(run_quotients);
      if (reads_weights) read_quotients(unary, quotients);
      weights_seen += quotients.size(), runs_seen += run_quotients.size();
      for (const uint32_t quotient : quotients_before) {
        if (indices_.size() < weights_)
          indices_.push_back((quotient << remainder_bits()) + bits_.read(remainder_bits()));
      }
      for (const uint32_t quotient : run_quotients_before) {
        if (runs_.size() < run_count) runs_.push_back((quotient << zdiv_) + bits_.read(zdiv_));
      }
      std::swap(quotients, quotients_before), std::swap(run_quotients, run_quotients_before);
      if (bits_.is_past_end()) return error(ErrorCode::fault, "the stream ends within a slice");
    }
    return append(has_runs);
  }

  void read_run_quotients(std::vector<uint32_t>& out) {
    const uint32_t count = zdiv_ < kLongestZdiv ? kChunkBits : kShortChunkBits;
    const uint32_t unary = bits_.read(count);
    for (uint32_t i = 0; i < count; ++i) {
      if ((unary >> i & 1) != 0) {
        ++run_quotient_;
      } else {
        out.push_back(std::exchange(run_quotient_, 0));
      }
    }
  }

  void read_quotients(uint32_t unary, std::vector<uint32_t>& out) {
    const uint32_t more = bits_.read(static_cast<uint32_t>(std::popcount(unary)));
    const uint32_t slots = wdiv_ == kUncompressed && remainder_bits() > 5 ? kShortChunkBits : kChunkBits;
    for (uint32_t i = 0, at = 0; i < slots; ++i) {
      const uint32_t code = (unary >> i & 1) != 0 ? 1 + (more >> at++ & 1) : 0;
      quotient_ += code;
      if (code < 2 || is_truncated_) out.push_back(std::exchange(quotient_, 0));
    }
  }

  Result<void> append(bool has_runs) {
    uint64_t total = values_.size() + indices_.size();
    for (const uint32_t run : runs_) total += run;
    if (total > most_) return error(ErrorCode::fault, "{} weights and more, where the operation has {}", total, most_);
    size_t run = 0;
    if (has_runs && has_new_palette_) values_.resize(values_.size() + runs_[run++]);
    for (const uint32_t index : indices_) {
      if (index > 511) return error(ErrorCode::fault, "index {} is of no weight", index);
      values_.push_back(value_of(index));
      if (has_runs) values_.resize(values_.size() + runs_[run++]);
    }
    return {};
  }

  BitReader bits_;
  uint64_t most_;
  std::vector<int16_t> values_;
  // Parameters of the slice.
  uint32_t zdiv_ = 0, weights_ = 0, wdiv_ = 0, offset_ = 0, bits_of_entry_ = 0, quotient_ = 0, run_quotient_ = 0;
  bool is_truncated_ = false, has_new_palette_ = false;
  std::vector<uint32_t> palette_, indices_, runs_;
};

constexpr uint32_t kInputUblock = 8, kSubkernel = 8;

template <typename T>
constexpr T rounded_up(T value, uint32_t to) {
  return (value + to - 1) / to * to;
}

// How an order divides the kernel and its channels into blocks.
struct Blocks {
  bool is_depthwise, is_part;
  uint32_t inputs, input;    // channels; channels of a block
  uint32_t tall, wide, pad;  // of a part of the kernel; its taps are rounded up to `pad`
  uint32_t last_input;       // innermost channels

  explicit Blocks(const WeightOrder& order)
      : is_depthwise(order.traversal == Traversal::depthwise),
        is_part(order.traversal == Traversal::part_kernel),
        inputs(is_depthwise ? 1 : order.input_depth),
        input(is_part || order.is_16bit ? 16 : 32),
        tall(kSubkernel / order.dilation_y),
        wide(kSubkernel / order.dilation_x),
        pad(is_depthwise ? 4
            : is_part    ? (order.is_16bit ? 2 : 4)
                         : 1),
        last_input(is_depthwise ? 1 : kInputUblock) {}
};

// Calls `weight(o, ky, kx, i)` in the order of a stream; indices beyond the kernel or its channels are padding.
template <typename Weight>
void for_each_weight(const WeightOrder& order, const Weight& weight) {
  const Blocks blocks(order);
  for (uint32_t ob = 0; ob < order.output_depth; ob += order.block_depth) {
    const uint32_t outputs = std::min(order.block_depth, order.output_depth - ob);
    for (uint32_t ib = 0; ib < blocks.inputs; ib += blocks.input) {
      // Depth first: the inner loop runs over the whole block. Part of the kernel first: the outer loop does, up to the
      // last channel.
      const uint32_t outer = blocks.is_part ? std::min(blocks.input, blocks.inputs - ib) : 1;
      const uint32_t inner = order.traversal == Traversal::depth_first ? blocks.input : 1;
      for (uint32_t sy = 0; sy < order.kernel_height; sy += blocks.tall) {
        const uint32_t height = std::min(blocks.tall, order.kernel_height - sy);
        for (uint32_t sx = 0; sx < order.kernel_width; sx += blocks.wide) {
          const uint32_t width = std::min(blocks.wide, order.kernel_width - sx);
          const uint32_t elems = rounded_up(height * width, blocks.pad);
          for (uint32_t iu = 0; iu < outer; iu += kInputUblock) {
            for (uint32_t ou = 0; ou < outputs; ou += order.ublock_depth) {
              for (uint32_t e = 0; e < elems; ++e) {
                const uint32_t ky = e / width < height ? sy + e / width : order.kernel_height, kx = sx + e % width;
                for (uint32_t ii = 0; ii < inner; ii += kInputUblock) {
                  for (uint32_t oz = 0; oz < order.ublock_depth; ++oz) {
                    for (uint32_t iz = 0; iz < blocks.last_input; ++iz) weight(ob + ou + oz, ky, kx, ib + iu + ii + iz);
                  }
                }
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace

Result<std::vector<int16_t>> decode_weights(std::span<const uint8_t> stream, uint64_t most) {
  return Decoder(stream, most).run();
}

// The loops of for_each_weight() are independent of one another, except for the last block of each.
uint64_t count_of(const WeightOrder& order) {
  const Blocks blocks(order);
  const auto in_blocks = [](uint64_t whole, uint64_t block, const auto& count) {
    return whole / block * count(block) + (whole % block == 0 ? 0 : count(whole % block));
  };
  const uint64_t outputs = in_blocks(order.output_depth, order.block_depth,
                                     [&](uint64_t count) { return rounded_up(count, order.ublock_depth); });
  const uint64_t inputs = in_blocks(blocks.inputs, blocks.input, [&](uint64_t count) -> uint64_t {
    if (blocks.is_depthwise) return 1;
    return blocks.is_part ? rounded_up(count, kInputUblock) : blocks.input;
  });
  const uint64_t taps = in_blocks(order.kernel_height, blocks.tall, [&](uint64_t height) {
    return in_blocks(order.kernel_width, blocks.wide,
                     [&](uint64_t width) { return rounded_up(height * width, blocks.pad); });
  });
  return outputs * inputs * taps;
}

Result<std::vector<int16_t>> ordered(std::span<const int16_t> values, const WeightOrder& order) {
  if (values.size() < count_of(order))
    return error(ErrorCode::fault, "the weight stream has {} weights, too few", values.size());
  const size_t inputs = Blocks(order).inputs;
  std::vector<int16_t> out(size_t{order.kernel_height} * order.kernel_width * order.output_depth * inputs);
  size_t at = 0;
  bool has_padding = false;
  for_each_weight(order, [&](uint32_t o, uint32_t ky, uint32_t kx, uint32_t i) {
    const int16_t value = values[at++];
    if (ky < order.kernel_height && o < order.output_depth && i < inputs)
      out[((size_t{ky} * order.kernel_width + kx) * order.output_depth + o) * inputs + i] = value;
    else
      has_padding |= value != 0;
  });
  SK_CHECK(at == count_of(order));
  if (has_padding) return error(ErrorCode::fault, "the weight stream has weights where there is no channel");
  return out;
}

}  // namespace skillet::sim::ethosu
