// The register commands of a convolution for the RK3576, and of the program that loads a table for later ones of the
// job, in the order of the vendor's compiler. Specification of the RK3576, sections 3 to 5 and 10. Registers that are
// known only as whole values have them here, with a name.
#include <algorithm>

#include "base/int_math.h"
#include "npus/rockchip/compiler/commands.h"
#include "npus/rockchip/compiler/elementwise.h"
#include "npus/rockchip/compiler/rk3576.h"

namespace skillet::npus::rockchip::rk3576 {
namespace {

namespace r = hw::rk3576;

constexpr uint32_t kConvCon2 = 0xFFF, kByteEnables = 0xFFFF, kByteEnablesHigh = 0x40;
constexpr uint32_t kBnOff = 0x903, kBnLimits = 0x902, kBnSlope = 0x402, kSlopeOperand = 0x18, kEwOff = 0x010041C1,
                   kEwLookup = 0x01004140;
constexpr uint32_t kTwoCoresEnable = 1U << 24, kTwoCoresAmount = 1U << 16;

// Values that differ between direct convolutions, depthwise ones, the dummy program, and the one that loads a table: it
// is of the DPU alone.
struct Mode {
  uint32_t core, bs_cube, bs_cfg, bs_mode, brdma, rdma;
  uint32_t write_cfg = 0x04440100, lut_cfg = 0, erdma = 0x41;
  bool loads = false;
};
constexpr Mode kDirect{0x1, 0x710, 0x00120080, 1, 0x710, 0x40000010};
constexpr Mode kDepthwise{0xA, 0x310, 0x00100092, 0, 0x510, 0x40000012};
constexpr Mode kDummy{0x1, 0x710, 0x00020040, 0, 0x14, 0x40000010};
constexpr Mode kLoad{0, 0xF00, 0x53, 2, 0, 9, 0x04440000, 0x00FF0000, 1, true};

constexpr int32_t kEntries = 513, kByteLog2 = 7;
constexpr int32_t kByteEntries = 2;  // from one byte to the next

// By sums of kTableStep / kByteEntries each: the byte's entry; between two bytes the mean of their entries.
int32_t entry(const Conv& conv, int32_t index) {
  const auto value = [&](int32_t halves) {
    const int32_t byte = std::clamp((halves >> 1) + conv.table_zero, INT8_MIN, INT8_MAX);
    return (*conv.table)[static_cast<size_t>(byte - INT8_MIN)] * (1 << kByteLog2);
  };
  return (value(index) + value(index + 1)) / kByteEntries;
}

// In the table registers of a program that looks up.
struct TableEnds {
  int32_t first = 0, last = 0;
};
TableEnds table_ends(const Conv& conv) { return {entry(conv, 1 - kEntries), entry(conv, kEntries - 1)}; }

// A program's share of the buffer that both cores use, in banks.
struct Share {
  uint32_t first, end;  // first data bank; bank after the last one of the weights
  bool second, later;
};

class Writer {
 public:
  Writer(const Conv& conv, const Geometry& g, const Task& task, const TaskPlaces& places, const Mode& mode)
      : c_(conv), g_(g), t_(task), at_(places), mode_(mode) {
    in_lanes_ = u(conv.depthwise ? task.lanes : g.in_lanes);
    weight_lanes_ = align_up(in_lanes_, u(kAtom));
    kernel_ = weight_lanes_ * u(conv.taps());
    entries_ = u(row_entries(static_cast<int32_t>(in_lanes_), conv.in.width));
    two_cores_ = task.dummy || task.use == CoreUse::upper_half || task.use == CoreUse::lower_half;
  }

  Result<Commands> run() {
    if (const std::string why = t_.dummy ? "" : refuses(c_); !why.empty()) return Error{ErrorCode::unsupported, why};
    pointers();
    geometry();
    buffer();
    converter();
    features();
    core();
    output();
    stages();
    tables();
    readers();
    trailer();
    return list_.take();
  }

  Result<Commands> load(const Conv& conv) {
    pointer<r::DpuSPointer>();
    pointer<r::DpuRdmaSPointer>();
    output();
    stages();
    tables();
    readers();
    entries(conv, 0);
    entries(conv, 1);
    list_.command(hw::Target::none, 0, 0);
    list_.put(hw::PcRegisterAmounts{});
    list_.start({.dpu = true, .dpu_rdma = true});
    return list_.take();
  }

