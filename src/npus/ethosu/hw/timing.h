// The one cost model of the family: predicts the time of an operation of a stream (hardware specification, section
// 10.5). It is the compilers' estimate: no chip was measured.
// Called by npus/ethosu/sim/timing.cpp (operations of streams); the compiler may use it for operations that are not
// encoded yet. Must not know: registers, graphs, what is computed.
#pragma once

#include <array>
#include <cstdint>

#include "npus/ethosu/hw/ethosu.h"

namespace skillet::ethosu::timing {

enum Memory : uint8_t { kSram, kDram, kMemories };

struct MemoryRates {
  double bytes = 8;  // per cycle
  double burst_bytes = 32, read_cycles = 32, write_cycles = 32;
};
using Rates = std::array<MemoryRates, kMemories>;

struct Size {
  int64_t height = 1, width = 1, depth = 1;

  int64_t plane() const { return height * width; }
  int64_t elems() const { return plane() * depth; }
};

enum class Kind : uint8_t { depth_first, part_kernel, depthwise, max_pool, average_pool, reduce_sum, elementwise };
constexpr bool has_weights(Kind kind) { return kind <= Kind::depthwise; }
constexpr bool sums_channels(Kind kind) {
  return kind == Kind::depth_first || kind == Kind::part_kernel || kind == Kind::reduce_sum;
}
// Kind of arithmetic of the output unit.
enum class Output : uint8_t { other, product, sum, one_operand };
enum class Function : uint8_t { none, clamp, table };

// A feature map.
struct Side {
  Size size;
  int64_t elem_bytes = 1, stride_x = 0, stride_c = 0;
  bool is_bricks = false;
  Memory memory = kDram;
};

struct Operation {
  Kind kind = Kind::depth_first;
  Output arithmetic = Output::other;  // for elementwise operations
  Function function = Function::none;
  bool has_wide_sums = false;  // 40 bits
  Side input, input2, output;
  bool has_input2 = false;
  Size block;                              // of the output
  int64_t kernel_h = 1, kernel_w = 1;      // without dilation
  int64_t dilation_h = 1, dilation_w = 1;  // no dilation: 1
  int64_t stride_h = 1, stride_w = 1;
  int64_t upscale = 1;
  bool is_nearest = false;
  int64_t weight_bytes = 0, scale_bytes = 0;  // of all cores
  Memory weight_memory = kDram, scale_memory = kDram;
};

struct Cost {
  double cycles = 0;                     // of the chip, without memory limits
  double mac_cycles = 0, ao_cycles = 0;  // of its units
  std::array<double, kMemories> read_bytes{}, written_bytes{};

  double memory_cycles(const Rates& rates, Memory memory) const {
    return (read_bytes[memory] + written_bytes[memory]) / rates[memory].bytes;
  }
};

Cost cost_of(const hw::ChipRow& chip, const Rates& rates, const Operation& operation);

// The input block that a block of the output reads.
Size input_block(const hw::ChipRow& chip, const Operation& operation);

}  // namespace skillet::ethosu::timing
