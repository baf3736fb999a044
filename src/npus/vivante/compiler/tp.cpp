#include "npus/vivante/compiler/tp.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/int_math.h"
#include "npus/vivante/compiler/tp_parts.h"

namespace skillet::npus::vivante {
namespace {

// A block of an image as [pixels][channels] or [channels][pixels]: `rows` rows of `row_px` pixels each.
struct Block {
  int64_t pixel = 0, channel = 0;  // its first
  int64_t row_px = 1, rows = 1, channels = 1;
};

// Blocks of at most `channels_max` channels, in rows of at most `row_max` pixels; fewest rows first.
std::vector<Block> blocks(const Image& image, int64_t row_max, int64_t rows_max, int64_t channels_max) {
  std::vector<Block> out;
  const int64_t pixels = image.plane_bytes();
  for (int64_t pixel = 0; pixel < pixels;) {
    const int64_t row_px = std::min(row_max, pixels - pixel);
    const int64_t rows = std::min((pixels - pixel) / row_px, rows_max);
    for (int64_t channel = 0; channel < image.channels; channel += channels_max)
      out.push_back({pixel, channel, row_px, rows, std::min(channels_max, image.channels - channel)});
    pixel += row_px * rows;
  }
  return out;
}

// Reads x = channels, y = pixels of a row, z = rows.
hw::TpInstruction transpose_block(const Image& image, const Block& b, const hw::TpInstruction& base) {
  hw::TpInstruction tp = base;
  // The stride to the next pixel has 16 bits; with one pixel it does not matter.
  const int64_t stride = b.row_px == 1 ? b.channels : image.channels;
  set_image(tp, u(b.channels), u(b.row_px), u(b.rows), u(stride), u(b.row_px * image.channels));
  set_window(tp, 0, static_cast<int>(b.channels) - 1, 0, static_cast<int>(b.row_px) - 1);
  set_tile(tp, 1, u(b.row_px));
  tp.in_base_address.offset = static_cast<uint64_t>(b.pixel * image.channels + b.channel);
  tp.out_base_address.offset = static_cast<uint64_t>(b.channel * image.plane_bytes() + b.pixel);
  set_loops(tp, {{1, b.row_px}, {image.plane_bytes(), b.channels}, {b.row_px, b.rows}});
  return tp;
}

// Reads x = pixels of a row, y = rows, z = channels.
hw::TpInstruction detranspose_block(const Image& image, const Block& b, const hw::TpInstruction& base) {
  hw::TpInstruction tp = base;
  set_image(tp, u(b.row_px), u(b.rows), u(b.channels), u(b.row_px), u(image.plane_bytes()));
  set_window(tp, 0, static_cast<int>(b.row_px) - 1, 0, static_cast<int>(b.rows) - 1);
  set_tile(tp, u(b.row_px), u(b.rows));
  tp.in_base_address.offset = static_cast<uint64_t>(b.channel * image.plane_bytes() + b.pixel);
  tp.out_base_address.offset = static_cast<uint64_t>(b.pixel * image.channels + b.channel);
  set_loops(tp, {{image.channels, b.row_px}, {b.row_px * image.channels, b.rows}, {1, b.channels}});
  return tp;
}

// The recorded job: the whole input is scanned linearly, so only the product of x and y matters.
hw::TpInstruction detranspose_whole(const Image& image, const hw::TpInstruction& base) {
  const uint32_t w = u(image.width), h = u(image.height), c = u(image.channels);
  hw::TpInstruction tp = base;
  set_image(tp, h, w * c, 1, h, h * w * c);
  set_window(tp, 0, image.height - 1, 0, static_cast<int>(w * c) - 1);
  set_tile(tp, 1, 1);
  set_loops(tp, {{c, w}, {0, 1}, {w * c, h}, {1, c}, {h * w * c, 1}});
  return tp;
}

}  // namespace

bool has_recorded_transpose(const Image& image) {
  return image.channels <= kMaxWindow && image.width <= kMaxWindow && image.height <= kMaxField;
}
bool has_recorded_detranspose(const Image& image) {
  return image.height <= kMaxWindow && int64_t{image.width} * image.channels <= kMaxWindow;
}

std::vector<TpOperation> transpose(const Image& image, SlotId input, SlotId output, uint8_t zero_point) {
  // In the recorded form a row of pixels is a row of the image.
  const int64_t row_max = has_recorded_transpose(image) ? image.width : image.channels <= kMaxField ? kMaxWindow : 1;
  const hw::TpInstruction base = base_instruction(input, output, zero_point, zero_point);
  std::vector<TpOperation> jobs;
  for (const Block& block : blocks(image, row_max, kMaxField, kMaxWindow))
    jobs.push_back(one_core(input, output, transpose_block(image, block, base)));
  return jobs;
}

std::vector<TpOperation> detranspose(const Image& image, SlotId input, SlotId output, uint8_t zero_point) {
  const hw::TpInstruction base = base_instruction(input, output, zero_point, zero_point);
  if (has_recorded_detranspose(image)) return {one_core(input, output, detranspose_whole(image, base))};
  std::vector<TpOperation> jobs;
  for (const Block& block : blocks(image, std::min<int64_t>(image.width, kMaxWindow), kMaxWindow, kMaxField))
    jobs.push_back(one_core(input, output, detranspose_block(image, block, base)));
  return jobs;
}

namespace {

enum class Axis : uint8_t { x, y, z };

// The part of a reshuffle that one core does.
struct ReshufflePart {
  int32_t in = 0, out = 0, pad = 0;    // along the split axis
  uint64_t in_base = 0, out_base = 0;  // bytes
};

Axis reshuffle_axis(const Reshuffle& s) {
  Axis axis = Axis::x;
  if (s.in.channels >= s.out_width) {
    if (s.out_height >= s.out_width) axis = Axis::y;
    if (s.in.channels >= (axis == Axis::y ? s.out_height : s.out_width)) axis = Axis::z;
  }
  return axis;
}

std::vector<ReshufflePart> split_reshuffle(const Reshuffle& s, Axis axis, int cores) {
  const int64_t plane = int64_t{s.out_width} * s.out_height;
  int32_t out_left = axis == Axis::x ? s.out_width : axis == Axis::y ? s.out_height : s.in.channels;
  int32_t in_left = axis == Axis::x ? s.in.width : axis == Axis::y ? s.in.height : s.in.channels;
  std::vector<ReshufflePart> parts;
  uint64_t in_base = 0, out_base = 0;
  for (int i = 0; i < cores; ++i) {
    ReshufflePart part{.in_base = in_base, .out_base = out_base};
    if (i == 0) part.pad = axis == Axis::x ? s.pad_x : axis == Axis::y ? s.pad_y : 0;
    part.out = ceil_div(out_left, cores - i);
    part.in = i == cores - 1 ? in_left : axis == Axis::z ? part.out : 2 * part.out - part.pad;
    out_left -= part.out;
    in_left -= part.in;
    const auto in = static_cast<int64_t>(part.in), out = static_cast<int64_t>(part.out);
    in_base += static_cast<uint64_t>(axis == Axis::x   ? in
                                     : axis == Axis::y ? in * s.in.width
                                                       : in * s.in.plane_bytes());
    out_base += static_cast<uint64_t>(axis == Axis::x ? out : axis == Axis::y ? out * s.out_width : out * 4 * plane);
    parts.push_back(part);
  }
  return parts;
}

hw::TpInstruction reshuffle_part(const Reshuffle& s, Axis axis, const ReshufflePart& part,
                                 const hw::TpInstruction& base) {
  Image in = s.in;
  int32_t out_width = s.out_width, out_height = s.out_height;
  int32_t pad_x = s.pad_x, pad_y = s.pad_y;
  if (axis == Axis::x) in.width = part.in, out_width = part.out, pad_x = part.pad;
  if (axis == Axis::y) in.height = part.in, out_height = part.out, pad_y = part.pad;
  if (axis == Axis::z) in.channels = part.in;
  const uint32_t plane = u(s.out_width) * u(s.out_height);
  hw::TpInstruction tp = base;
  tp.in_base_address.offset += part.in_base;
  tp.out_base_address.offset += part.out_base;
  set_image(tp, u(in.width), u(in.height), u(in.channels), u(s.in.width), u(s.in.plane_bytes()));
  set_window(tp, -pad_x, 2 * out_width - 1 - pad_x, -pad_y, 2 * out_height - 1 - pad_y);
  set_tile(tp, u(2 * out_width), u(2 * out_height));
  set_loops(tp, {{plane, 2}, {1, out_width}, {2 * plane, 2}, {s.out_width, out_height}}, 4 * plane);
  tp.out_loop_1_reset = tp.out_loop_3_reset = true;
  return tp;
}

void set_no_flush(std::vector<hw::TpInstruction>& instructions) {
  for (size_t i = 0; i + 1 < instructions.size(); ++i) instructions[i].no_flush = true;
}

}  // namespace

TpOperation reshuffle(const Reshuffle& shape, SlotId input, SlotId output, uint8_t zero_point, int cores) {
  const Axis axis = reshuffle_axis(shape);
  std::vector<ReshufflePart> parts;
  // A core without work would get a size of 0, which hardware is not known to accept: use fewer cores.
  for (; cores >= 1; --cores) {
    parts = split_reshuffle(shape, axis, cores);
    if (std::all_of(parts.begin(), parts.end(), [](const auto& p) { return p.in >= 1 && p.out >= 1; })) break;
  }
  TpOperation op{.input = input, .output = output};
  const hw::TpInstruction base = base_instruction(input, output, zero_point, zero_point);
  for (const ReshufflePart& part : parts) op.instructions.push_back(reshuffle_part(shape, axis, part, base));
  set_no_flush(op.instructions);
  return op;
}

TpOperation pad(const PadShape& s, SlotId input, SlotId output, uint8_t zero_point, int cores) {
  cores = std::min(cores, s.z);
  const uint32_t out_x = u(s.before_x + s.x + s.after_x), out_y = u(s.before_y + s.y + s.after_y);
  const uint32_t slice = u(s.x) * u(s.y);
  TpOperation op{.input = input, .output = output, .tp_no_flush_state = true};
  int32_t done = 0;
  for (int i = 0; i < cores; ++i) {
    const int32_t planes = ceil_div(s.z - done, cores - i);
    hw::TpInstruction tp = base_instruction(input, output, zero_point, zero_point);
    set_image(tp, u(s.x), u(s.y), u(planes), u(s.x), slice);
    set_window(tp, -s.before_x, s.x - 1 + s.after_x, -s.before_y, s.y - 1 + s.after_y);
    set_tile(tp, out_x, out_y);
    if (i == 0) tp.in_window_z_start_overfetch = u(s.before_z);
    if (i == cores - 1) tp.in_window_z_end_overfetch = u(s.after_z);
    tp.in_base_address.offset = uint64_t{slice} * u(done);
    tp.out_base_address.offset = uint64_t{out_x} * out_y * u(done + (i > 0 ? s.before_z : 0));
    set_loops(tp, {{0, 1}, {1, out_x}, {out_x, out_y}}, int64_t{out_x} * out_y);
    op.instructions.push_back(tp);
    done += planes;
  }
  set_no_flush(op.instructions);
  return op;
}

namespace {

// A run of bytes as an image [z][y][x] whose sizes fit one job.
struct Piece {
  int64_t offset = 0;
  int32_t x = 1, y = 1, z = 1;
};
std::vector<Piece> cut(int64_t bytes) {
  const auto row = static_cast<int32_t>(std::min(bytes, kMaxWindow));
  std::vector<Piece> pieces;
  for (int64_t at = 0; at < bytes;) {
    const auto rest = static_cast<int32_t>(std::min<int64_t>(bytes - at, row));
    const auto rows = static_cast<int32_t>(std::min((bytes - at) / rest, kMaxField));
    pieces.push_back({at, rest, 1, rows});
    at += int64_t{rest} * rows;
  }
  return pieces;
}

// `make` gives the job of a piece as if it began at 0.
template <typename F>
std::vector<TpOperation> in_pieces(int64_t bytes, const F& make) {
  std::vector<TpOperation> jobs;
  for (const Piece& piece : cut(bytes)) {
    jobs.push_back(make(piece));
    for (hw::TpInstruction& tp : jobs.back().instructions) {
      tp.in_base_address.offset += static_cast<uint64_t>(piece.offset);
      tp.out_base_address.offset += static_cast<uint64_t>(piece.offset);
    }
  }
  return jobs;
}

}  // namespace

std::vector<TpOperation> copy(const Image& image, SlotId input, SlotId output, uint8_t zero_point, int cores) {
  if (std::max(image.width, image.height) <= kMaxWindow && image.channels <= kMaxField)
    return {pad({.x = image.width, .y = image.height, .z = image.channels}, input, output, zero_point, cores)};
  return in_pieces(image.bytes(), [&](const Piece& piece) {
    return pad({.x = piece.x, .y = piece.y, .z = piece.z}, input, output, zero_point, cores);
  });
}

namespace {

// Post multiplier and shift of the TP units: 15-bit mantissa, ties to even (section 5.8).
struct TpScale {
  uint32_t multiplier = 0;
  int32_t shift = 0;
};
TpScale tp_scale(float scale) {
  auto b = std::bit_cast<uint32_t>(scale);
  if ((b & 0x80) && (b & 0x17f)) b += 0x100;
  return {(b >> 8) & 0x7fff, 127 - static_cast<int32_t>(b >> 23)};
}

uint32_t round_half_even(double value) { return static_cast<uint32_t>(std::nearbyint(value)); }

// FP21 pattern of a number (not negative).
uint32_t fp21(float f, bool carry = true) {
  if (f == 0 || !std::isnormal(f)) return 0;
  if (f < 0x1p-14F) return round_half_even(double{f} * 0x1p24);
  const auto b = std::bit_cast<uint32_t>(f);
  const int exponent = static_cast<int>(b >> 23) - 127;
  if (exponent > 15) return (30U << 15) | 0x7fff;
  const uint32_t mantissa = round_half_even((b & 0x7fffff) / 256.0);
  // A mantissa that rounds up to 0x8000 carries into the exponent; the recorded driver only sets a bit there.
  const uint32_t high = static_cast<uint32_t>(exponent + 15) << 15;
  return carry ? high + mantissa : high | mantissa;
}

float fp21_value(uint32_t t) { return std::bit_cast<float>(((t & 0xfffff) << 8 | (t & 0x100000) << 11) + 0x38000000); }

constexpr uint32_t kFp21Largest = 0xF7FFF;
constexpr uint32_t kFp21MinusZero = 0x100000;
constexpr uint32_t kStep = 0x800;  // distance of table entries, as FP21 patterns

uint32_t relu_entry(uint32_t i) {
  if (i >= 512) return kFp21MinusZero;
  if (i >= 496) return kFp21Largest;
  return i < 16 ? 0 : i * kStep;
}
uint32_t abs_entry(uint32_t i) {
  if (i < 512) return relu_entry(i);
  if (i >= 1008) return kFp21Largest;
  return i < 528 ? kFp21MinusZero : (i - 512) * kStep;
}
uint32_t logistic_entry(uint32_t i, float in_scale, bool carry) {
  if (i < 16 || (i >= 512 && i <= 528)) return fp21(0.5F);
  if (i >= 496 && i < 512) return fp21(1.0F);
  if (i >= 1008) return 0;
  const float a = fp21_value(i * kStep) * in_scale;
  return fp21(1.0F / (std::exp(-a) + 1.0F), carry);
}

}  // namespace

std::vector<uint32_t> function_table(TableFunction function, float in_scale, bool carry) {
  std::vector<uint32_t> table(hw::kPwlEntries);
  for (uint32_t i = 0; i < hw::kPwlEntries; ++i) {
    switch (function) {
      case TableFunction::relu: table[i] = relu_entry(i); break;
      case TableFunction::abs: table[i] = abs_entry(i); break;
      case TableFunction::logistic: table[i] = logistic_entry(i, in_scale, carry); break;
    }
  }
  return table;
}

namespace {

hw::TpInstruction table_part(const TableShape& s, int32_t planes, const TpScale& scale, const hw::TpInstruction& base) {
  constexpr uint32_t kTileX = 64, kTileY = 16;
  const uint32_t x = u(s.x), y = u(s.y);
  hw::TpInstruction tp = base;
  set_image(tp, x, y, u(planes), x, x * y);
  set_window(tp, 0, s.x - 1, 0, s.y - 1);
  set_tile(tp, kTileX, kTileY);
  tp.pwl_enable = tp.load_pwl_lut = tp.load_pwl_lut_global_mem = tp.pwl_sign_support = true;
  tp.pwl_lut_address = {TpOperation::kTableSymbol, 0};
  tp.out_loop_1_reset = tp.out_loop_2_reset = true;
  // Count 0: ended by end-of-row and by end-of-tile.
  set_loops(tp, {{0, 1}, {1, 0}, {x, 0}, {kTileX, ceil_div(x, kTileX)}, {kTileY * x, ceil_div(y, kTileY)}},
            int64_t{x} * y);
  tp.output_post_multiplier = scale.multiplier;
  tp.output_postshift = scale.shift;
  return tp;
}

// A table, the factor of its results, and whether its jobs set the state of jobs that do not flush.
struct ScaledTable {
  std::vector<uint32_t> entries;
  TpScale scale;
  bool no_flush_state = false;
};

TpOperation table_job(const ScaledTable& table, const TableShape& s, SlotId input, SlotId output, int cores) {
  cores = std::min(cores, s.z);
  TpOperation op{.input = input, .output = output, .table = table.entries, .tp_no_flush_state = table.no_flush_state};
  const hw::TpInstruction base = base_instruction(input, output, s.in_zero_point, s.out_zero_point);
  int32_t done = 0;
  for (int i = 0; i < cores; ++i) {
    const int32_t planes = ceil_div(s.z - done, cores - i);
    hw::TpInstruction tp = table_part(s, planes, table.scale, base);
    tp.in_base_address.offset = tp.out_base_address.offset = uint64_t{tp.in_x_size} * tp.in_y_size * u(done);
    op.instructions.push_back(tp);
    done += planes;
  }
  set_no_flush(op.instructions);
  return op;
}

std::vector<TpOperation> table_jobs(const ScaledTable& table, const TableShape& s, SlotId input, SlotId output,
                                    int cores) {
  if (s.x <= kMaxWindow && s.y <= kMaxWindow && s.z <= kMaxField) return {table_job(table, s, input, output, cores)};
  return in_pieces(int64_t{s.x} * s.y * s.z, [&](const Piece& piece) {
    TableShape part = s;
    part.x = piece.x, part.y = piece.y, part.z = piece.z;
    return table_job(table, part, input, output, cores);
  });
}

}  // namespace

std::vector<TpOperation> table_function(TableFunction function, const TableShape& s, SlotId input, SlotId output,
                                        int cores) {
  const bool logistic = function == TableFunction::logistic;
  const TpScale scale = tp_scale(logistic ? 1.0F / s.out_scale : s.in_scale / s.out_scale);
  return table_jobs({function_table(function, s.in_scale, s.carry), scale, !logistic}, s, input, output, cores);
}

std::vector<TpOperation> byte_function(const std::vector<uint32_t>& table, const TableShape& s, SlotId input,
                                       SlotId output, int cores) {
  return table_jobs({table, tp_scale(1), false}, s, input, output, cores);
}

uint32_t table_entry(float value) { return fp21(std::abs(value)) | (value < 0 ? kFp21MinusZero : 0); }

float entry_value(uint32_t entry) { return fp21_value(entry); }

}  // namespace skillet::npus::vivante