 private:
  template <typename T>
  void put(const T& fields) {
    list_.put(fields);
  }
  template <typename T>
  void pointer() {
    if (c_.table)
      put(T{.pointer_pp_clear = true, .executer_pp_clear = true});
    else
      put(T{.pointer_pp_en = true, .executer_pp_en = true, .pointer_pp_mode = 1});
  }
  void pointers() {
    pointer<r::CnaSPointer>();
    pointer<r::CoreSPointer>();
    if (!two_cores_ && !t_.one_of_two) put(weight_banks());
    pointer<r::DpuSPointer>();
    pointer<r::DpuRdmaSPointer>();
  }

  Share share() const {
    switch (t_.use) {
      case CoreUse::second: return {7, 14, true, false};
      case CoreUse::upper_half: return {0, 16, false, false};
      case CoreUse::lower_half: return {6, 16, false, true};
      default: return {0, 7, false, t_.dummy};
    }
  }
  // The data ring of a lower half ends where its weights begin; that of an upper half also, six banks further on.
  uint32_t data_end() const { return share().first + u(t_.data_banks); }
  uint32_t weights_first() const {
    constexpr uint32_t kSharedWeights = 12;
    return two_cores_ && !t_.dummy ? kSharedWeights : data_end();
  }
  static constexpr uint32_t kBankUnits = 1024;

  r::CnaWeightBanks weight_banks() const {
    const Share s = share();
    return {.weight_end_bank = s.end, .core_1 = s.second && !t_.one_of_two, .dummy = t_.dummy, .later = s.later};
  }

  void geometry() {
    put(r::CnaConvCon1{.depthwise = c_.depthwise});
    put(r::CnaConvCon2{kConvCon2});
    put(r::CnaConvCon3{.conv_x_stride = u(c_.stride_x), .conv_y_stride = u(c_.stride_y), .two_cores = two_cores_});
    put(r::CnaCbufBanks{.data_end_bank = data_end(), .data_banks = u(t_.data_banks), .always = true});
    const uint32_t kernels = u(std::min(t_.lanes, g_.out_lanes - t_.first_lane));
    put(r::CnaWeightSize0{.weight_bytes = c_.depthwise ? kernel_ * 2 : kernel_ * kernels});
    put(r::CnaWeightSize1{.weight_bytes_per_kernel = kernel_});
    put(r::CnaWeightSize2{.weight_kernels = c_.depthwise ? 2 : kernels,
                          .weight_width = u(c_.kernel_width),
                          .weight_height = u(c_.kernel_height)});
    put(r::CnaDataSize0{.datain_channel = in_lanes_, .fetched_entries = entries_ * u(t_.rows)});
    put(r::CnaDataSize1{.datain_height = u(t_.rows), .datain_width = u(c_.in.width)});
    put(r::CnaDataSize2{.dataout_width = u(c_.out.width), .weight_units = c_.depthwise ? kernel_ / 8 : kernel_ * 2});
    put(r::CnaDataSize3{.dataout_atomics = u(int64_t{c_.out.width} * t_.out_rows)});
  }

  void buffer() {
    put(weight_banks());
    const uint32_t first = share().first * kBankUnits;
    put(r::CnaCbufWindow{.window_granule = first, .row_entries = entries_});
    put(r::CnaCbufPlaces{.fetch_granule = first, .weight_granule = weights_first() * kBankUnits});
    put(r::CnaRowSize{.row_entries = entries_, .row_width = u(c_.in.width)});
  }

  void converter() {
    put(r::CnaCvtCon0{.cvt_bypass = true, .cvt_type = 1, .data_sign = true});
    put(r::CnaCvtCon1{.cvt_scale0 = 1, .cvt_scale1 = 1});
    put(r::CnaCvtCon2{.cvt_scale2 = 1, .cvt_scale3 = 1});
    list_.zeros<r::CnaCvtOffset0, r::CnaCvtOffset1, r::CnaCvtOffset2, r::CnaZero1060, r::CnaZero1064, r::CnaZero1068,
                r::CnaZero106C, r::CnaZero1070, r::CnaZero1074>();
  }

