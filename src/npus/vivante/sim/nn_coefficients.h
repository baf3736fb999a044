// The coefficients of an NN job, decoded: weights, biases and output planes of all kernels. One decoder per generation.
// Called by nn.cpp.
// Must not know: images, requantization, any encoder.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "npus/vivante/hw/vivante.h"

namespace skillet::sim::vivante {

// Order in which a V7 stream visits the weights of a kernel and the kernels of a superblock.
enum class StreamOrder : uint8_t {
  dense,         // superblock, plane, kernel, 3x2 patch
  dense_rows,    // the same without the column split of patches: superblock, plane, kernel, row, column
  six_planes,    // 1x1 filters: superblock, group of six planes, kernel, plane
  kernel_major,  // superblock, kernel, plane, row, column
  dense_wide     // dense, but all columns from the fourth on are one patch
};

// The descriptor's values about the coefficients.
struct CoefficientShape {
  int kernel_width = 1, kernel_height = 1;
  int64_t planes = 1;            // input channels
  int64_t kernels_per_core = 1;  // in one superblock
  uint8_t zero_point = 0;
  StreamOrder order = StreamOrder::dense;  // V7
  bool raw_weights = false;                // V8's format on a V7 chip: the zero point is not subtracted from bytes
  // V8, whose streams do not contain the places of planes:
  bool depthwise = false;
  int64_t output_planes = 1;
  int64_t plane_bytes = 1;  // of the output

  int64_t taps() const { return int64_t{kernel_width} * kernel_height; }
  bool operator==(const CoefficientShape&) const = default;
};

CoefficientShape coefficient_shape(const ::skillet::vivante::hw::NnInstruction& d);

struct Kernel {
  int64_t bias = 0;              // for raw pixels, whatever the chip subtracts from them
  uint32_t output_offset = 0;    // bytes from the job's output address to this kernel's plane
  std::vector<uint32_t> planes;  // input planes with a weight other than the zero point, ascending
  std::vector<int16_t> weights;  // weight - zero point of those planes: [plane][row][column]
  int64_t magnitude = 0;         // sum of |weight - zero point|
  bool operator==(const Kernel&) const = default;

  // Adds the weights of one plane, unless all of them are 0.
  void add_plane(int64_t plane, std::span<const int16_t> plane_weights);
};

struct Coefficients {
  std::vector<Kernel> kernels;             // core after core, each in stream order
  int64_t cores = 0;                       // with a stream
  int64_t kernels_per_core = 0;            // of the core with the most kernels, in all superblocks
  int64_t cache_bytes = 0;                 // bytes that the on-chip cache has to hold
  StreamOrder order = StreamOrder::dense;  // the order in which they were read
};

// The format of one generation. `header` and `buffer` have exactly the sizes that the functions before return; errors
// name core, kernel and bit position.
struct CoefficientFormat {
  int generation;
  int64_t (*header_bytes)(const ::skillet::vivante::hw::ChipRow& chip);
  Result<int64_t> (*buffer_bytes)(std::span<const uint8_t> header, const ::skillet::vivante::hw::ChipRow& chip,
                                  const CoefficientShape& shape);
  Result<Coefficients> (*decode)(std::span<const uint8_t> buffer, const ::skillet::vivante::hw::ChipRow& chip,
                                 const CoefficientShape& shape);
};
extern const CoefficientFormat kCoefficientFormatV7;  // hardware specification 6.2
extern const CoefficientFormat kCoefficientFormatV8;  // 6.3

}  // namespace skillet::sim::vivante
