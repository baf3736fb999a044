// Reads tasks of the RK3576 back: the operation that the registers describe is written again, and the commands must be
// equal but for addresses. So only programs that the compiler could write are accepted.
#include <algorithm>
#include <array>

#include "base/int_math.h"
#include "base/leaked.h"
#include "npus/rockchip/compiler/rk3576.h"
#include "npus/rockchip/compiler/task_reading.h"

namespace skillet::npus::rockchip {
namespace rk3576 {
namespace {

namespace r = hw::rk3576;

constexpr uint32_t kLimits = 0x902, kLookup = 0x01004140;
constexpr std::array kAddresses = {r::CnaFeatureDataAddr::kAddress, r::CnaDcompAddr0::kAddress,
                                   r::DpuDstBaseAddr::kAddress,     r::DpuRdmaSrcBaseAddr::kAddress,
                                   r::DpuRdmaBsBaseAddr::kAddress,  r::DpuRdmaShiftAddr::kAddress,
                                   hw::PpuDstBaseAddr::kAddress,    hw::PpuRdmaSrcBaseAddr::kAddress};
constexpr int64_t kShiftReach = 64, kSumsMax = int64_t{1} << 17;
constexpr int64_t kDirectGroup = 64, kDepthwiseOperands = 48, kOperandGroup = 8;

bool loads_table(const TaskRegisters& t) { return !t.enable().cna && t.enable().dpu; }
bool looks_up(const TaskRegisters& t) { return t.enable().cna && t.get<r::DpuEwCfg>().value == kLookup; }

// ---- operations

struct ReadConv {
  Conv conv;
  Geometry g;
  Task task;
};
ReadConv read_conv(const TaskRegisters& t) {
  const auto size1 = t.get<r::CnaDataSize1>();
  const auto kernel = t.get<r::CnaWeightSize2>();
  const auto con3 = t.get<r::CnaConvCon3>();
  const auto pad = t.get<r::CnaPadCon0>();
  const auto shift = t.get<r::DpuOutCvtShift>();
  const auto i32 = [](uint32_t value) { return static_cast<int32_t>(value); };
  ReadConv out;
  Conv& c = out.conv;
  c.in = {i32(size1.datain_height), i32(size1.datain_width), i32(t.get<r::CnaDataSize0>().datain_channel)};
  c.out = {i32(t.get<r::CoreDataoutSize0>().dataout_height), i32(t.get<r::CnaDataSize2>().dataout_width),
           i32(t.get<r::CoreDataoutSize1>().dataout_channel)};
  c.kernel_height = i32(kernel.weight_height), c.kernel_width = i32(kernel.weight_width);
  c.stride_x = i32(con3.conv_x_stride), c.stride_y = i32(con3.conv_y_stride);
  c.pad_left = i32(pad.pad_left), c.pad_top = i32(pad.pad_top);
  c.depthwise = t.get<r::CnaConvCon1>().depthwise;
  c.pad_value = static_cast<uint32_t>(t.get<r::CnaPadCon1>().pad_value);
  c.clamp.on = t.get<r::DpuBnCfg>().value == kLimits;
  if (const int32_t most = t.get<r::DpuBnMax>().value; most != INT32_MAX) c.clamp.limit = most;
  c.halves_away = shift.cvt_round == hw::TieAway::half_away;
  c.out_gain = {t.get<r::DpuOutCvtScale>().out_cvt_scale, i32(shift.out_cvt_shift)};
  c.out_offset = t.get<r::DpuOutCvtOffset>().value;
  if (looks_up(t)) c.table = std::make_shared<const std::array<int8_t, 256>>();
  out.g = {.in_lanes = c.in.channels, .out_lanes = c.out.channels, .kernels = c.out.channels};
  out.g.line_stride = 4 * c.in.width;
  out.g.surface_stride = i32(t.get<r::CnaDmaCon2>().surf_stride);
  out.g.out_surface = t.get<r::DpuDstSurfStride>().dst_surf_stride;
  out.g.kernel_bytes = int64_t{c.taps()} * align_up(c.in.channels, kAtom);
  out.task = {.rows = c.in.height,
              .pad_top = c.pad_top,
              .out_rows = c.out.height,
              .lanes = c.out.channels,
              .data_banks = i32(t.get<r::CnaCbufBanks>().data_banks)};
  return out;
}

// Takes the part of the image that windows reach as the whole image.
Pool read_pool(const TaskRegisters& t) {
  const auto kernel = t.get<hw::PpuPoolingKernelCfg>();
  const auto pad = t.get<hw::PpuPoolingPaddingCfg>();
  const auto i32 = [](uint32_t value) { return static_cast<int32_t>(value); };
  Pool pool;
  pool.in = {i32(t.get<hw::PpuDataCubeInHeight>().cube_in_height), i32(t.get<hw::PpuDataCubeInWidth>().cube_in_width),
             i32(t.get<hw::PpuDataCubeInChannel>().cube_in_channel)};
  pool.out = {i32(t.get<hw::PpuDataCubeOutHeight>().cube_out_height),
              i32(t.get<hw::PpuDataCubeOutWidth>().cube_out_width), pool.in.channels};
  pool.kernel_height = i32(kernel.kernel_height), pool.kernel_width = i32(kernel.kernel_width);
  pool.stride_y = i32(kernel.kernel_stride_height), pool.stride_x = i32(kernel.kernel_stride_width);
  pool.pad_top = i32(pad.pad_top), pool.pad_left = i32(pad.pad_left);
  pool.maximum = t.get<r::PpuOperationModeCfg>().pooling_method == hw::Pooling::max;
  pool.input_zero = kZeroPoint + t.get<r::PpuPadValue1>().pad_value;
  return pool;
}

bool uses(uint32_t address, const TaskRegisters& t) {
  const hw::BlockEnable& enable = t.enable();
  switch (address) {
    case hw::PcBaseAddress::kAddress: return t.get<hw::PcRegisterAmounts>().pc_data_amount != 0;
    case r::CnaFeatureDataAddr::kAddress:
    case r::CnaDcompAddr0::kAddress:
    case r::DpuRdmaBsBaseAddr::kAddress:
    case r::DpuRdmaShiftAddr::kAddress: return enable.cna;
    case r::DpuDstBaseAddr::kAddress: return enable.dpu;
    case r::DpuRdmaSrcBaseAddr::kAddress: return loads_table(t);
    case hw::PpuDstBaseAddr::kAddress:
    case hw::PpuRdmaSrcBaseAddr::kAddress: return enable.ppu;
    default: return false;
  }
}

// ---- accepted programs

// Registers that may have any value: entries of tables, and values that depend on entries or on the whole image.
bool is_free(const hw::Command& command, const TaskRegisters& t) {
  switch (command.address) {
    case r::DpuLutAccessData::kAddress: return loads_table(t);
    case r::DpuLut4188::kAddress:
    case r::DpuLut418C::kAddress:
    case r::DpuLut4190::kAddress:
    case r::DpuLut4194::kAddress: return looks_up(t);
    case hw::PpuRdmaSrcLineStride::kAddress:
    case hw::PpuRdmaSrcSurfStride::kAddress: return t.enable().ppu;
    default: return false;
  }
}

// `read`: the convolution, read once for all checks.
Result<Commands> written_again(const TaskRegisters& t, const ReadConv& read) {
  if (t.enable().ppu) return write_pool(read_pool(t), PoolPlaces{});
  if (loads_table(t)) {
    Conv conv;
    conv.table = std::make_shared<const std::array<int8_t, 256>>();
    return write_table(conv, TaskPlaces{});
  }
  return rk3576::write_commands(read.conv, read.g, read.task, TaskPlaces{}, Tuning{}, nullptr, false);
}

const bits::Descriptor* known_register(uint32_t address) {
  const bits::RegisterSet* const set = leaked([] { return &hw::registers_of(*hw::find_chip("rk3576")); });
  return set->find(address);
}

std::string difference(std::span<const hw::Command> commands, const TaskRegisters& t, const ReadConv& read) {
  const auto again = written_again(t, read);
  if (!again.ok()) return again.error().message;
  const size_t count = again->bytes.size() / hw::kCommandBytes;
  for (size_t i = 0; i < std::min(count, commands.size()); ++i) {
    const hw::Command& is = commands[i];
    const std::array words{load_le<uint32_t>(&again->bytes[i * 8]), load_le<uint32_t>(&again->bytes[i * 8 + 4])};
    const auto would_be = bits::read<hw::Command>(words);
    const bits::Descriptor* const known = known_register(is.address);
    if (is.address != would_be.address || is.target != would_be.target)
      return fmt::format("command {} to 0x{:04x}: programs write 0x{:04x} there", i, is.address, would_be.address);
    if (is.value == would_be.value || is_free(is, t)) continue;
    if (known != nullptr && uses(is.address, t)) continue;
    return fmt::format("{} = 0x{:x}: a program of that shape has 0x{:x}", known == nullptr ? "a command" : known->name,
                       is.value, would_be.value);
  }
  if (commands.size() == count) return "";
  return fmt::format("{} commands: a program of that shape has {}", commands.size(), count);
}

int64_t surface_end(int64_t channels, int64_t pitch, int64_t pixels) {
  return ((ceil_div(channels, int64_t{kAtom}) - 1) * pitch + pixels) * kAtom;
}

// Checks the numbers before anything is computed from them.
std::string too_large(const ReadConv& read) {
  constexpr int32_t kMost = 8192;  // columns, channels
  const Conv& c = read.conv;
  if (c.stride_x == 0 || c.stride_y == 0) return "cna.conv_con3: no step";
  if (std::max({c.in.width, c.in.channels, c.out.width, c.out.channels}) > kMost)
    return fmt::format("cna.data_size: {} and {} columns, {} and {} channels; programs have at most {}", c.in.width,
                       c.out.width, c.in.channels, c.out.channels, kMost);
  if (std::string why = overfull(*hw::find_chip("rk3576"), c, read.g, read.task); !why.empty()) return why;
  if (int64_t{c.taps()} * (c.depthwise ? 1 : c.in.channels) >= kSumsMax) return "sums that may leave 32 bits";
  return "";
}

std::string overlap(const TaskRegisters& t, const ReadConv& read) {
  const Conv& c = read.conv;
  const auto in = static_cast<int64_t>(t.get<r::CnaFeatureDataAddr>().feature_base_addr.offset);
  const auto out = static_cast<int64_t>(t.get<r::DpuDstBaseAddr>().dst_base_addr.offset);
  const int64_t end = in + surface_end(c.in.channels, read.g.surface_stride, c.in.pixels());
  return written_among(in, end, ceil_div(c.out.channels, kAtom), c.out.pixels() * kAtom,
                       [&](int64_t surface) { return out + surface * read.g.out_surface * kAtom; });
}

std::string refused(std::span<const hw::Command> commands, const TaskRegisters& t, JobState& job) {
  if (!t.enable().cna && !t.enable().ppu && !t.enable().dpu) return "the task starts no block";
  const ReadConv read = t.enable().cna ? read_conv(t) : ReadConv{};
  if (std::string why = t.enable().cna ? too_large(read) : ""; !why.empty()) return why;
  if (std::string why = difference(commands, t, read); !why.empty()) return why;
  for (const uint32_t address : kAddresses) {
    if (uses(address, t) && t.value(*known_register(address)) % kAtom != 0)
      return fmt::format("{}: not aligned", known_register(address)->name);
  }
  if (looks_up(t) && !job.table_loaded) return "dpu.ew_cfg: looks up, but no task of the job has loaded a table";
  job.table_loaded = job.table_loaded || loads_table(t);
  return t.enable().cna ? overlap(t, read) : "";
}

// ---- reach

std::optional<npu::Reach> of(int64_t bytes) {
  if (bytes < 0) return std::nullopt;
  return npu::Reach{.before = 0, .after = static_cast<uint64_t>(bytes)};
}

std::optional<npu::Reach> pool_reach(uint32_t address, const TaskRegisters& t) {
  const Pool pool = read_pool(t);
  if (address == hw::PpuDstBaseAddr::kAddress)
    return of(surface_end(pool.out.channels, in_fours(pool.out.pixels()), pool.out.pixels()));
  const int64_t line = t.get<hw::PpuRdmaSrcLineStride>().src_line_stride;
  const int64_t surface = t.get<hw::PpuRdmaSrcSurfStride>().src_surf_stride;
  return of((ceil_div(pool.in.channels, kAtom) - 1) * surface + (pool.in.height - 1) * line +
            int64_t{pool.in.width} * kAtom);
}

std::optional<npu::Reach> reach(uint32_t address, const TaskRegisters& t) {
  if (t.enable().ppu) return pool_reach(address, t);
  if (loads_table(t)) return of(kAtom);
  const int64_t channels = t.get<r::CoreDataoutSize1>().dataout_channel;
  switch (address) {
    case r::CnaFeatureDataAddr::kAddress: {
      const auto size = t.get<r::CnaDataSize1>();
      return of(surface_end(t.get<r::CnaDataSize0>().datain_channel, t.get<r::CnaDmaCon2>().surf_stride,
                            int64_t{size.datain_height} * size.datain_width));
    }
    case r::CnaDcompAddr0::kAddress: return of(t.get<r::CnaWeightSize0>().weight_bytes);
    case r::DpuDstBaseAddr::kAddress:
      return of(
          surface_end(channels, t.get<r::DpuDstSurfStride>().dst_surf_stride,
                      int64_t{t.get<r::CoreDataoutSize0>().dataout_height} * t.get<r::CnaDataSize2>().dataout_width));
    case r::DpuRdmaBsBaseAddr::kAddress:
      return of(ceil_div(channels, kOperandGroup) *
                (t.get<r::CnaConvCon1>().depthwise ? kDepthwiseOperands : kDirectGroup));
    case r::DpuRdmaShiftAddr::kAddress: return of(kShiftReach);
    default: return std::nullopt;
  }
}

// ---- words

uint32_t weight_bytes(const TaskRegisters& t) { return t.get<r::CnaWeightSize0>().weight_bytes; }

// Also names what only the vendor's programs do.
std::string name(const TaskRegisters& t) {
  constexpr uint32_t kAdds = 0x8002C0C0, kMultiplies = 0x810F4094, kLoads = 0x00FF0000;
  if (t.enable().ppu) return "POOL";
  const uint32_t use = t.get<r::DpuEwCfg>().value;
  const std::string_view more = use == kLookup ? "TABLE" : use == kAdds ? "ADD" : use == kMultiplies ? "MUL" : "";
  if (!t.enable().cna && t.get<r::DpuLutCfg>().value == kLoads) return "LOAD TABLE";
  if (!t.enable().cna) return std::string(more.empty() ? "ELEMENTWISE" : more);
  return fmt::format("{}{}{}", t.get<r::CnaConvCon1>().depthwise ? "DEPTHWISE" : "CONV", more.empty() ? "" : "+", more);
}

std::string shape(const TaskRegisters& t) {
  if (t.enable().ppu) {
    const Pool p = read_pool(t);
    return fmt::format("{}x{}x{} -> {}x{}, kernel {}x{}", p.in.height, p.in.width, p.in.channels, p.out.height,
                       p.out.width, p.kernel_height, p.kernel_width);
  }
  if (!t.enable().cna) return "";
  const Conv c = read_conv(t).conv;
  return fmt::format("{}x{}x{} -> {}x{}x{}, kernel {}x{}", c.in.height, c.in.width, c.in.channels, c.out.height,
                     c.out.width, c.out.channels, c.kernel_height, c.kernel_width);
}

}  // namespace
}  // namespace rk3576

const TaskReading* reading_of(const hw::ChipRow& chip) {
  static constexpr TaskReading kReading{.addresses = rk3576::kAddresses,
                                        .dpu_output = rk3576::r::DpuDstBaseAddr::kAddress,
                                        .weights = rk3576::r::CnaDcompAddr0::kAddress,
                                        .uses = rk3576::uses,
                                        .weight_bytes = rk3576::weight_bytes,
                                        .refused = rk3576::refused,
                                        .reach = rk3576::reach,
                                        .name = rk3576::name,
                                        .shape = rk3576::shape};
  return chip.has(hw::kRegisters3576) ? &kReading : nullptr;
}

}  // namespace skillet::npus::rockchip