  void features() {
    put(r::CnaFcDataSize0{.dma_height = u(t_.rows), .dma_width = u(c_.in.width)});
    put(r::CnaFcDataSize1{.dma_channel = in_lanes_});
    put(r::CnaPadCon0{.pad_top = u(t_.pad_top),
                      .pad_left = u(c_.pad_left),
                      .pad_bottom = behind(t_.out_rows, c_.stride_y, c_.kernel_height, t_.pad_top, t_.rows),
                      .pad_right = behind(c_.out.width, c_.stride_x, c_.kernel_width, c_.pad_left, c_.in.width)});
    put(r::CnaPadCon1{.pad_value = static_cast<int8_t>(c_.pad_value)});  // one value, not a lane each
    put(r::CnaFeatureDataAddr{.feature_base_addr = at_.input});
    put(r::CnaDmaCon0{.data_burst_len = hw::Burst::beats_16, .weight_burst_len = hw::Burst::beats_16});
    put(r::CnaDmaCon1{.line_stride = u(g_.line_stride)});
    put(r::CnaDmaCon2{.surf_stride = u(g_.surface_stride)});
    put(r::CnaDmaCon3{.fetched_pixels = u(in_fours(int64_t{c_.in.width} * t_.rows))});
    list_.zeros<r::CnaZero109C, r::CnaDcompCtrl, r::CnaDcompRegnum>();
    put(r::CnaDcompAddr0{.decompress_addr0 = {at_.weights}});
    list_.zeros<r::CnaZero1140, r::CnaZero1144>();
    put(r::CnaRowUnits{.low = u(c_.in.width), .high = u(c_.in.width)});
  }

  void core() {
    put(r::CoreMiscCfg{.mode = mode_.core, .always = true});
    put(r::CoreDataoutSize0{.dataout_width = u(c_.out.width), .dataout_height = u(t_.out_rows)});
    put(r::CoreDataoutSize1{.dataout_channel = u(t_.lanes)});
    put(r::CoreZero3024{});
  }

  void output() {
    const uint32_t width = u(c_.out.width), height = u(t_.out_rows), lanes = u(t_.lanes);
    put(r::DpuFeatureModeCfg{.flying_mode = mode_.loads ? hw::MainSource::memory : hw::MainSource::core,
                             .output_mode = hw::OutputMode::memory,
                             .depthwise = c_.depthwise,
                             .always = !mode_.loads});
    list_.zeros<r::DpuDataFormat, r::DpuZero4014>();
    put(r::DpuDstBaseAddr{.dst_base_addr = at_.output});
    put(r::DpuDstSurfStride{.dst_surf_stride = u(g_.out_surface)});
    put(r::DpuDataCubeWidth{.width = width});
    put(r::DpuDataCubeHeight{.height = height});
    put(r::DpuZero4028{});
    put(r::DpuDataCubeChannel{.channel = lanes});
    put(r::DpuBsCube{.mode = mode_.bs_cube, .channel = lanes});
    put(r::DpuWdmaSize{.width = width, .height = height});
    put(r::DpuBsCfg{mode_.bs_cfg});
    put(r::DpuZero403C{});
    put(r::DpuBsMode{mode_.bs_mode});
  }

  // By the number of atoms, as in programs; the register's fields are not known.
  uint32_t bs_ow_cfg() const {
    constexpr uint32_t kDirectBase = 0x80011011, kEvenAtoms = 0x100, kDepthwiseBase = 0x00013033,
                       kDummyValue = 0x80021011, kLoadValue = 0x00020000;
    const uint32_t atoms = ceil_div(u(t_.lanes), u(kAtom));
    if (mode_.loads) return kLoadValue;
    if (t_.dummy) return kDummyValue;
    if (c_.depthwise) return kDepthwiseBase | ((atoms - 1) & 3) << 8;
    return kDirectBase | (atoms % 2 == 0 ? kEvenAtoms : 0);
  }

