// The CNA's reading of features and weights (docs/hw/rockchip.md, hardware specification 5.1 to 5.3).
#include <array>
#include <cstring>
#include <numeric>

#include "base/int_math.h"
#include "npus/rockchip/sim/conv_job.h"
#include "npus/rockchip/sim/fault.h"
#include "simd/byte_gemm.h"
#include "simd/gemm.h"

namespace skillet::sim::rockchip {
namespace {

constexpr int64_t kAtom = 16;
constexpr int64_t kKernelGroup = 32, kLaneGroup = 32;  // weights of a direct convolution
constexpr int64_t kDepthwiseGroup = 64;
constexpr size_t kBankBytes = 32768;

// Atom of (surface, row, column 0), relative to the feature address.
int64_t row_atom(const ConvJob& job, int64_t surface, int64_t y) {
  if (job.line_by_line) return y * job.line_stride + surface * (job.surface_stride + job.in_width);
  return y / 4 * job.line_stride + y % 4 * job.in_width + surface * (job.surface_stride + 4 * job.in_width);
}

Result<void> read_row(const ConvJob& job, const Dma& dma, int64_t offset, std::span<uint8_t> row, Extent& touched) {
  const int64_t address = job.feature_address + offset;
  if (address < 0 || address > INT64_C(0xffffffff))
    return stall("IOMMU fault: features at {:#x}: no such address", address);
  touched.add(address, static_cast<int64_t>(row.size()));
  return dma.read(static_cast<uint64_t>(address), row, "features");
}

Result<void> read_cube(const ConvJob& job, const Dma& dma, std::vector<int8_t>& features, Extent& touched) {
  std::vector<uint8_t> row(static_cast<size_t>(job.in_width * kAtom));
  const auto stride = static_cast<size_t>(job.lane_stride());
  for (int64_t surface = 0; surface < job.in_lanes / kAtom; ++surface) {
    for (int64_t y = 0; y < job.in_height; ++y) {
      SK_TRY(read_row(job, dma, row_atom(job, surface, y) * kAtom, row, touched));
      int8_t* to = features.data() + static_cast<size_t>(y * job.in_width) * stride + surface * kAtom;
      for (int64_t x = 0; x < job.in_width; ++x, to += stride) std::memcpy(to, row.data() + x * kAtom, kAtom);
    }
  }
  return {};
}

int8_t convert(const Converter& c, int lane, uint8_t byte) {
  const int64_t value = c.is_signed ? int64_t{static_cast<int8_t>(byte)} : int64_t{byte};
  if (c.bypass || !(c.enabled_lanes >> lane & 1)) return saturate8(value);
  const ConverterLane& l = c.lanes[lane % 4];
  if (c.add_first) return saturate8(round_shift((value + l.offset) * l.scale, l.shift, c.tie));
  return saturate8(round_shift(value * l.scale, l.shift, c.tie) + l.offset);
}

// Every pixel becomes one atom. The lanes after its channels get a converted 0.
Result<void> read_packed(const ConvJob& job, const Dma& dma, std::vector<int8_t>& features, Extent& touched) {
  const auto channels = static_cast<size_t>(job.pixel_channels), stride = static_cast<size_t>(job.lane_stride());
  std::array<std::array<int8_t, 256>, kAtom> converted{};  // [lane][byte]
  std::array<int8_t, kAtom> atom{};
  for (size_t lane = 0; lane < kAtom; ++lane) {
    atom[lane] = convert(job.converter, static_cast<int>(lane), 0);
    for (size_t byte = 0; lane < channels && byte < 256; ++byte)
      converted[lane][byte] = convert(job.converter, static_cast<int>(lane), static_cast<uint8_t>(byte));
  }
  std::vector<uint8_t> row(static_cast<size_t>(job.in_width) * channels);
  for (int64_t y = 0; y < job.in_height; ++y) {
    SK_TRY(read_row(job, dma, y * job.line_stride * job.pixel_channels, row, touched));
    int8_t* to = features.data() + static_cast<size_t>(y * job.in_width) * stride;
    for (size_t x = 0; x < static_cast<size_t>(job.in_width); ++x, to += stride) {
      for (size_t lane = 0; lane < channels; ++lane)
        atom[lane] = converted[lane][row[x * channels + (job.reversed_pixels ? channels - 1 - lane : lane)]];
      std::memcpy(to, atom.data(), kAtom);
    }
  }
  return {};
}

// Turns pixels in column order into pixels in row order.
void transpose(const ConvJob& job, std::vector<int8_t>& features) {
  const std::vector<int8_t> from = features;
  const auto stride = static_cast<size_t>(job.lane_stride());
  for (int64_t i = 0; i < job.in_width * job.in_height; ++i) {
    const int64_t at = i % job.in_height * job.in_width + i / job.in_height;
    std::memcpy(features.data() + static_cast<size_t>(i) * stride, from.data() + static_cast<size_t>(at) * stride,
                stride);
  }
}

// Hardware specification 4.4 (lanes), 7.3 (domain).
std::vector<int8_t> pad_lanes(const ConvJob& job, const Options& options) {
  std::vector<int8_t> pad(static_cast<size_t>(job.lane_stride()));
  const bool convert_pad = job.pixel_channels != 0 && options.packed_pad == PackedPad::stored;
  for (int64_t lane = 0; lane < job.in_lanes; ++lane) {
    const bool odd_of_first_half = job.depthwise && lane % 64 < 32 && lane % 2 == 1;
    const uint8_t byte = job.pad[odd_of_first_half ? 1 : 0];
    pad[static_cast<size_t>(lane)] =
        convert_pad ? convert(job.converter, static_cast<int>(lane), byte) : static_cast<int8_t>(byte);
  }
  return pad;
}

// [group of 32 kernels][group of 32 lanes][tap][kernel][lane]; the last groups hold only the remaining kernels and
// lanes.
void spread_direct(const ConvJob& job, std::span<const uint8_t> bytes, std::vector<int8_t>& weights) {
  const auto taps = job.taps(), stride = job.lane_stride();
  size_t at = 0;
  for (int64_t first = 0; first < job.kernels; first += kKernelGroup) {
    const int64_t kernels = std::min(kKernelGroup, job.kernels - first);
    for (int64_t lane = 0; lane < job.in_lanes; lane += kLaneGroup) {
      const int64_t lanes = std::min(kLaneGroup, job.in_lanes - lane);
      for (int64_t tap = 0; tap < taps; ++tap) {
        for (int64_t k = first; k < first + kernels; ++k) {
          int8_t* to = weights.data() + (k * taps + tap) * stride + lane;
          std::memcpy(to, bytes.data() + at, static_cast<size_t>(lanes));
          at += static_cast<size_t>(lanes);
        }
      }
    }
  }
}

// [group of 64 channels][tap][channel]
void spread_depthwise(const ConvJob& job, std::span<const uint8_t> bytes, std::vector<int8_t>& weights) {
  size_t at = 0;
  for (int64_t lane = 0; lane < job.in_lanes; lane += kDepthwiseGroup) {
    const int64_t lanes = std::min(kDepthwiseGroup, job.in_lanes - lane);
    for (int64_t tap = 0; tap < job.taps(); ++tap) {
      int8_t* to = weights.data() + tap * job.lane_stride() + lane;
      std::memcpy(to, bytes.data() + at, static_cast<size_t>(lanes));
      at += static_cast<size_t>(lanes);
    }
  }
}

// [group of 64 channels][tap][two channels][4 bytes]: first bytes of both, then the second ones.
void spread_pairs(const ConvJob& job, std::span<const uint8_t> bytes, size_t which, std::vector<int8_t>& weights) {
  size_t at = 0;
  for (int64_t first = 0; first < job.in_lanes; first += kDepthwiseGroup) {
    const int64_t lanes = std::min(kDepthwiseGroup, job.in_lanes - first);
    for (int64_t tap = 0; tap < job.taps(); ++tap, at += static_cast<size_t>(2 * lanes)) {
      for (int64_t j = 0; j < lanes; ++j) {
        const size_t slot = at + static_cast<size_t>(4 * (j / 2) + j % 2) + 2 * which;
        weights[static_cast<size_t>(tap * job.lane_stride() + first + j)] = static_cast<int8_t>(bytes[slot]);
      }
    }
  }
}

}  // namespace

ConvWeights second_weights(const ConvJob& job, std::span<const uint8_t> bytes) {
  ConvWeights weights;
  weights.plain.resize(static_cast<size_t>(job.taps() * job.lane_stride()));
  spread_pairs(job, bytes, 1, weights.plain);
  return weights;
}

int64_t ConvJob::lane_stride() const {
  return align_up(depthwise ? std::max(in_lanes, out_lanes) : in_lanes, static_cast<int64_t>(gemm::kDepthAlign));
}

ConvWeights read_weights(const ConvJob& job, std::span<const uint8_t> bytes) {
  ConvWeights weights;
  weights.plain.resize(static_cast<size_t>(job.kernels * job.taps() * job.lane_stride()));
  if (job.paired_weights) {
    spread_pairs(job, bytes, 0, weights.plain);
    return weights;
  }
  if (job.depthwise) {
    spread_depthwise(job, bytes, weights.plain);
    return weights;
  }
  spread_direct(job, bytes, weights.plain);
  const auto kernels = static_cast<size_t>(job.kernels);
  const size_t depth = weights.plain.size() / kernels;
  if (byte_gemm::available()) {
    weights.packed = byte_gemm::pack(weights.plain.data(), kernels, depth);
    for (size_t k = 0; k < kernels; ++k) {
      const auto row = std::span(weights.plain).subspan(k * depth, depth);
      weights.column_start.push_back(-128 * std::accumulate(row.begin(), row.end(), 0));
    }
  } else {
    weights.pairs.resize(weights.plain.size());
    gemm::widen(weights.plain.data(), weights.plain.size(), 0, weights.pairs.data());
    weights.pairs.resize(weights.plain.size() + depth, 1);
  }
  return weights;
}

Result<ConvOperands> read_operands(const ConvJob& job, const Options& options, const Dma& dma,
                                   std::shared_ptr<const ConvWeights> weights, Extent& touched) {
  ConvOperands operands;
  operands.features.resize(static_cast<size_t>(job.in_width * job.in_height * job.lane_stride()));
  operands.pad = pad_lanes(job, options);
  operands.weights = std::move(weights);
  SK_TRY(job.pixel_channels != 0 ? read_packed(job, dma, operands.features, touched)
                                 : read_cube(job, dma, operands.features, touched));
  if (job.transposed) transpose(job, operands.features);
  auto beyond = dma.check_mapped(static_cast<uint64_t>(touched.end), kBankBytes, "features, a bank beyond their end");
  if (!beyond.ok()) SK_TRY(broken(options.features_over_read, "features_over_read", std::move(beyond).error()));
  return operands;
}

}  // namespace skillet::sim::rockchip
