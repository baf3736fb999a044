#include "npus/vivante/compiler/weights_v7.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/int_math.h"
#include "npus/vivante/compiler/stream_v7.h"
#include "simd/byte_matrix.h"

namespace skillet::npus::vivante {
namespace {

constexpr int kStreamAlignBytes = 64;
constexpr int kSixChannels = 6;

// The kernels that one core computes in one superblock.
struct Group {
  int32_t first = 0;  // output channel of kernel 0
  int32_t count = 0;
  bool last_superblock = false;
};

std::vector<Group> groups_of_core(const KernelSplit& split, int32_t core) {
  std::vector<Group> groups;
  for (int32_t s = 0; s < split.superblocks; ++s) {
    const bool last = s == split.superblocks - 1;
    const int32_t count =
        last ? split.kernels_per_core - split.kernels_per_superblock * s : split.kernels_per_superblock;
    groups.push_back({s * split.kernels_per_superblock * split.cores_used + core * count, count, last});
  }
  return groups;
}

// Walks the kernels of one core in stream order and feeds a sink.
// Kernels with oc >= output_channels only fill up the count; the hardware drops their planes. Their weight bytes are 0.
template <typename Sink>
class Walker {
 public:
  Walker(const Kernels& kernels, const CoefficientLayout& layout, Sink& sink)
      : k_(kernels),
        layout_(layout),
        sink_(sink),
        patch_(kernels.patch_elems()),
        filler_(static_cast<size_t>(patch_ * kSixChannels), 0),
        rows_(static_cast<size_t>(layout.split.kernels_per_superblock * kRows), 0) {}

  void core(int32_t core) {
    for (const Group& group : groups_of_core(layout_.split, core)) {
      if (layout_.six_channel_order)
        six_channels(group);
      else
        dense(group);
    }
  }

 private:
  static constexpr int32_t kRows = 64;  // gathered at once

  bool exists(int32_t oc) const { return oc < k_.output_channels; }

  // Weights of kernel oc in channels [z, z + count) if they are in its band; null if all are the zero point.
  const uint8_t* weights(int32_t oc, int32_t z) const {
    if (!exists(oc)) return filler_.data();
    const int32_t inside = z - k_.first_channel(oc);
    if (inside < 0 || inside >= k_.band) return nullptr;
    return k_.weights.data() + (int64_t{oc} * k_.band + inside) * patch_;
  }

  void bias(int32_t oc) {
    sink_.flush();
    sink_.raw(static_cast<uint32_t>(exists(oc) ? k_.biases[static_cast<size_t>(oc)] : k_.filler_bias));
  }
  void offset(int32_t oc) {
    sink_.flush();
    sink_.raw(layout_.plane_bytes * static_cast<uint32_t>(oc));
  }

  // One kernel's weights of `count` consecutive channels, with bias and offset at their places.
  void piece(int32_t oc, const uint8_t* at, int count, bool first, bool last) {
    const int total = count * patch_;
    if (at == nullptr) {
      if (first) sink_.zeros(1), bias(oc);
      sink_.zeros(first ? total - 1 : total);
    } else if (first) {
      sink_.values(at, 1);
      bias(oc);
      sink_.values(at + 1, total - 1);
    } else {
      sink_.values(at, total);
    }
    if (last) offset(oc);
  }

  void dense(const Group& group) {
    const bool by_rows = patch_ == 1 && k_.kernels_per_band == 0;
    for (int32_t z = 0, count = 1; z < k_.input_channels; z += count) {
      const bool first = z == 0, last = z == k_.input_channels - 1;
      count = 1;
      if (by_rows && !first && !last) {
        count = std::min(kRows, k_.input_channels - 1 - z);
        rows(group, z, count);
        continue;
      }
      if (first || last || k_.kernels_per_band == 0) {
        for (int32_t k = 0; k < group.count; ++k) piece(group.first + k, weights(group.first + k, z), 1, first, last);
      } else if ((count = channels_without_weights(group, z)) > 0) {
        zero_channels(group, count);
        continue;
      } else {
        count = 1;
        banded_channel(group, z);
      }
      if (group.last_superblock) sink_.flush();
    }
  }

