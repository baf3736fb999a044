#include "npus/vivante/compiler/weights_v8.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/int_math.h"
#include "npus/vivante/compiler/bit_writer.h"
#include "npus/vivante/compiler/huffman_v8.h"

namespace skillet::npus::vivante {
namespace {

constexpr size_t kHeaderBytes = 64, kSymbolMapAt = 20, kStreamSizesAt = 28;
constexpr uint8_t kVersion1 = 0x10;
constexpr int64_t kStreamAlignBits = 512;
constexpr int32_t kBlock = 9;  // weights of one kernel at a time

// Number of channels of `core` when `channels` are distributed evenly; the first cores get the rest.
int32_t share(int32_t channels, int32_t cores, int32_t core) {
  return channels / cores + (core < channels % cores ? 1 : 0);
}

// Output channels of one superblock and core, in stream order.
std::vector<int32_t> channels_of(const FilterView& filter, const KernelSplit& split, int32_t superblock, int32_t core) {
  const int32_t cores = split.cores_used;
  const int32_t first = superblock * split.kernels_per_superblock * cores;
  const bool last = superblock == split.superblocks - 1;
  const int32_t end = last ? filter.output_channels : first + split.kernels_per_superblock * cores;
  std::vector<int32_t> channels(static_cast<size_t>(share(end - first, cores, core)));
  int32_t next = first;
  for (int32_t c = 0; c < core; ++c) next += share(end - first, cores, c);
  for (int32_t& channel : channels) channel = next++;
  if (!filter.depthwise) return channels;
  // One channel to each core in order, the last core first.
  for (size_t group = 0; group < channels.size(); ++group) {
    const int32_t base = first + static_cast<int32_t>(group) * cores;
    channels[group] = base + std::min(cores, end - base) - 1 - core;
  }
  return channels;
}

int32_t kernel_bytes(const FilterView& filter) { return align_up(filter.weights_per_kernel, kBlock); }

// The bytes that the stream of one core encodes.
Bytes bytes_of_core(const FilterView& filter, const KernelSplit& split, int32_t core,
                    std::span<const uint8_t> weights) {
  const int32_t n = filter.weights_per_kernel;
  const int32_t block = filter.depthwise ? kernel_bytes(filter) : kBlock;
  const int32_t kernels = share(filter.output_channels, split.cores_used, core);
  Bytes bytes(2 + static_cast<size_t>(int64_t{kernels} * kernel_bytes(filter)));
  store_le(bytes.data(), static_cast<uint16_t>(kernels));
  uint8_t* to = bytes.data() + 2;
  for (int32_t s = 0; s < split.superblocks; ++s) {
    const std::vector<int32_t> channels = channels_of(filter, split, s, core);
    for (int32_t at = 0; at < n; at += block) {
      const auto count = static_cast<size_t>(std::min(block, n - at));
      for (const int32_t channel : channels) {
        std::copy_n(weights.data() + int64_t{channel} * n + at, count, to);
        to += block;
      }
    }
  }
  return bytes;
}

// All bytes to send, before coding.
struct Streams {
  std::vector<Bytes> bytes;  // per core
  std::vector<huffman::LengthHistogram> lengths;
  huffman::ByteHistogram all{};
};

Streams make_streams(const FilterView& filter, const KernelSplit& split) {
  Bytes deviations(filter.weights.size());
  std::transform(filter.weights.begin(), filter.weights.end(), deviations.begin(),
                 [&](uint8_t weight) { return static_cast<uint8_t>(weight - filter.zero_point); });
  Streams streams;
  for (int32_t core = 0; core < split.cores_used; ++core) {
    const Bytes& bytes = streams.bytes.emplace_back(bytes_of_core(filter, split, core, deviations));
    const huffman::ByteHistogram histogram = huffman::count_bytes(bytes);
    streams.lengths.push_back(huffman::count_lengths(histogram, bytes.size()));
    for (size_t b = 0; b < 256; ++b) streams.all[b] += histogram[b];
  }
  return streams;
}

huffman::SymbolMap choose_map(const FilterView& filter, const Streams& streams, SymbolMapChoice choice) {
  if (choice == SymbolMapChoice::smallest) return huffman::smallest_map(streams.lengths, kStreamAlignBits);
  const huffman::ByteHistogram unsigned_bytes = huffman::count_bytes(filter.weights);
  huffman::ByteHistogram model_bytes{};
  for (size_t b = 0; b < 256; ++b) model_bytes[b ^ filter.model_xor] = unsigned_bytes[b];
  return huffman::recorded_map(model_bytes);
}

void write_header(const huffman::SymbolMap& map, const Streams& streams, uint8_t* to) {
  to[0] = kVersion1;
  for (size_t s = 0; s < map.size(); ++s)
    to[kSymbolMapAt + s / 2] = static_cast<uint8_t>(to[kSymbolMapAt + s / 2] | map[s] << (s % 2 * 4));
  for (size_t core = 0; core < streams.lengths.size(); ++core)
    store_le(to + kStreamSizesAt + 4 * core, static_cast<uint32_t>(huffman::stream_bits(streams.lengths[core], map)));
}

size_t stream_bytes(const huffman::LengthHistogram& lengths, const huffman::SymbolMap& map) {
  return static_cast<size_t>(align_up(huffman::stream_bits(lengths, map), kStreamAlignBits) / 8);
}

size_t buffer_bytes(const FilterView& filter, const Streams& streams, const huffman::SymbolMap& map) {
  size_t total = kHeaderBytes + 4 * static_cast<size_t>(filter.output_channels);
  for (const huffman::LengthHistogram& lengths : streams.lengths) total += stream_bytes(lengths, map);
  return total;
}

double entropy_bits(const huffman::ByteHistogram& histogram) {
  double total = 0, bits = 0;
  for (const uint32_t count : histogram) total += count;
  for (const uint32_t count : histogram) {
    if (count != 0) bits += count * std::log2(total / count);
  }
  return bits;
}

}  // namespace

Coefficients write_streams_v8(const FilterView& filter, const KernelSplit& split, SymbolMapChoice choice) {
  const Streams streams = make_streams(filter, split);
  const huffman::SymbolMap map = choose_map(filter, streams, choice);
  Coefficients out;
  const size_t size = buffer_bytes(filter, streams, map);
  out.bytes.resize(size + BitWriter::kSlackBytes);
  write_header(map, streams, out.bytes.data());
  uint8_t* at = out.bytes.data() + kHeaderBytes;
  for (size_t core = 0; core < streams.bytes.size(); ++core) {
    huffman::write(streams.bytes[core], map, at);
    at += stream_bytes(streams.lengths[core], map);
  }
  for (const int32_t bias : filter.biases) {
    store_le(at, static_cast<uint32_t>(bias));
    at += 4;
  }
  out.bytes.resize(size);
  out.cache_bytes = static_cast<uint32_t>(size);
  return out;
}

CoefficientSizes sizes_v8(const FilterView& filter, const KernelSplit& split) {
  const Streams streams = make_streams(filter, split);
  const auto size = [&](SymbolMapChoice choice) {
    return static_cast<int64_t>(buffer_bytes(filter, streams, choose_map(filter, streams, choice)));
  };
  const int64_t biases = 4 * int64_t{filter.output_channels};
  huffman::LengthHistogram total{};
  for (const huffman::LengthHistogram& lengths : streams.lengths) {
    for (size_t l = 0; l < total.size(); ++l) total[l] += lengths[l];
  }
  return {.raw = static_cast<int64_t>(filter.weights.size()) + biases,
          .recorded = size(SymbolMapChoice::recorded),
          .smallest = size(SymbolMapChoice::smallest),
          .format = ceil_div(huffman::fewest_bits(total), int64_t{8}) + biases,
          .entropy = static_cast<int64_t>(std::ceil(entropy_bits(streams.all) / 8)) + biases};
}

namespace {

// Filters with a depth multiplier are written out for all input channels.
Kernels sent_kernels(const NnOperation& op) {
  return op.kernels.kernels_per_band != 0 && !op.depthwise ? without_bands(op.kernels, op.kernels.zero_point)
                                                           : op.kernels;
}

FilterView view_of(const Kernels& kernels, const NnOperation& op) {
  return {.output_channels = kernels.output_channels,
          .weights_per_kernel = kernels.band * kernels.patch_elems(),
          .depthwise = op.depthwise,
          .zero_point = op.raw_weights ? uint8_t{0} : kernels.zero_point,
          .model_xor = kernels.model_xor,
          .weights = kernels.weights,
          .biases = kernels.biases};
}

}  // namespace

Coefficients write_coefficients_v8(const hw::ChipRow&, const NnOperation& op, const KernelSplit& split) {
  const Kernels kernels = sent_kernels(op);
  return write_streams_v8(view_of(kernels, op), split, op.symbol_map);
}

CoefficientSizes coefficient_sizes_v8(const hw::ChipRow&, const NnOperation& op, const KernelSplit& split) {
  const Kernels kernels = sent_kernels(op);
  return sizes_v8(view_of(kernels, op), split);
}

}  // namespace skillet::npus::vivante
