// Decoder of the V7 coefficient stream: weights, biases and output offsets of all kernels of an NN job.
// Called by nn.cpp.
// Must not know: images, requantization, any encoder. Format: specification 6.2.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace skillet::sim::vivante {

// Order in which a stream visits the weights of a kernel and the kernels of a superblock.
enum class StreamOrder : uint8_t {
  dense,        // superblock, plane, kernel, 3x2 patch
  dense_rows,   // the same without the column split of patches: superblock, plane, kernel, row, column
  six_planes,   // 1x1 filters: superblock, group of six planes, kernel, plane
  kernel_major  // superblock, kernel, plane, row, column
};

// What the descriptor says about the coefficients.
struct CoefficientShape {
  int kernel_width = 1, kernel_height = 1;
  int64_t planes = 1;            // input channels
  int64_t kernels_per_core = 1;  // in one superblock
  uint8_t zero_point = 0;
  StreamOrder order = StreamOrder::dense;

  int64_t taps() const { return int64_t{kernel_width} * kernel_height; }
  bool operator==(const CoefficientShape&) const = default;
};

struct Kernel {
  int32_t bias = 0;
  uint32_t output_offset = 0;    // bytes from the job's output address to this kernel's plane
  std::vector<uint32_t> planes;  // input planes with a weight other than the zero point, ascending
  std::vector<int16_t> weights;  // weight - zero point of those planes: [plane][row][column]
  int64_t magnitude = 0;         // sum of |weight - zero point|
};

struct Coefficients {
  std::vector<Kernel> kernels;   // core after core, each in stream order
  int64_t cores = 0;             // with a stream
  int64_t kernels_per_core = 0;  // announced by each stream, all superblocks together
  int64_t longest_stream_bytes = 0;
};

constexpr int64_t coefficient_header_bytes(int nn_cores) { return (4 * nn_cores + 63) / 64 * 64; }

// Bytes that header and streams take together; `header` has coefficient_header_bytes(). Error when a size is not legal.
Result<int64_t> coefficient_bytes(std::span<const uint8_t> header, int nn_cores);

// `buffer` has coefficient_bytes(). Errors name core, kernel and bit position.
Result<Coefficients> decode_coefficients(std::span<const uint8_t> buffer, int nn_cores, int zrl_bits_max,
                                         const CoefficientShape& shape);

}  // namespace skillet::sim::vivante