  template <typename Min, typename Max>
  void no_limits() {
    put(Min{INT32_MIN});
    put(Max{INT32_MAX});
  }
  void stages() {
    no_limits<r::DpuBsMin, r::DpuBsMax>();
    put(r::DpuBsOwCfg{bs_ow_cfg()});
    no_limits<r::DpuBs2Min, r::DpuBs2Max>();
    const bool limits = c_.clamp.on;
    const int32_t least = limits ? 0 : INT32_MIN, most = c_.clamp.limit.value_or(INT32_MAX);
    put(r::DpuBnCfg{c_.slope ? kBnSlope : limits ? kBnLimits : kBnOff});
    put(r::DpuBnMin{least});
    put(r::DpuBnMax{most});
    put(r::DpuBn2Min{least});
    put(r::DpuBn2Max{most});
    put(r::DpuEwCfg{c_.table ? kEwLookup : kEwOff});
    put(r::DpuEwCvtOffset{});
    put(r::DpuEwCvtScale{.scale = 1});
    no_limits<r::DpuEwMin, r::DpuEwMax>();
    list_.zeros<r::DpuZero4090, r::DpuZero4094, r::DpuZero409C>();
    no_limits<r::DpuOutMin, r::DpuOutMax>();
    put(r::DpuOutCvtOffset{c_.out_offset});
    put(r::DpuOutCvtScale{.out_cvt_scale = c_.out_gain.scale, .narrow = mode_.loads});
    constexpr int32_t kSlopeShift = 11;  // then sums that are not negative are larger by these bits
    put(r::DpuOutCvtShift{.out_cvt_shift = u(c_.out_gain.shift + (c_.slope ? kSlopeShift : 0)),
                          .cvt_round = c_.halves_away ? hw::TieAway::half_away : hw::TieAway::half_even});
    const int64_t surfaces = c_.depthwise ? 4 * g_.out_surface : 2 * g_.out_surface;
    put(r::DpuSurfaceAdd{.surf_add = mode_.loads ? 0 : u(surfaces - int64_t{c_.out.width} * t_.out_rows)});
    put(r::DpuZero40BC{});
    put(r::DpuWriteCfg{mode_.write_cfg});
    list_.zeros<r::DpuZero40C8, r::DpuLutMemory>();
    put(r::DpuByteEnables{.enables = kByteEnables, .high = kByteEnablesHigh});
  }

  void tables() {
    if (c_.table) return lookup();
    list_.zeros<r::DpuLutAccessCfg, r::DpuLutAccessData>();
    put(r::DpuLutCfg{mode_.lut_cfg});
    list_.zeros<r::DpuLutInfo, r::DpuLutLeStart0, r::DpuLutLeStart1, r::DpuLutLeStart2, r::DpuLutLeStart3,
                r::DpuLut4120, r::DpuLut4130, r::DpuLutLoEnd0, r::DpuLutLoEnd1, r::DpuLutLoEnd2, r::DpuLutLoEnd3,
                r::DpuLut4150, r::DpuLut4154, r::DpuLut4160, r::DpuLut4170, r::DpuLut4174, r::DpuLut4184, r::DpuLut4188,
                r::DpuLut418C, r::DpuLut4190, r::DpuLut4194>();
  }
  void lookup() {
    constexpr uint32_t kUse = 0x02000006, kSteps = 0x00050500;  // of 32 in both tables
    constexpr int32_t kEnd = 16384;
    const auto [first, last] = table_ends(c_);
    const uint32_t low = u(first) & 0xFFFF, high = u(last) & 0xFFFF;
    list_.zeros<r::DpuLutAccessCfg, r::DpuLutAccessData>();
    put(r::DpuLutCfg{kUse});
    put(r::DpuLutInfo{kSteps});
    put(r::DpuLutLeStart0{-kEnd});
    put(r::DpuLutLeStart1{-kEnd});
    put(r::DpuLutLeStart2{-kEnd});
    put(r::DpuLutLeStart3{-kEnd});
    list_.zeros<r::DpuLut4120, r::DpuLut4130>();
    put(r::DpuLutLoEnd0{kEnd});
    put(r::DpuLutLoEnd1{kEnd});
    put(r::DpuLutLoEnd2{kEnd});
    put(r::DpuLutLoEnd3{kEnd});
    list_.zeros<r::DpuLut4150, r::DpuLut4154, r::DpuLut4160, r::DpuLut4170, r::DpuLut4174, r::DpuLut4184>();
    put(r::DpuLut4188{low << 16});
    put(r::DpuLut418C{low << 16 | low});
    put(r::DpuLut4190{high << 16});
    put(r::DpuLut4194{high << 16 | high});
  }

  // Below zero, then above: the last entry of the first table is the first of the second.
  void entries(const Conv& conv, int32_t table) {
    put(r::DpuLutAccessCfg{.lut_table_id = u(table), .lut_access_type = 1});
    for (int32_t i = 0; i < kEntries; ++i)
      put(r::DpuLutAccessData{.lut_access_data = entry(conv, i + (table - 1) * (kEntries - 1))});
  }