  // Number of channels from z on, except the last one, outside the bands of all kernels of the group.
  int32_t channels_without_weights(const Group& group, int32_t z) const {
    if (!exists(group.first + group.count - 1)) return 0;
    const int32_t from = k_.first_channel(group.first);
    const int32_t to = k_.first_channel(group.first + group.count - 1) + k_.band;
    const int32_t last = k_.input_channels - 1;
    if (z < from) return std::min(from, last) - z;
    return z >= to ? last - z : 0;
  }
  void zero_channels(const Group& group, int32_t count) {
    const int64_t elems = int64_t{group.count} * patch_;
    if (group.last_superblock)
      sink_.zero_rows(count, elems);
    else
      sink_.zeros(count * elems);
  }

  // 1x1: one weight of each kernel, for `count` channels from z on, gathered first.
  void rows(const Group& group, int32_t z, int32_t count) {
    const auto stride = static_cast<size_t>(group.count);
    const auto real = static_cast<size_t>(std::clamp(k_.output_channels - group.first, 0, group.count));
    if (real > 0)
      transpose_bytes(k_.weights.data() + int64_t{group.first} * k_.band + z, rows_.data(),
                      {real, static_cast<size_t>(count), static_cast<size_t>(k_.band), stride});
    for (int32_t r = 0; r < count; ++r) {
      uint8_t* const row = rows_.data() + static_cast<size_t>(r) * stride;
      std::fill(row + real, row + stride, uint8_t{0});
      sink_.values(row, group.count);
      if (group.last_superblock) sink_.flush();
    }
  }

  // Depthwise: in channel z only the kernels of z's band have weights; runs of zero points are written at once.
  void banded_channel(const Group& group, int32_t z) {
    const int32_t band_first = z / k_.band * k_.kernels_per_band;
    const int32_t from = std::clamp(band_first - group.first, 0, group.count);
    const int32_t real = std::clamp(k_.output_channels - group.first, 0, group.count);
    const int32_t to = std::clamp(band_first + k_.kernels_per_band - group.first, from, std::max(real, from));
    sink_.zeros(int64_t{from} * patch_);
    for (int32_t k = from; k < to; ++k) piece(group.first + k, weights(group.first + k, z), 1, false, false);
    sink_.zeros(int64_t{std::max(real, to) - to} * patch_);
    for (int32_t k = std::max(real, to); k < group.count; ++k) piece(group.first + k, filler_.data(), 1, false, false);
  }

  void six_channels(const Group& group) {
    for (int32_t z = 0; z < k_.input_channels; z += kSixChannels) {
      const int count = std::min(kSixChannels, k_.input_channels - z);
      const bool last = z + count == k_.input_channels;
      if (patch_ == 1 && z > 0 && !last) {
        sixes(group, z);
        continue;
      }
      for (int32_t k = 0; k < group.count; ++k)
        piece(group.first + k, weights(group.first + k, z), count, z == 0, last);
    }
  }
  // 1x1: six weights of each kernel, gathered first.
  void sixes(const Group& group, int32_t z) {
    for (int32_t k = 0; k < group.count; ++k)
      std::memcpy(rows_.data() + int64_t{k} * kSixChannels, weights(group.first + k, z), kSixChannels);
    sink_.values(rows_.data(), group.count * kSixChannels);
  }

