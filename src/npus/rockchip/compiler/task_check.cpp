#include "npus/rockchip/compiler/task_check.h"

#include <algorithm>
#include <array>

#include "base/int_math.h"
#include "base/leaked.h"
#include "npus/rockchip/compiler/task_reading.h"

namespace skillet::npus::rockchip {
namespace {

constexpr int64_t kAtom = 16, kUnitAtoms = 4, kSumLimit = int64_t{1} << 17;
constexpr uint32_t kTableEntries = 513;
constexpr uint32_t kConvolution = 0x1D, kDpuAlone = 0x18;  // blocks that compile() starts

// ---- values of single fields

struct Listed {
  uint32_t address;
  size_t member;  // offset
  bool any;
  uint64_t value;
};
constexpr size_t kNoMember = SIZE_MAX;
constexpr std::array kListed = {
#define ANY(type, field) Listed{hw::type::kAddress, offsetof(hw::type, field), true, 0},
#define ONLY(type, field, value) \
  Listed{hw::type::kAddress, offsetof(hw::type, field), false, static_cast<uint64_t>(value)},
#define ZERO(type) Listed{hw::type::kAddress, kNoMember, false, 0},
#include "npus/rockchip/compiler/program_values.def"
#undef ANY
#undef ONLY
#undef ZERO
};

// The values that a register may hold: bits that must be 0, and fields with a list of values.
struct Field {
  const bits::Row* row;
  std::vector<uint64_t> values;  // empty: any value with a name
};
struct Allowed {
  bool is_there = false;  // programs write this register
  uint32_t zero = UINT32_MAX;
  std::vector<Field> fields;
};

Allowed allowed_of(const bits::Descriptor& descriptor) {
  Allowed out;
  for (const Listed& one : kListed) out.is_there = out.is_there || one.address == descriptor.address;
  for (const bits::Row& row : descriptor.rows) {
    Field field{&row, {}};
    bool any = false;
    for (const Listed& one : kListed) {
      if (one.address != descriptor.address || one.member != row.member_offset) continue;
      any = any || one.any;
      if (!one.any) field.values.push_back(one.value);
    }
    if (!any && field.values.empty()) continue;
    for (int i = 0; i < row.where.count; ++i) out.zero &= ~bits::piece_mask(row.where.pieces[static_cast<size_t>(i)]);
    if (!any || row.kind == bits::ValueKind::enumeration) out.fields.push_back(std::move(field));
  }
  return out;
}
// By index in the register set.
const std::vector<Allowed>& allowed() {
  const auto& kAll = leaked([] {
    std::vector<Allowed> all;
    for (const bits::Descriptor& one : hw::registers().registers) all.push_back(allowed_of(one));
    return all;
  });
  return kAll;
}

std::string refused_value(const bits::Descriptor& descriptor, uint32_t word) {
  const Allowed& all = allowed()[hw::registers().index(descriptor)];
  if (!all.is_there) return fmt::format("{} = 0x{:x}: no program writes that register", descriptor.name, word);
  for (const Field& field : all.fields) {
    const bits::Value value = bits::read_field(*field.row, {&word, 1});
    const bool is_known = field.values.empty() ? field.row->names.find(value.integer) != nullptr
                                               : std::ranges::find(field.values, value.integer) != field.values.end();
    if (!is_known)
      return fmt::format("{}.{} = {}: no program has that", descriptor.name, field.row->name,
                         bits::print_value(*field.row, value));
  }
  if ((word & all.zero) == 0) return "";
  for (const bits::Row& row : descriptor.rows) {
    const bits::Piece piece = row.where.pieces[0];
    if ((word & all.zero & bits::piece_mask(piece)) == 0) continue;
    return fmt::format("{}.{} = {}: no program has that", descriptor.name, row.name,
                       bits::print_value(row, bits::read_field(row, {&word, 1})));
  }
  return fmt::format("{} = 0x{:x}: bits that no field has", descriptor.name, word);
}

// ---- registers together

// A field's value, an address or number; kMember: its place in the register's struct.
template <typename T, size_t kMember>
int64_t value_of(const TaskRegisters& r) {
  const bits::Row& row =
      *leaked([] { return &*std::ranges::find(T::descriptor().rows, kMember, &bits::Row::member_offset); });
  const uint32_t word = r.value(T::descriptor());
  return static_cast<int64_t>(bits::read_field(row, {&word, 1}).integer);
}

#define F(type, field) value_of<hw::type, offsetof(hw::type, field)>(r)

bool is_convolution(const TaskRegisters& r) { return r.enable().cna; }
bool is_element_wise(const TaskRegisters& r) {
  const auto cfg = r.get<hw::DpuEwCfg>();
  return !cfg.ew_bypass && cfg.ew_lut_bypass;
}

// Bytes from an address on, `first` the least offset.
npu::Reach reach_of(int64_t first, int64_t end) {
  return {static_cast<uint64_t>(std::max<int64_t>(-first, 0)), static_cast<uint64_t>(std::max<int64_t>(end, 0))};
}

// Offset of the last row, in atoms: rows are `line` apart; in groups of four, the groups are. Specification 5.1, 4.4.
int64_t last_row(int64_t rows, int64_t line, int64_t width, bool in_groups) {
  if (!in_groups) return (rows - 1) * line;
  const int64_t last = (rows - 1) / 4 * line + (rows - 1) % 4 * width;
  return rows <= 4 ? last : std::max(last, ((rows - 1) / 4 - 1) * line + 3 * width);
}

// If a plane one pixel wide nearly fills the last bank, the fetch may write past the bank and read a bank past the
// plane, so programs leave a spare bank (10.1 #6). Other fetches are not known to go on; recorded programs have nothing
// after their features.
bool lacks_spare_bank(const TaskRegisters& r, const hw::ChipRow& chip) {
  constexpr int64_t kNearlyFullPercent = 97;
  const int64_t bank = chip.cbuf_bank_bytes;
  const int64_t used = F(CnaCbufCon1, data_entries) * F(CnaFcDataSize0, dma_height) * kUnitAtoms * kAtom;
  const int64_t last = used % bank;
  const bool is_full = last == 0 || last * 100 >= bank * kNearlyFullPercent;
  return F(CnaFcDataSize0, dma_width) == 1 && is_full && F(CnaCbufCon0, data_bank) * bank - used < bank;
}

npu::Reach feature_reach(const TaskRegisters& r) {
  const auto con1 = r.get<hw::CnaConvCon1>();
  const int64_t width = F(CnaFcDataSize0, dma_width), rows = F(CnaFcDataSize0, dma_height);
  const int64_t line = F(CnaDmaCon1, line_stride);
  if (con1.argb_in != hw::PixelFormat::cube) {
    const int64_t pixel = static_cast<int64_t>(con1.argb_in) - static_cast<int64_t>(hw::PixelFormat::pixels_1) + 1;
    return reach_of(0, ((rows - 1) * line + width) * pixel);
  }
  const bool in_groups = !con1.group_line_off;
  const int64_t surface = F(CnaDmaCon2, surf_stride) + (in_groups ? 4 : 1) * width;
  const int64_t others = (ceil_div(F(CnaFcDataSize1, dma_channel), kAtom) - 1) * surface;
  const int64_t end = std::max<int64_t>(others, 0) + last_row(rows, line, width, in_groups) + width;
  return reach_of(std::min<int64_t>(others, 0) * kAtom, end * kAtom);
}

int64_t surfaces(const TaskRegisters& r) { return F(DpuDataCubeChannel, channel) / kAtom; }
int64_t pixel_bytes(const TaskRegisters& r) {
  return F(DpuDataCubeWidth, width) * F(DpuDataCubeHeight, height) * kAtom;
}

// The offset at which a surface of the output begins.
int64_t output_surface(const TaskRegisters& r, int64_t surface) {
  const int64_t together = F(DpuBsOwCfg, size_e_0) + 1;
  return surface / together * F(DpuSurfaceAdd, surf_add) + surface % together * F(DpuDstSurfStride, dst_surf_stride);
}
npu::Reach output_reach(const TaskRegisters& r) {
  const int64_t width = F(DpuDataCubeWidth, width), together = F(DpuBsOwCfg, size_e_0) + 1, last = surfaces(r) - 1;
  const int64_t rows = (F(DpuDataCubeHeight, height) - 1) * (width + F(DpuDataCubeNotchAddr, notch_addr_0)) + width;
  int64_t farthest = 0;  // of the last surface, and the last one of the last whole group
  for (const int64_t surface : {last, last / together * together - 1})
    if (surface >= 0) farthest = std::max(farthest, output_surface(r, surface));
  return reach_of(0, farthest + rows * kAtom);
}

// Surfaces of an operand, dense except for a notch after each. If two readers share it, each reads every second one.
npu::Reach operand_reach(const TaskRegisters& r, int64_t notch, bool is_odd_half) {
  const bool shared = (r.get<hw::DpuRdmaFeatureModeCfg>().comb_use & 1) != 0;
  const int64_t all = surfaces(r), own = !shared ? all : is_odd_half ? all / 2 : ceil_div(all, int64_t{2});
  return own == 0 ? npu::Reach{} : reach_of(0, (own - 1) * (pixel_bytes(r) + notch) + pixel_bytes(r));
}

npu::Reach channel_reach(const TaskRegisters& r) {
  constexpr uint32_t kDense = 1;
  constexpr int64_t kDenseBytes = 4, kGroupedBytes = 8;  // of a channel
  const bool dense = r.get<hw::DpuRdmaBrdmaCfg>().brdma_data_use == kDense;
  return reach_of(0, F(DpuDataCubeChannel, channel) * (dense ? kDenseBytes : kGroupedBytes));
}

std::string not_written(const TaskRegisters& r, uint32_t blocks) {
  for (const bits::Descriptor& one : hw::registers().registers) {
    const uint32_t block = one.address / hw::kBlockBytes;  // its bit in block_enable, except for the PC
    const bool is_used = block != 0 && (blocks >> (block - 1) & 1) != 0;
    if (is_used && allowed()[hw::registers().index(one)].is_there && !r.writes(one))
      return fmt::format("{}: the task does not write it", one.name);
  }
  return "";
}

}  // namespace

std::string TaskCheck::broken_rule(const TaskRegisters& r) const {
  const Weights& before = before_;
  const bool conv = is_convolution(r), alone = !conv, element_wise = is_element_wise(r);
  const bool depthwise = conv && r.get<hw::CnaConvCon1>().conv_mode == hw::ConvMode::depthwise;
  const bool packed = conv && r.get<hw::CnaConvCon1>().argb_in != hw::PixelFormat::cube;
  const bool looks_up = !F(DpuEwCfg, ew_bypass) && !F(DpuEwCfg, ew_lut_bypass);
  const bool table_loaded = table_entries_ == kTableEntries;
  const int64_t banks = chip_.cbuf_banks, bank_bytes = chip_.cbuf_bank_bytes;
  const int64_t taps = F(CnaWeightSize2, weight_width) * F(CnaWeightSize2, weight_height);
  const int64_t row_atoms = F(CnaFcDataSize1, dma_channel) / kAtom * F(CnaFcDataSize0, dma_width);
  const int64_t row_units = packed ? row_atoms : ceil_div(row_atoms, kUnitAtoms);
#define RULE(when, type, field, holds, otherwise)                                              \
  if (when) {                                                                                  \
    if (const int64_t v = F(type, field); !(holds))                                            \
      return fmt::format("{}.{} = {}: {}", hw::type::descriptor().name, #field, v, otherwise); \
  }
#include "npus/rockchip/compiler/task_rules.def"
#undef RULE
  return "";
}

std::string TaskCheck::overlap(const TaskRegisters& r) const {
  if (!is_convolution(r)) return "";
  const int64_t in = F(CnaFeatureDataAddr, feature_base_addr), out = F(DpuDstBaseAddr, dst_base_addr);
  const npu::Reach reach = feature_reach(r);
  const int64_t first = in - static_cast<int64_t>(reach.before), end = in + static_cast<int64_t>(reach.after);
  return written_among(first, end, surfaces(r), pixel_bytes(r),
                       [&](int64_t surface) { return out + output_surface(r, surface); });
}

std::string TaskCheck::command(const hw::Command& one) {
  const bits::Descriptor* const known = hw::registers().find(one.address);
  const uint32_t block = one.address / hw::kBlockBytes;
  const auto target = static_cast<uint32_t>(one.target);
  const uint32_t own = block == 0 ? 0x0101 : (uint32_t{0x0100} << block) | 1;
  if (known == nullptr || target != own)
    return fmt::format("register 0x{:04x} of target 0x{:04x} = 0x{:x}: no program writes that", one.address, target,
                       one.value);
  if (std::string bad = refused_value(*known, one.value); !bad.empty()) return bad;
  if (one.address == hw::DpuLutAccessCfg::kAddress) {
    writes_entries_ = bits::read<hw::DpuLutAccessCfg>({&one.value, 1}).lut_access_type == 1;
    if (writes_entries_) table_entries_ = 0;
  } else if (one.address == hw::DpuLutAccessData::kAddress) {
    if (writes_entries_ ? ++table_entries_ > kTableEntries : one.value != 0)
      return fmt::format("{} = 0x{:x}: not an entry of the table", known->name, one.value);
  }
  return "";
}

std::string TaskCheck::task(std::span<const hw::Command> commands, const TaskRegisters& r) {
  writes_entries_ = false;
  uint32_t started = 0;
  bool after_barrier = false;
  for (const hw::Command& one : commands) {
    if (one.target == hw::Target::none && one.address == 0 && one.value == 0) continue;
    if (started != 0) return "a command after the one that starts blocks";
    const bool is_barrier = one.target == hw::Target::barrier && one.address == 0 && one.value == 0;
    if (one.target == hw::Target::enable) {
      if (!after_barrier || one.address != hw::kEnableAddress || (one.value != kConvolution && one.value != kDpuAlone))
        return fmt::format("block_enable 0x{:04x} = 0x{:x}: no program has that", one.address, one.value);
      started = one.value;
    } else if (!is_barrier) {
      if (std::string bad = command(one); !bad.empty()) return bad;
    }
    after_barrier = is_barrier;
  }
  if (started == 0) return "the task starts no block";
  if (std::string bad = not_written(r, started); !bad.empty()) return bad;
  if (std::string bad = broken_rule(r); !bad.empty()) return bad;
  if (std::string bad = overlap(r); !bad.empty()) return bad;
  if (r.enable().cna && !r.get<hw::CnaCbufCon0>().weight_reuse)
    before_ = {F(CnaCbufCon0, data_bank), F(CnaCbufCon0, weight_bank), F(CnaWeightSize0, weight_bytes)};
  return "";
}

std::optional<npu::Reach> TaskCheck::reach(uint32_t address, const TaskRegisters& r) const {
  switch (address) {
    case hw::CnaFeatureDataAddr::kAddress: return feature_reach(r);
    case hw::CnaDcompAddr0::kAddress: return reach_of(0, F(CnaWeightSize0, weight_bytes));
    case hw::DpuDstBaseAddr::kAddress: return output_reach(r);
    case hw::DpuRdmaSrcBaseAddr::kAddress: return operand_reach(r, F(DpuRdmaSurfNotch, surf_notch_addr), false);
    case hw::DpuRdmaEwBaseAddr::kAddress: return operand_reach(r, F(DpuRdmaEwSurfNotch, ew_surf_notch), true);
    case hw::DpuRdmaBsBaseAddr::kAddress: return channel_reach(r);
    default: return std::nullopt;
  }
}
#undef F

}  // namespace skillet::npus::rockchip
