// TpJob: a TP instruction as a walk over the input, an odometer of output addresses and a table of byte values.
// Called by tp.cpp (runs jobs), timing.cpp and the tests (compare both ways to run).
// Must not know: device addresses.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "npus/vivante/hw/vivante.h"
#include "npus/vivante/sim/requant.h"

namespace skillet::sim::vivante {

struct TpJob {
  // Input image; elements outside it are border. Planes z_first..z_last, inclusive, are walked.
  int64_t width = 0, height = 0, planes = 0;
  int64_t stride = 0, slice = 0;
  int64_t z_first = 0, z_last = 0;
  int64_t window_x0 = 0, window_y0 = 0, window_x1 = 0, window_y1 = 0;  // inclusive
  int64_t tile_width = 1, tile_height = 1, tile_x_inc = 1, tile_y_inc = 1;

  // Output address of each element: the sum of count[i] * increment[i]; loop 0 is the innermost, loop 6 never ends.
  std::array<uint64_t, 7> increment{};
  std::array<uint32_t, 6> count{};  // 0: ended by a reset only
  bool loop_1_reset = false, loop_2_reset = false, loop_3_reset = false;

  std::array<uint8_t, 256> value{};  // output byte of each input byte
  uint8_t border = 0;                // output byte of an element outside the image

  // Bytes from the input's base to the last one that is read; 0 if all is border.
  int64_t in_extent() const;
  // Written elements; saturates far above any sensible job.
  uint64_t elements() const;
};

// The walk of an instruction, without values and border.
TpJob walk_of(const ::skillet::vivante::hw::TpInstruction& d);

// The definition: moves one element after the other. `in` has in_extent() bytes; `out` starts at the output's base, and
// an address past it is an error. Returns the bytes from the base to the last written byte.
Result<uint64_t> rearrange_plain(const TpJob& job, std::span<const uint8_t> in, std::span<uint8_t> out);
// The same result in runs. `in` and `out` must not overlap.
Result<uint64_t> rearrange_fast(const TpJob& job, std::span<const uint8_t> in, std::span<uint8_t> out);

constexpr size_t kPwlEntriesUsed = 1024;

// Arithmetic of one element: subtract the zero point, table, scale, round, add the zero point, clamp.
struct TpArithmetic {
  int in_zero_point = 0, out_zero_point = 0;
  uint32_t multiplier = 0;                                       // mantissa without its leading 1, 15 bits
  int shift = 0;                                                 // to the right; negative: to the left
  const std::array<uint32_t, kPwlEntriesUsed>* table = nullptr;  // borrowed; null: no table
  TieRule rule = TieRule::half_up;

  // `difference`: input - zero point, -255..255.
  uint8_t apply(int difference) const;
};

// Real value of a table entry: 1 sign, 5 exponent, 15 mantissa bits.
double fp21_value(uint32_t entry);
// The table at an integer: linear between the entries at the top 10 bits of its FP16 pattern.
double table_value(std::span<const uint32_t, kPwlEntriesUsed> table, int difference);

}  // namespace skillet::sim::vivante