  const Kernels& k_;
  const CoefficientLayout& layout_;
  Sink& sink_;
  int patch_;
  Bytes filler_, rows_;
};

template <typename Sink>
void walk_core(const Kernels& kernels, const CoefficientLayout& layout, int32_t core, Sink& sink) {
  Walker<Sink> walker(kernels, layout, sink);
  walker.core(core);
}

// Whether the rule of choose_zrl_bits() certainly ends at 0 for these kernels on `core`. One more bit for runs makes
// each of V values and S(b) full symbols one bit longer and saves at most Z / 2^(b-1) symbols of 7 + b bits, where Z
// weights are the zero point: with V >= 8 Z it never helps.
bool runs_never_pay(const Kernels& k, const CoefficientLayout& layout, int32_t core) {
  if (k.kernels_per_band != 0) return false;
  const int64_t elems = int64_t{k.input_channels} * k.patch_elems();
  int64_t zeros = 0, weights = 0;
  for (const Group& group : groups_of_core(layout.split, core)) {
    const int64_t real = std::clamp(k.output_channels - group.first, 0, group.count);
    if (real > 0) {
      const auto kernels =
          k.weights.subspan(static_cast<size_t>(group.first * elems), static_cast<size_t>(real * elems));
      zeros += std::ranges::count(kernels, k.zero_point);
    }
    if (k.zero_point == 0) zeros += (group.count - real) * elems;
    weights += group.count * elems;
  }
  return weights - zeros >= 8 * zeros;
}

bool is_plain(const Kernels& kernels, const CoefficientLayout& layout) {
  if (layout.zrl_bits_max == 0) return true;
  for (int32_t c = 0; c < layout.split.cores_used; ++c)
    if (!runs_never_pay(kernels, layout, c)) return false;
  return true;
}

// Bits of one core with zrl_bits 0: weights, and a bias and an offset for each kernel.
int64_t plain_bits(const Kernels& k, const CoefficientLayout& layout) {
  constexpr int64_t kBiasAndOffsetBits = 2 * 32;
  const int64_t elems = int64_t{k.input_channels} * k.patch_elems();
  return kHeaderBits + layout.split.kernels_per_core * (elems * kValueBits + kBiasAndOffsetBits);
}

constexpr int64_t stream_bytes(int64_t bits) { return ceil_div(bits, 32) * 4; }

// The recorded driver's rule: from the most bits down while the total does not grow (section 6.2.5).
int choose_zrl_bits(const std::vector<CountSink>& counts, int zrl_bits_max) {
  const auto total = [&](int bits) {
    int64_t sum = 0;
    for (const CountSink& count : counts) sum += stream_bytes(count.bits(bits));
    return sum;
  };
  int best = zrl_bits_max;
  int64_t best_total = total(best);
  for (int bits = zrl_bits_max - 1; bits >= 0; --bits) {
    const int64_t next = total(bits);
    if (next > best_total) break;
    best = bits;
    best_total = next;
  }
  return best;
}

uint32_t header_bytes(int32_t nn_cores) { return static_cast<uint32_t>(align_up(4 * nn_cores, kStreamAlignBytes)); }

// Adds a header and room for streams of these sizes; returns where each stream starts.
std::vector<size_t> lay_out(const std::vector<int64_t>& bits, int32_t nn_cores, Coefficients& out) {
  std::vector<size_t> starts;
  size_t at = header_bytes(nn_cores);
  size_t largest = 0;
  Bytes header(at);
  for (size_t c = 0; c < bits.size(); ++c) {
    const auto size = static_cast<size_t>(align_up(stream_bytes(bits[c]), kStreamAlignBytes));
    store_le(header.data() + 4 * c, static_cast<uint32_t>(size));
    starts.push_back(at);
    at += size;
    largest = std::max(largest, size);
  }
  out.bytes = std::move(header);
  out.bytes.resize(at + BitWriter::kSlackBytes);
  out.cache_bytes = static_cast<uint32_t>(largest * bits.size());
  return starts;
}

// Weights in the order of the walker: patches in the order of the MAC array. 1x1 filters, which are read in groups of
// channels, have their zero points written out.
Kernels in_stream_order(const Kernels& plain) {
  constexpr int32_t kPatchColumns = 3;
  if (plain.patch_elems() == 1 && plain.kernels_per_band != 0) return without_bands(plain, plain.zero_point);
  if (plain.width <= kPatchColumns) return plain;
  const std::vector<int32_t> order = patch_order(plain.height, plain.width);
  auto ordered = std::make_shared<Bytes>(plain.weights.size());
  for (size_t patch = 0; patch < ordered->size(); patch += order.size()) {
    for (size_t i = 0; i < order.size(); ++i)
      (*ordered)[patch + i] = plain.weights[patch + static_cast<size_t>(order[i])];
  }
  Kernels kernels = plain;
  kernels.weights = *ordered;
  kernels.lowered = std::move(ordered);
  return kernels;
}

}  // namespace

std::vector<int32_t> patch_order(int32_t height, int32_t width) {
  std::vector<int32_t> order;
  for (int32_t r0 = 0; r0 < height; r0 += 2) {
    for (int32_t c0 = 0; c0 < width; c0 += 3) {
      for (int32_t r = r0; r < std::min(r0 + 2, height); ++r) {
        for (int32_t c = c0; c < std::min(c0 + 3, width); ++c) order.push_back(r * width + c);
      }
    }
  }
  return order;
}

Coefficients write_streams_v7(const Kernels& plain, const CoefficientLayout& layout) {
  const Kernels kernels = in_stream_order(plain);
  const int32_t cores = layout.split.cores_used;
  Coefficients out;
  std::vector<int64_t> bits;
  if (is_plain(kernels, layout)) {
    for (int32_t c = 0; c < cores; ++c) bits.push_back(plain_bits(kernels, layout));
  } else {
    std::vector<CountSink> counts(static_cast<size_t>(cores), CountSink(kernels.zero_point));
    for (int32_t c = 0; c < cores; ++c) walk_core(kernels, layout, c, counts[static_cast<size_t>(c)]);
    out.zrl_bits = choose_zrl_bits(counts, layout.zrl_bits_max);
    for (const CountSink& count : counts) bits.push_back(count.bits(out.zrl_bits));
  }
  const std::vector<size_t> starts = lay_out(bits, layout.nn_cores, out);
  for (int32_t c = 0; c < cores; ++c) {
    uint8_t* at = out.bytes.data() + starts[static_cast<size_t>(c)];
    if (out.zrl_bits == 0) {
      PlainEmitSink emit(at, kernels.zero_point, layout.split.kernels_per_core);
      walk_core(kernels, layout, c, emit);
    } else {
      EmitSink emit(at, kernels.zero_point, out.zrl_bits, layout.split.kernels_per_core);
      walk_core(kernels, layout, c, emit);
    }
  }
  out.bytes.resize(out.bytes.size() - BitWriter::kSlackBytes);
  return out;
}

Coefficients write_coefficients_v7(const hw::ChipRow& chip, const NnOperation& op, const KernelSplit& split) {
  return write_streams_v7(op.kernels, {.split = split,
                                       .nn_cores = chip.nn_cores,
                                       .zrl_bits_max = op.search_zero_runs ? chip.zrl_bits_max : 0,
                                       .six_channel_order = op.six_channel_order,
                                       .plane_bytes = static_cast<uint32_t>(op.out.plane_bytes())});
}

CoefficientSizes coefficient_sizes_v7(const hw::ChipRow& chip, const NnOperation& op, const KernelSplit& split) {
  const Kernels& k = op.kernels;
  constexpr int64_t kBiasAndOffset = 8;
  const int64_t kernel_bytes = int64_t{k.input_channels} * k.patch_elems() + kBiasAndOffset;
  return {.raw = k.output_channels * kernel_bytes,
          .recorded = static_cast<int64_t>(write_coefficients_v7(chip, op, split).bytes.size())};
}

}  // namespace skillet::npus::vivante
