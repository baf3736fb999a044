#include "npus/rockchip/sim/quirks.h"

#include <algorithm>

#include "base/int_math.h"
#include "npus/rockchip/sim/fault.h"

namespace skillet::sim::rockchip {
namespace {

constexpr int64_t kAtom = 16, kFilterSeen = 7, kSurfaceMin = 12, kLinesOfGroup = 4;

// ---- conditions ----

int64_t plane_height(const ConvJob& conv) {
  if (conv.line_by_line) return conv.line_stride > 0 ? conv.surface_stride / conv.line_stride + 1 : conv.in_height;
  return conv.surface_stride / conv.in_width + kLinesOfGroup;
}
int64_t extent_x(const ConvJob& conv) { return (conv.kernel_width - 1) * conv.dilation_x; }
int64_t extent_y(const ConvJob& conv) { return (conv.kernel_height - 1) * conv.dilation_y; }
bool has_operand(const ConvJob* conv, const DpuJob& dpu) { return conv != nullptr && dpu.ew.op != EwOp::none; }

bool has_padding_kernels(const ConvJob* conv, const DpuJob& dpu) {
  return conv != nullptr && !conv->depthwise && conv->kernels > align_up(dpu.true_lanes, int64_t{2});
}
bool is_not_square(const ConvJob* conv, const DpuJob&) {
  if (conv == nullptr) return false;
  const bool is_pointwise = conv->taps() == 1 && conv->stride_x * conv->stride_y == 1;
  return conv->kernel_width != conv->kernel_height || (!is_pointwise && plane_height(*conv) != conv->in_width);
}
bool strides_differ(const ConvJob* conv, const DpuJob&) { return conv != nullptr && conv->stride_x != conv->stride_y; }
bool is_dilated(const ConvJob* conv, const DpuJob&) {
  return conv != nullptr && conv->dilation_x * conv->dilation_y != 1;
}
bool has_large_filter(const ConvJob* conv, const DpuJob&) {
  return conv != nullptr && std::max(conv->kernel_width, conv->kernel_height) > kFilterSeen;
}
bool has_bn_operands(const ConvJob*, const DpuJob& dpu) { return dpu.bn.alu && dpu.bn.multiply; }
// The limit of a BN stage with operands is part of the addition after it.
bool has_limits(const ConvJob* conv, const DpuJob& dpu) {
  return conv != nullptr && ((dpu.bn.relu && !has_bn_operands(conv, dpu)) || dpu.ew.relu);
}
bool has_channel_multipliers(const ConvJob*, const DpuJob& dpu) { return dpu.bs.multiplier_from_memory; }
bool is_one_packed(const ConvJob* conv, const DpuJob&) { return conv != nullptr && conv->pixel_channels == 1; }
bool is_packed(const ConvJob* conv, const DpuJob&) { return conv != nullptr && conv->pixel_channels > 1; }
bool has_notch(const ConvJob*, const DpuJob& dpu) { return dpu.notch_pixels > 0; }
bool halves_overlap(const ConvJob* conv, const DpuJob& dpu) {
  return conv != nullptr && !conv->depthwise && dpu.notch_pixels == 0 && dpu.surface_bytes < dpu.pixels() * kAtom;
}
bool has_wide_padding(const ConvJob* conv, const DpuJob&) {
  return conv != nullptr && (conv->pad_left * 2 > extent_x(*conv) || conv->pad_top * 2 > extent_y(*conv));
}
bool is_window_with_notch(const ConvJob* conv, const DpuJob& dpu) {
  return conv != nullptr && conv->depthwise && conv->taps() > 1 && has_notch(conv, dpu);
}
bool is_repeated(const ConvJob* conv, const DpuJob& dpu) {
  return conv != nullptr && !conv->depthwise && has_notch(conv, dpu) && conv->in_lanes == kAtom;
}
bool is_interleaved(const ConvJob* conv, const DpuJob& dpu) {
  return conv != nullptr && !conv->depthwise && has_notch(conv, dpu) && conv->in_lanes > kAtom;
}
bool is_sum(const ConvJob* conv, const DpuJob& dpu) {
  const bool adds = dpu.ew.op == EwOp::add || dpu.ew.op == EwOp::minus;
  return conv != nullptr && adds && !has_bn_operands(conv, dpu);
}
bool is_product(const ConvJob* conv, const DpuJob& dpu) { return conv != nullptr && dpu.ew.op == EwOp::multiply; }
bool has_small_operand(const ConvJob* conv, const DpuJob& dpu) {
  return has_operand(conv, dpu) && dpu.shared && dpu.surface_bytes < kSurfaceMin * kAtom;
}
bool has_limit_after_two(const ConvJob* conv, const DpuJob& dpu) { return has_operand(conv, dpu) && dpu.ew.clamp; }
bool has_no_line_stride(const ConvJob* conv, const DpuJob&) {
  return conv != nullptr && conv->line_by_line && conv->line_stride == 0;
}
bool is_selection(const ConvJob* conv, const DpuJob& dpu) {
  return conv == nullptr && (dpu.ew.op == EwOp::max || dpu.ew.op == EwOp::min);
}
bool has_overlapping_operands(const ConvJob* conv, const DpuJob& dpu) {
  const int64_t apart = std::abs(dpu.main.address - dpu.second.address);
  return is_selection(conv, dpu) && apart > 0 && apart < dpu.pixels() * kAtom;
}
bool looks_up(const ConvJob*, const DpuJob& dpu) { return dpu.lookup.on; }

// ---- conditions of the RK3576 ----

// Units of an on-chip bank.
constexpr int64_t kBankUnits = 1024, kUnitBytes = 64, kBanksSeen = 5;
int64_t units_of_row(const ConvJob& conv) {
  const int64_t atoms = conv.in_lanes / kAtom;
  return ceil_div(conv.in_width * kAtom * (atoms + (atoms % 4 == 3 ? 1 : 0)), kUnitBytes);
}
int64_t fetched_pixels(const ConvJob& conv) { return align_up(conv.in_height * conv.in_width, kLinesOfGroup); }

bool has_upper_limit(const ConvJob*, const DpuJob& dpu) { return dpu.bn.clamp.has_value(); }
bool has_oblong_filter(const ConvJob* conv, const DpuJob&) {
  return conv != nullptr && conv->kernel_width != conv->kernel_height;
}
bool is_paired(const ConvJob* conv, const DpuJob&) {
  return conv != nullptr && conv->paired_weights && conv->taps() > 1;
}
bool is_window_of_rows(const ConvJob* conv, const DpuJob&) {
  return conv != nullptr && conv->surface_stride + conv->line_stride > fetched_pixels(*conv);
}
bool has_six_banks(const ConvJob* conv, const DpuJob&) { return conv != nullptr && conv->data_banks > kBanksSeen; }

// ---- changes ----

Error hang() { return stall("a quirk of this chip: the task never ends"); }
Error fault() { return not_modelled("a quirk of this chip: a page fault"); }

void drop_padding_kernels(ConvJob* conv, DpuJob& dpu) {
  const int64_t each = conv->weight_bytes / conv->kernels;
  conv->kernels = align_up(dpu.true_lanes, int64_t{2});
  conv->weight_bytes = conv->kernels * each;
}
void transpose(ConvJob* conv, DpuJob&) {
  std::swap(conv->kernel_width, conv->kernel_height);
  conv->transposed = plane_height(*conv) != conv->in_width;
}
void take_one_stride(ConvJob* conv, DpuJob&) { conv->stride_y = conv->stride_x; }
void take_dilation_as_written(ConvJob* conv, DpuJob&) {
  conv->dilation_x = std::max<int64_t>(conv->dilation_x - 1, 1);
  conv->dilation_y = std::max<int64_t>(conv->dilation_y - 1, 1);
}
void drop_limits(ConvJob* conv, DpuJob& dpu) {
  if (!has_bn_operands(conv, dpu)) dpu.bn.relu = false, dpu.bn.clamp.reset();
  dpu.ew.relu = false;
  dpu.ew.clamp.reset();
}
void group_by_four(ConvJob*, DpuJob& dpu) {
  dpu.operand_group = 4, dpu.operand_bytes = 32, dpu.correction_at = 16, dpu.multiplier_at = 24;
}
void take_as_signed(ConvJob* conv, DpuJob&) { conv->converter.is_signed = true; }
void convert_pad(ConvJob* conv, DpuJob&) {
  for (uint8_t& byte : conv->pad) byte ^= 0x80;
}
void reverse_pixels(ConvJob* conv, DpuJob&) { conv->reversed_pixels = true; }
void read_apart(ConvJob* conv, DpuJob&) { conv->surface_stride = (conv->in_height - kLinesOfGroup) * conv->in_width; }
void cut_padding(ConvJob* conv, DpuJob&) {
  conv->pad_left = std::min(conv->pad_left, extent_x(*conv) / 2);
  conv->pad_top = std::min(conv->pad_top, extent_y(*conv) / 2);
}
void drop_notch(ConvJob*, DpuJob& dpu) { dpu.notch_pixels = 0; }
void drop_surface_stride(ConvJob*, DpuJob& dpu) { dpu.surface_bytes = 0; }
void narrow_to_16_bits(ConvJob*, DpuJob& dpu) { dpu.ew.bits = 16; }
void narrow_to_8_bits(ConvJob*, DpuJob& dpu) { dpu.ew.bits = 8; }
void read_odd_surface_late(ConvJob*, DpuJob& dpu) { dpu.second.address = dpu.main.address + kSurfaceMin * kAtom; }
void drop_limit_after_two(ConvJob*, DpuJob& dpu) { dpu.ew.clamp.reset(); }
void drop_bn_operands(ConvJob*, DpuJob& dpu) { dpu.bn.alu = dpu.bn.multiply = false; }
void take_width_as_stride(ConvJob* conv, DpuJob&) { conv->line_stride = conv->in_width; }
void take_order_of_unsigned(ConvJob*, DpuJob& dpu) { dpu.ew.unsigned_order = true; }
void read_main_twice(ConvJob*, DpuJob& dpu) { dpu.second = dpu.main; }
void narrow_products(ConvJob*, DpuJob& dpu) { dpu.bs.narrow_products = true; }
void shift_as_recorded(ConvJob*, DpuJob& dpu) {
  constexpr unsigned kRecorded = 14;
  dpu.shift_address = 0;
  dpu.bs.shift = dpu.bs.shift_negative = kRecorded;
}
void limit_first(ConvJob*, DpuJob& dpu) {
  dpu.bs.clamp_first = dpu.bn.clamp;
  dpu.bn.clamp.reset();
}
void swap_filter(ConvJob* conv, DpuJob&) { std::swap(conv->kernel_width, conv->kernel_height); }
void drop_second_bytes(ConvJob* conv, DpuJob&) { conv->first_bytes = true; }
void read_dense(ConvJob* conv, DpuJob&) { conv->surface_stride = fetched_pixels(*conv) - conv->line_stride; }
void drop_sixth_bank(ConvJob* conv, DpuJob&) {
  conv->in_height = std::min(conv->in_height, kBanksSeen * kBankUnits / units_of_row(*conv));
}
void drop_lookup(ConvJob*, DpuJob& dpu) { dpu.lookup.on = false; }
void halve_entries(ConvJob*, DpuJob& dpu) { dpu.lookup.halved = true; }

}  // namespace

std::span<const QuirkRow> quirk_rows(const hw::ChipRow& chip) {
#define QUIRK(name, assumption, when, change, what) {{#name, #assumption, what}, when, change, nullptr},
#define CHIP_QUIRK(name, assumption, member, value, what) \
  {{#name, #assumption, what}, nullptr, {}, [](Options& options) { options.member = value; }},
#define ERRATUM(name, member, value, what) \
  {{#name, {}, what}, nullptr, {}, [](Options& options) { options.member = value; }},
  static constexpr QuirkRow kRows[] = {
#include "npus/rockchip/sim/quirks.def"
  };
  static constexpr QuirkRow kRows3576[] = {
#include "npus/rockchip/sim/quirks_3576.def"
  };
#undef QUIRK
#undef CHIP_QUIRK
#undef ERRATUM
  if (!chip.has_registers()) return {};
  return chip.has(hw::kRegisters3576) ? std::span<const QuirkRow>(kRows3576) : kRows;
}

Result<void> add_quirk(const hw::ChipRow& chip, std::string_view name, Options& options) {
  const auto rows = quirk_rows(chip);
  const auto row = std::ranges::find(rows, name, [](const QuirkRow& one) { return one.quirk.name; });
  if (row == rows.end()) return error(ErrorCode::invalid_argument, "no quirk '{}'", name);
  if (row->set != nullptr) row->set(options);
  if (row->when != nullptr) options.quirks.push_back(&*row);
  return {};
}

Result<void> apply_quirks(const Options& options, ConvJob* conv, DpuJob& dpu) {
  for (const QuirkRow* row : options.quirks) {
    if (!row->when(conv, dpu)) continue;
    if (row->effect.end != nullptr) return row->effect.end().with_context(row->quirk.name);
    row->effect.change(conv, dpu);
  }
  return {};
}

}  // namespace skillet::sim::rockchip
