#include "npus/ethosu/sim/operation.h"

#include "base/bytes.h"
#include "npus/ethosu/sim/functions.h"

namespace skillet::sim::ethosu {
namespace {

constexpr uint32_t kTableBytes = 256;
constexpr uint32_t kTableSize16 = 512;  // entries of a 16-bit table: base and slope

int64_t bound_of(uint32_t value, bool is_signed) {
  return is_signed ? static_cast<int16_t>(value) : static_cast<int64_t>(value);
}

// `whole` is the dilated size of a kernel.
Result<uint32_t> taps(uint32_t whole, uint32_t dilation, std::string_view what) {
  if ((whole - 1) % dilation != 0)
    return error(ErrorCode::fault, "{} {} is no kernel of dilation {}", what, whole, dilation);
  return (whole - 1) / dilation + 1;
}

Result<uint32_t> extent(uint32_t outputs, uint32_t stride, uint32_t kernel, uint32_t pads, std::string_view what) {
  const int64_t needed = int64_t{outputs - 1} * stride + kernel - pads;
  if (needed < 1) return error(ErrorCode::fault, "{} of padding leave no input", what);
  return static_cast<uint32_t>(needed);
}

}  // namespace

Result<Windows> windows_of(const Registers& registers, const FeatureMap& output) {
  const auto stride = registers.get<hw::KernelStride>();
  Windows windows{.stride_y = stride.y,
                  .stride_x = stride.x,
                  .dilation_y = stride.dilation_y,
                  .dilation_x = stride.dilation_x,
                  .pad_top = registers.get<hw::IfmPadTop>().value,
                  .pad_left = registers.get<hw::IfmPadLeft>().value,
                  .pad_bottom = registers.get<hw::IfmPadBottom>().value,
                  .pad_right = registers.get<hw::IfmPadRight>().value,
                  .upscale = registers.get<hw::IfmUpscale>().mode};
  if (windows.upscale > hw::Upscale::zeros)
    return error(ErrorCode::fault, "ifm_upscale.mode {} is unknown", static_cast<int>(windows.upscale));
  if (stride.small_subkernels)
    return error(ErrorCode::unsupported, "kernel_stride.small_subkernels is not modelled: no compiler uses it");
  const uint32_t height = registers.get<hw::KernelHeightM1>().value, width = registers.get<hw::KernelWidthM1>().value;
  SK_TRY_ASSIGN(windows.height, taps(height, windows.dilation_y, "kernel_height_m1"));
  SK_TRY_ASSIGN(windows.width, taps(width, windows.dilation_x, "kernel_width_m1"));
  SK_TRY_ASSIGN(windows.extent_y,
                extent(output.height, stride.y, height, windows.pad_top + windows.pad_bottom, "rows"));
  SK_TRY_ASSIGN(windows.extent_x,
                extent(output.width, stride.x, width, windows.pad_left + windows.pad_right, "columns"));
  return windows;
}

Result<Windows> windows_of(const Context& context, const FeatureMap& output) {
  SK_TRY_ASSIGN(Windows windows, windows_of(context.registers, output));
  const QuirkSet& quirks = context.quirks;
  SK_TRY(quirks.hang_if(QuirkName::enlarging_hangs, windows.upscale == hw::Upscale::nearest));
  windows.has_zeros_first = windows.upscale == hw::Upscale::zeros && quirks.has(QuirkName::zeros_come_first);
  if (windows.upscale == hw::Upscale::zeros && quirks.has(QuirkName::zeros_are_copies))
    windows.upscale = hw::Upscale::nearest;
  else if (windows.upscale == hw::Upscale::nearest && quirks.has(QuirkName::copies_are_zeros))
    windows.upscale = hw::Upscale::zeros;
  return windows;
}

Result<Output> Output::of(Context& context, bool takes_index) {
  const Registers& registers = context.registers;
  Output out;
  out.map_ = output_of(registers, context.chip);
  SK_TRY(check(out.map_));
  SK_TRY_ASSIGN(out.rules_, output_rules(context, out.map_));
  OutputRules& rules = out.rules_;
  if (rules.is_index != takes_index)
    return error(ErrorCode::unsupported, "ofm_scale: this scale of a value or of its place is not modelled");
  if (rules.function != HardwareFunction::none && out.map_.precision != hw::Precision::bits_16)
    return error(ErrorCode::unsupported, "tanh and sigmoid of hardware are modelled for 16 bits only");
  rules.is_clamped |= rules.has_table;
  const bool is_signed = rules.has_table ? rules.index_type != hw::ClipRange::uint8 : out.map_.is_signed;
  out.least_ = bound_of(registers.get<hw::ActivationMin>().value, is_signed);
  out.most_ = bound_of(registers.get<hw::ActivationMax>().value, is_signed);
  if (rules.is_clamped && out.least_ > out.most_)
    return error(ErrorCode::fault, "activation_min {} is above activation_max {}", out.least_, out.most_);
  if (!rules.has_table) return out;
  const uint64_t first = uint64_t{rules.table} * kTableBytes;
  const uint64_t size =
      rules.index_type == hw::ClipRange::int16 ? kTableSize16 * 4U : uint64_t{256} * out.map_.elem_bytes();
  if (rules.index_type == hw::ClipRange::int16 && out.map_.precision != hw::Precision::bits_16)
    return error(ErrorCode::unsupported, "a table for 16 bits whose results have another width is not modelled");
  if (first + size > context.tables.size())
    return error(ErrorCode::fault, "table {} of {} bytes leaves SHRAM", rules.table, size);
  out.table_ = context.tables.subspan(first, size);
  const uint64_t begin = context.chip.table_address + first;
  context.ranges.push_back({kTables, begin, begin + size, false});
  return out;
}

int32_t Output::stored(int64_t scaled_value) const {
  int64_t value = scaled_value;
  if (rules_.function != HardwareFunction::none)
    value = rules_.function == HardwareFunction::tanh ? hardware_tanh(value) : hardware_sigmoid(value);
  // 32-bit results without a table have no zero point, whatever the register holds, and are clamped to 32 bits.
  if (rules_.is_clamped)
    value = std::clamp(value + map_.zero_point, least_, most_);
  else
    value = std::clamp<int64_t>(value, INT32_MIN, INT32_MAX);
  return rules_.has_table ? looked_up(value) : static_cast<int32_t>(value);
}

// Limits an index to its type: clamps have 16 bits, so an 8-bit index may be outside.
int32_t Output::looked_up(int64_t index) const {
  if (rules_.index_type == hw::ClipRange::int16) {
    const int64_t from_zero = std::clamp<int64_t>(index, INT16_MIN, INT16_MAX) - INT16_MIN;
    const uint8_t* const entry = table_.data() + from_zero / 128 * 4;
    const int32_t base = load_le<int16_t>(entry), slope = load_le<int16_t>(entry + 2);
    return base + ((slope * static_cast<int32_t>(from_zero % 128) + 64) >> 7);
  }
  const int64_t from_zero = rules_.index_type == hw::ClipRange::int8 ? std::clamp<int64_t>(index, -128, 127) + 128
                                                                     : std::clamp<int64_t>(index, 0, 255);
  const uint8_t* const entry = table_.data() + static_cast<size_t>(from_zero) * map_.elem_bytes();
  switch (map_.precision) {
    case hw::Precision::bits_8: return map_.is_signed ? static_cast<int8_t>(*entry) : static_cast<int32_t>(*entry);
    case hw::Precision::bits_16: return load_le<int16_t>(entry);
    case hw::Precision::bits_32: break;
  }
  return load_le<int32_t>(entry);
}

}  // namespace skillet::sim::ethosu
