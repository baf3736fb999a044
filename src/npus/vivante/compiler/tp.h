// TP jobs: the instruction fields of each data movement and point-wise operation (specification section 5).
// Called by lower.cpp.
// Must not know: graphs, device addresses.
#pragma once

#include "base/result.h"
#include "npus/vivante/compiler/operations.h"

namespace skillet::npus::vivante {

// An image that does not fit the 16-bit fields of one job is divided into several jobs, which may run in any order.

// NHWC -> planar, one core each.
std::vector<TpOperation> transpose(const Image& image, SlotId input, SlotId output, uint8_t zero_point);
// Planar -> NHWC, one core each.
std::vector<TpOperation> detranspose(const Image& image, SlotId input, SlotId output, uint8_t zero_point);
// Whether the image fits the recorded form of the job; others are divided, in forms that were never recorded.
bool has_recorded_transpose(const Image& image);
bool has_recorded_detranspose(const Image& image);

// Space-to-depth for stride-2 convolutions: planar [C][H][W] -> planar [4C][out_height][out_width]; plane 4c + 2py + px
// holds input pixels (2x + px - pad_x, 2y + py - pad_y).
struct Reshuffle {
  Image in;
  int32_t out_width = 0, out_height = 0;
  int32_t pad_x = 0, pad_y = 0;
};
TpOperation reshuffle(const Reshuffle& shape, SlotId input, SlotId output, uint8_t zero_point, int cores);

// Zero padding of an image [z][y][x] of bytes, x fastest.
struct PadShape {
  int32_t x = 1, y = 1, z = 1;  // input size
  int32_t before_x = 0, after_x = 0, before_y = 0, after_y = 0, before_z = 0, after_z = 0;
};
TpOperation pad(const PadShape& shape, SlotId input, SlotId output, uint8_t zero_point, int cores);
// Copies the bytes to another place.
std::vector<TpOperation> copy(const Image& image, SlotId input, SlotId output, uint8_t zero_point, int cores);

// The destination of each element of an image [z][y][x]: output steps for each input step, by loop; x separately.
struct Scatter {
  int32_t x = 1, y = 1, z = 1;
  struct Loop {
    int64_t step = 0;
    int64_t count = 1;
  };
  Loop along_x, along_y;
  std::vector<Loop> along_z;  // at most 4, the fastest first; their counts multiply to z
  int64_t first = 0;          // destination of the first element
};
bool fits(const Scatter& shape);
TpOperation scatter(const Scatter& shape, SlotId input, SlotId output, uint8_t zero_point);

// Element-wise function by table over [z][y][x] bytes.
enum class TableFunction : uint8_t { relu, abs, logistic };
struct TableShape {
  int32_t x = 1, y = 1, z = 1;
  uint8_t in_zero_point = 0, out_zero_point = 0;
  float in_scale = 1, out_scale = 1;
  bool carry = true;  // into the exponent, for mantissas that round up; false: as recorded
};
std::vector<TpOperation> table_function(TableFunction function, const TableShape& shape, SlotId input, SlotId output,
                                        int cores);
// A table whose entries are steps of the output from its zero point.
std::vector<TpOperation> byte_function(const std::vector<uint32_t>& table, const TableShape& shape, SlotId input,
                                       SlotId output, int cores);
uint32_t table_entry(float value);
float entry_value(uint32_t entry);
// The 1024 entries (FP21: sign, 5 exponent bits, 15 mantissa bits) of section 5.8.
std::vector<uint32_t> function_table(TableFunction function, float in_scale, bool carry = true);

}  // namespace skillet::npus::vivante