  void readers() {
    put(r::DpuRdmaDataCubeWidth{.width = u(c_.out.width)});
    put(r::DpuRdmaDataCubeHeight{.height = u(t_.out_rows)});
    put(r::DpuRdmaDataCubeChannel{.channel = t_.dummy ? 1 : u(t_.lanes)});
    put(r::DpuRdmaSrcBaseAddr{.src_base_addr = mode_.loads ? at_.input : bits::Address{}});
    put(r::DpuRdmaBrdmaCfg{mode_.brdma});
    put(r::DpuRdmaBsBaseAddr{.bs_base_addr = {at_.operands}});
    put(r::DpuRdmaShiftAddr{.shift_addr = {at_.shifts}});
    put(r::DpuRdmaNrdmaCfg{c_.slope ? kSlopeOperand : 0});
    put(r::DpuRdmaBnBaseAddr{.bn_base_addr = {bits::Address{}}});
    put(r::DpuRdmaZero5030{});
    put(r::DpuRdmaErdmaCfg{mode_.erdma});
    put(r::DpuRdmaEwBaseAddr{});
    put(r::DpuRdmaEwSurfStride{});
    put(r::DpuRdmaFeatureModeCfg{mode_.rdma});
    list_.zeros<r::DpuRdmaZero5048, r::DpuRdmaSurfNotch, r::DpuRdmaZero5064, r::DpuRdmaEwSurfNotch, r::DpuRdmaZero5078,
                r::DpuRdmaZero507C>();
  }

  // The kernel starts tasks one by one, so no program follows.
  void trailer() {
    list_.command(hw::Target::none, 0, 0);
    list_.command(hw::Target::pc, hw::PcRegisterAmounts::kAddress, two_cores_ && !t_.dummy ? kTwoCoresAmount : 0);
    constexpr uint32_t kConvolution = 0x1D;
    list_.command(hw::Target::barrier, 0, 0);
    list_.command(hw::Target::enable, hw::kEnableAddress, kConvolution | (two_cores_ ? kTwoCoresEnable : 0));
  }

  const Conv& c_;
  const Geometry& g_;
  const Task& t_;
  const TaskPlaces& at_;
  const Mode& mode_;
  uint32_t in_lanes_ = 0, weight_lanes_ = 0, kernel_ = 0, entries_ = 0;
  bool two_cores_ = false;
  CommandList list_;
};

// One pixel of 16 channels.
Conv one_pixel(Gain gain) {
  Conv conv{.in = {1, 1, kAtom}, .out = {1, 1, kAtom}};
  conv.out_gain = gain;
  return conv;
}
constexpr Geometry kOnePixel{.in_lanes = kAtom,
                             .out_lanes = kAtom,
                             .kernels = kAtom,
                             .row_width = 1,
                             .line_stride = 4,
                             .surface_stride = 1,
                             .row_entries = 1,
                             .out_surface = 1,
                             .kernel_bytes = kAtom};

}  // namespace

std::string refuses(const Conv& conv) {
  if (std::max(conv.dilation_x, conv.dilation_y) > 1) return "no known program of the chip has a dilated filter";
  if (conv.gap != 0) return "no known program of the chip skips pixels at the end of a row";
  if (conv.repeated) return "no known program of the chip reads a pixel more than once";
  if (conv.addition) return "no known program of the chip adds a second tensor to a convolution on silicon";
  if (conv.rounded || conv.packed || conv.truncate != 0) return "no known program of the chip does that";
  return "";
}

Result<Commands> write_commands(const Conv& conv, const Geometry& g, const Task& task, const TaskPlaces& places,
                                const Tuning&, const NextTask*, bool) {
  if (task.dummy) return Writer(one_pixel({1 << 14, 14}), kOnePixel, task, {}, kDummy).run();
  return Writer(conv, g, task, places, conv.depthwise ? kDepthwise : kDirect).run();
}

Result<Commands> write_table(const Conv& conv, const TaskPlaces& places) {
  const Task task{.rows = 1, .out_rows = 1, .lanes = kAtom};
  const TaskPlaces own{.input = places.input, .output = places.output};
  return Writer(one_pixel({1, 0}), kOnePixel, task, own, kLoad).load(conv);
}

}  // namespace skillet::npus::rockchip::rk3576
