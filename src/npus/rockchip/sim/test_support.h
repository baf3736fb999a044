// Programs and memory for the simulator's tests: a convolution, an element-wise operation and a pooling as the hardware
// specification writes them (sections 4.2, A.1, A.2), field by field, and operands to run them on.
// Called by the tests and the fuzzer of npus/rockchip/sim.
// Must not know: drivers beyond npus/rockchip/hw.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <vector>

#include "base/bytes.h"
#include "base/int_math.h"
#include "npus/rockchip/hw/rockchip.h"
#include "npus/rockchip/sim/npu.h"

namespace skillet::sim::rockchip {
namespace hw = ::skillet::rockchip::hw;
}

namespace skillet::sim::rockchip::testing {

constexpr uint64_t kStream = 0x1000, kWeights = 0x100000, kBias = 0x300000, kInput = 0x400000, kSecond = 0x500000,
                   kOutput = 0x600000;

inline uint64_t command_word(hw::Target target, uint32_t value, uint32_t address) {
  return uint64_t{static_cast<uint16_t>(target)} << 48 | uint64_t{value} << 16 | address;
}

inline hw::Target target_of(uint32_t address) {
  constexpr std::array kTargets = {hw::Target::pc,  hw::Target::cna,      hw::Target::cmac, hw::Target::core,
                                   hw::Target::dpu, hw::Target::dpu_rdma, hw::Target::ppu,  hw::Target::ppu_rdma};
  return kTargets.at(address / hw::kBlockBytes);
}

// Registers by address, and the blocks to start.
struct Program {
  std::map<uint32_t, uint32_t> registers;
  uint32_t blocks = 0;
  std::vector<uint64_t> before_start = {0, command_word(hw::Target::pc, 0, hw::PcRegisterAmounts::kAddress)};

  template <typename T>
  void set(const T& fields) {
    registers[T::kAddress] = bits::pack(fields).value()[0];
  }
  template <typename T>
  T get() const {
    return bits::read<T>({&registers.at(T::kAddress), 1});
  }
  template <typename T, typename Change>
  void change(Change change) {
    T fields = get<T>();
    change(fields);
    set(fields);
  }
  std::vector<uint64_t> stream() const {
    std::vector<uint64_t> words;
    for (const auto& [address, value] : registers) words.push_back(command_word(target_of(address), value, address));
    words.insert(words.end(), before_start.begin(), before_start.end());
    if (words.size() % 2 != 0) words.push_back(0);  // the chip fetches two at a time
    words.push_back(command_word(hw::Target::barrier, 0, 0));
    words.push_back(command_word(hw::Target::enable, blocks, hw::kEnableAddress));
    return words;
  }
};

// One convolution of uint8 tensors by one task.
struct Conv {
  int in_h = 5, in_w = 5, in_c = 3, out_h = 5, out_w = 5, out_c = 16, kernel_h = 3, kernel_w = 3;
  int stride_y = 1, stride_x = 1, dilation_y = 1, dilation_x = 1, pad_top = 1, pad_left = 1;
  bool depthwise = false;
  int zero_in = 120, zero_weight = 131, zero_out = 127;
  int out_scale = 16385, out_shift = 23;
  // Fused addition.
  bool add = false;
  int zero_second = 100, second_scale = 0x6666, second_shift = 13;

  int lanes() const { return align_up(in_c, depthwise ? 64 : 16); }
  int out_lanes() const { return align_up(out_c, depthwise ? 64 : 32); }
  int kernels() const { return depthwise ? 1 : out_lanes(); }
  int taps() const { return kernel_h * kernel_w; }
};

inline void add_cna(const Conv& c, Program& p) {
  const auto u = [](int v) { return static_cast<uint32_t>(v); };
  const auto mode = c.depthwise ? hw::ConvMode::depthwise : hw::ConvMode::direct;
  p.set(hw::CnaConvCon1{.conv_mode = mode});
  p.set(hw::CnaConvCon2{.feature_grains = u(c.in_h + 1)});
  p.set(hw::CnaConvCon3{.conv_x_stride = u(c.stride_x),
                        .conv_y_stride = u(c.stride_y),
                        .atrous_x_dilation = u(c.dilation_x - 1),
                        .atrous_y_dilation = u(c.dilation_y - 1)});
  p.set(hw::CnaDataSize0{.datain_height = u(c.in_h), .datain_width = u(c.in_w)});
  p.set(hw::CnaDataSize1{.datain_channel = u(c.lanes()), .datain_channel_real = u(c.in_c)});
  p.set(hw::CnaDataSize2{.dataout_width = u(c.out_w)});
  p.set(hw::CnaDataSize3{.dataout_atomics = u(c.out_w * c.out_h)});
  p.set(hw::CnaWeightSize0{.weight_bytes = u(c.taps() * c.lanes() * c.kernels())});
  p.set(hw::CnaWeightSize1{.weight_bytes_per_kernel = u(c.taps() * c.lanes())});
  p.set(hw::CnaWeightSize2{
      .weight_kernels = u(c.kernels()), .weight_height = u(c.kernel_h), .weight_width = u(c.kernel_w)});
  p.set(hw::CnaCbufCon0{.data_bank = 6, .weight_bank = 6});
  p.set(hw::CnaCbufCon1{.data_entries = u(ceil_div(c.lanes() / 16 * c.in_w, 4))});
  p.set(hw::CnaCvtCon0{.cvt_bypass = true, .cvt_type = hw::CvtOrder::add_first, .data_sign = 1});
  p.set(hw::CnaCvtCon1{.cvt_scale0 = 1});
  p.set(hw::CnaCvtCon2{.cvt_scale1 = 1});
  p.set(hw::CnaCvtCon3{.cvt_scale2 = 1});
  p.set(hw::CnaCvtCon4{.cvt_scale3 = 1});
  p.set(hw::CnaPadCon0{.pad_top = u(c.pad_top), .pad_left = u(c.pad_left)});
  p.set(hw::CnaFeatureDataAddr{.feature_base_addr = {bits::Address::kAbsolute, kInput}});
  p.set(hw::CnaDmaCon0{.data_burst_len = hw::Burst::beats_16, .weight_burst_len = hw::Burst::beats_16});
  p.set(hw::CnaDmaCon1{.line_stride = u(4 * c.in_w)});
  p.set(hw::CnaDmaCon2{.surf_stride = c.in_w * (c.in_h - 4)});
  p.set(hw::CnaFcDataSize0{.dma_height = u(c.in_h), .dma_width = u(c.in_w)});
  p.set(hw::CnaFcDataSize1{.dma_channel = u(c.lanes())});
  p.set(hw::CnaDcompAddr0{.decompress_addr0 = {{bits::Address::kAbsolute, kWeights}}});
  p.set(hw::CnaCvtCon5{});
  p.set(hw::CnaPadCon1{.pad_value = u(c.zero_in ^ 0x80) * 0x01010101U});
  p.set(hw::CoreMiscCfg{.qd_en = true, .dw_en = c.depthwise});
  p.set(hw::CoreDataoutSize0{.dataout_width = u(c.out_w), .dataout_height = u(c.out_h)});
  p.set(hw::CoreDataoutSize1{.dataout_channel = u(c.out_lanes())});
  p.set(hw::CoreClipTruncate{});
}

inline void add_dpu(const Conv& c, Program& p) {
  const auto u = [](int v) { return static_cast<uint32_t>(v); };
  const auto mode = c.depthwise ? hw::ConvMode::depthwise : hw::ConvMode::direct;
  const uint32_t surfaces = c.depthwise ? 4 : 2, plane = u(c.out_w * c.out_h) * 16;
  p.registers[hw::DpuSPointer::kAddress] = hw::kPointerPingPong;
  p.registers[hw::DpuRdmaSPointer::kAddress] = hw::kPointerPingPong;
  p.set(hw::DpuFeatureModeCfg{
      .output_mode = hw::OutputMode::memory, .conv_mode = mode, .burst_len = hw::Burst::beats_16});
  p.set(hw::DpuDataFormat{});
  p.set(hw::DpuOffsetPend{});
  p.set(hw::DpuDstBaseAddr{.dst_base_addr = {bits::Address::kAbsolute, kOutput}});
  p.set(hw::DpuDstSurfStride{.dst_surf_stride = plane});
  p.set(hw::DpuDataCubeWidth{.width = u(c.out_w)});
  p.set(hw::DpuDataCubeHeight{.height = u(c.out_h)});
  p.set(hw::DpuDataCubeNotchAddr{});
  p.set(hw::DpuDataCubeChannel{.channel = u(c.out_lanes()), .orig_channel = u(c.out_c)});
  p.registers[hw::DpuBsCfg::kAddress] = 0x20150;
  p.set(hw::DpuBsAluCfg{});
  p.set(hw::DpuBsMulCfg{});
  p.set(hw::DpuBsReluxCmpValue{});
  p.set(hw::DpuBsOwCfg{.size_e_0 = surfaces - 1, .size_e_1 = surfaces - 1, .size_e_2 = surfaces - 1});
  p.set(hw::DpuBsOwOp{.ow_op = 128 - c.zero_weight});
  p.set(hw::DpuWdmaSize0{.channel_wdma = u(c.out_lanes())});
  p.set(hw::DpuWdmaSize1{.width_wdma = u(c.out_w), .height_wdma = u(c.out_h)});
  p.registers[hw::DpuBnCfg::kAddress] = 0x53;
  p.set(hw::DpuBnAluCfg{});
  p.set(hw::DpuBnMulCfg{});
  p.set(hw::DpuBnReluxCmpValue{});
  p.registers[hw::DpuEwCfg::kAddress] = c.add ? 0x904202C0 : 0x383;
  p.set(hw::DpuEwCvtOffsetValue{.ew_op_cvt_offset = c.add ? 128 - c.zero_second : 0});
  p.set(hw::DpuEwCvtScaleValue{.ew_op_cvt_scale = c.add ? c.second_scale : 1,
                               .ew_op_cvt_shift = u(c.add ? c.second_shift : 0)});
  p.set(hw::DpuEwReluxCmpValue{});
  for (uint32_t address = hw::DpuLutAccessCfg::kAddress; address <= hw::DpuLutLoSlopeShift::kAddress; address += 4)
    p.registers[address] = 0;
  p.set(hw::DpuOutCvtOffset{.out_cvt_offset = c.zero_out - 128});
  p.set(hw::DpuOutCvtScale{.out_cvt_scale = c.out_scale});
  p.set(hw::DpuOutCvtShift{.out_cvt_shift = u(c.out_shift)});
  p.set(hw::DpuSurfaceAdd{.surf_add = surfaces * plane});
}

inline void add_rdma(const Conv& c, Program& p) {
  const auto u = [](int v) { return static_cast<uint32_t>(v); };
  const auto mode = c.depthwise ? hw::ConvMode::depthwise : hw::ConvMode::direct;
  const uint32_t plane = u(c.out_w * c.out_h) * 16;
  p.set(hw::DpuRdmaDataCubeWidth{.width = u(c.out_w)});
  p.set(hw::DpuRdmaDataCubeHeight{.height = u(c.out_h)});
  p.set(hw::DpuRdmaDataCubeChannel{.channel = u(c.out_lanes())});
  p.set(hw::DpuRdmaSrcBaseAddr{.src_base_addr = {bits::Address::kAbsolute, c.add ? kSecond : 0}});
  p.set(hw::DpuRdmaBrdmaCfg{.brdma_data_use = 1});
  p.set(hw::DpuRdmaBsBaseAddr{.bs_base_addr = {{bits::Address::kAbsolute, kBias}}});
  p.set(hw::DpuRdmaNrdmaCfg{});
  p.set(hw::DpuRdmaBnBaseAddr{});
  p.registers[hw::DpuRdmaErdmaCfg::kAddress] = c.add ? 0x40000004 : 1;
  p.set(hw::DpuRdmaEwBaseAddr{.ew_base_addr = {bits::Address::kAbsolute, c.add ? kSecond + plane : 0}});
  p.set(hw::DpuRdmaEwSurfStride{.ew_surf_stride = c.add ? plane : 0});
  p.set(hw::DpuRdmaFeatureModeCfg{
      .conv_mode = mode, .mrdma_disable = !c.add, .comb_use = c.add ? 5U : 0U, .burst_len = hw::Burst::beats_16});
  p.set(hw::DpuRdmaSrcDmaCfg{});
  p.set(hw::DpuRdmaSurfNotch{.surf_notch_addr = c.add ? plane : 0});
  p.set(hw::DpuRdmaEwSurfNotch{.ew_surf_notch = c.add ? plane : 0});
}

inline Program conv_program(const Conv& c) {
  Program p{.blocks = 0x1D};
  add_cna(c, p);
  add_dpu(c, p);
  add_rdma(c, p);
  return p;
}

// Per-channel scales: operands A, B, C of 8 channels at a time (section 7.5).
inline Program per_channel_program(const Conv& c) {
  Program p = conv_program(c);
  p.registers[hw::DpuBsCfg::kAddress] = 0x20140;
  p.set(hw::DpuBsMulCfg{.bs_mul_src = hw::Operand::from_memory, .bs_mul_shift_value = 9});
  p.set(hw::DpuDataFormat{.bs_mul_shift_value_neg = 9});
  p.set(hw::DpuRdmaBrdmaCfg{.brdma_data_use = 7});
  return p;
}

// Sums shifted by the CORE, otherwise unchanged: many ties.
inline Program truncated_program() {
  Program p = conv_program({.in_h = 16,
                            .in_w = 16,
                            .in_c = 16,
                            .out_h = 16,
                            .out_w = 16,
                            .out_c = 32,
                            .kernel_h = 1,
                            .kernel_w = 1,
                            .pad_top = 0,
                            .pad_left = 0,
                            .out_scale = 1,
                            .out_shift = 0});
  p.set(hw::CoreClipTruncate{.clip_truncate = 7});
  p.set(hw::DpuRdmaBrdmaCfg{});
  p.registers[hw::DpuBsCfg::kAddress] = 0x53;
  return p;
}

// Four-channel pixels through the converter, which halves them.
inline Program packed_program() {
  Program p = conv_program({.in_h = 6, .in_w = 8, .in_c = 4, .out_h = 6, .out_w = 8});
  p.set(hw::CnaConvCon1{.argb_in = hw::PixelFormat::pixels_4, .group_line_off = true, .nonalign_dma = true});
  p.set(hw::CnaCvtCon0{.cvt_truncate_0 = 14, .cvt_truncate_1 = 14, .cvt_truncate_2 = 14, .cvt_truncate_3 = 14});
  p.set(hw::CnaCvtCon1{.cvt_offset0 = -60, .cvt_scale0 = 8192});
  p.set(hw::CnaCvtCon2{.cvt_offset1 = -60, .cvt_scale1 = 8192});
  p.set(hw::CnaCvtCon3{.cvt_offset2 = -60, .cvt_scale2 = 8192});
  p.set(hw::CnaCvtCon4{.cvt_offset3 = -60, .cvt_scale3 = 8192});
  p.set(hw::CnaCvtCon5{.per_channel_cvt_en = 0xF});
  p.set(hw::CnaDmaCon1{.line_stride = 8});
  p.set(hw::CnaDmaCon2{.surf_stride = 40});
  p.set(hw::CnaCbufCon1{.data_entries = 48});
  return p;
}

// Two arrays of `width` atoms (section A.2).
inline Program element_wise_program(int width, uint32_t ew_cfg) {
  const auto w = static_cast<uint32_t>(width);
  const uint32_t bytes = w * 16;
  Program p{.blocks = 0x18};
  add_dpu(Conv{.out_h = 1, .out_w = width, .out_c = 16}, p);
  add_rdma(Conv{.out_h = 1, .out_w = width, .out_c = 16}, p);
  p.registers[hw::DpuFeatureModeCfg::kAddress] = 0x1E5;
  p.set(hw::DpuDataCubeChannel{.channel = 16, .orig_channel = 16});
  p.registers[hw::DpuBsCfg::kAddress] = 0x53;
  p.registers[hw::DpuBsOwCfg::kAddress] = 2;
  p.set(hw::DpuBsOwOp{});
  p.set(hw::DpuWdmaSize0{.channel_wdma = 16});
  p.registers[hw::DpuEwCfg::kAddress] = ew_cfg;
  p.set(hw::DpuOutCvtOffset{});
  p.set(hw::DpuOutCvtScale{.out_cvt_scale = 1});
  p.set(hw::DpuOutCvtShift{});
  p.set(hw::DpuSurfaceAdd{.surf_add = bytes});
  p.set(hw::DpuRdmaDataCubeChannel{.channel = 16});
  p.set(hw::DpuRdmaSrcBaseAddr{.src_base_addr = {bits::Address::kAbsolute, kInput}});
  p.set(hw::DpuRdmaBrdmaCfg{.brdma_disable = true});
  p.set(hw::DpuRdmaNrdmaCfg{.nrdma_disable = true});
  p.registers[hw::DpuRdmaErdmaCfg::kAddress] = 0x40000004;
  p.set(hw::DpuRdmaEwBaseAddr{.ew_base_addr = {bits::Address::kAbsolute, kSecond}});
  p.set(hw::DpuRdmaEwSurfStride{.ew_surf_stride = bytes});
  p.registers[hw::DpuRdmaFeatureModeCfg::kAddress] = 0x7801;
  return p;
}

// Two tables with a step of 1, from -512 to 512; `entry` is the function of an input.
template <typename Entry>
Program lookup_program(int width, Entry entry) {
  constexpr int kReach = 512;
  Program p = element_wise_program(width, 0x302);
  p.registers[hw::DpuRdmaErdmaCfg::kAddress] = 1;
  p.set(hw::DpuLutCfg{.lut_lo_le_mux = 2, .lut_oflow_priority = 1, .lut_hybrid_priority = 1});
  p.set(hw::DpuLutLeStart{.lut_le_start = -kReach});
  p.set(hw::DpuLutLoEnd{.lut_lo_end = kReach});
  for (const int table : {0, 1}) {
    const auto access = hw::DpuLutAccessCfg{.lut_table_id = static_cast<uint32_t>(table), .lut_access_type = 1};
    p.before_start.push_back(command_word(hw::Target::dpu, bits::pack(access).value()[0], access.kAddress));
    for (int i = 0; i <= kReach; ++i) {
      const auto value = static_cast<uint16_t>(entry(table == 0 ? i - kReach : i));
      p.before_start.push_back(command_word(hw::Target::dpu, value, hw::DpuLutAccessData::kAddress));
    }
  }
  p.before_start.push_back(command_word(hw::Target::dpu, 0, hw::DpuLutAccessCfg::kAddress));
  p.before_start.push_back(command_word(hw::Target::dpu, 0, hw::DpuLutAccessData::kAddress));
  return p;
}

struct Pool {
  hw::Pooling method = hw::Pooling::max;
  int in_h = 5, in_w = 7, channels = 32, out_h = 2, out_w = 3, kernel = 3, stride = 2, pad = 0;
};

inline Program pool_program(const Pool& c) {
  const auto u = [](int v) { return static_cast<uint32_t>(v); };
  const bool averages = c.method == hw::Pooling::average;
  const uint32_t reciprocal = averages ? 65536 / u(c.kernel) : 0;
  Program p{.blocks = 0x60};
  p.registers[hw::PpuSPointer::kAddress] = hw::kPointerPingPong;
  p.registers[hw::PpuRdmaSPointer::kAddress] = hw::kPointerPingPong;
  p.set(hw::PpuDataCubeInWidth{.cube_in_width = u(c.in_w)});
  p.set(hw::PpuDataCubeInHeight{.cube_in_height = u(c.in_h)});
  p.set(hw::PpuDataCubeInChannel{.cube_in_channel = u(c.channels)});
  p.set(hw::PpuDataCubeOutWidth{.cube_out_width = u(c.out_w)});
  p.set(hw::PpuDataCubeOutHeight{.cube_out_height = u(c.out_h)});
  p.set(hw::PpuDataCubeOutChannel{.cube_out_channel = u(c.channels)});
  p.set(hw::PpuOperationModeCfg{.pooling_method = c.method, .flying_mode = hw::PoolingSource::memory});
  p.set(hw::PpuPoolingKernelCfg{.kernel_width = u(c.kernel),
                                .kernel_height = u(c.kernel),
                                .kernel_stride_width = u(c.stride),
                                .kernel_stride_height = u(c.stride)});
  p.set(hw::PpuRecipKernelWidth{.recip_kernel_width = reciprocal});
  p.set(hw::PpuRecipKernelHeight{.recip_kernel_height = reciprocal});
  p.set(hw::PpuPoolingPaddingCfg{
      .pad_left = u(c.pad), .pad_top = u(c.pad), .pad_right = u(c.pad), .pad_bottom = u(c.pad)});
  p.set(hw::PpuPaddingValue1Cfg{.pad_value_0 = averages ? 0 : 0x7FF80U});
  p.set(hw::PpuPaddingValue2Cfg{});
  p.set(hw::PpuDstBaseAddr{.dst_base_addr = {bits::Address::kAbsolute, kOutput}});
  p.set(hw::PpuDstSurfStride{.dst_surf_stride = u(c.out_h * c.out_w * 16)});
  p.set(hw::PpuDataFormat{.index_add = u(c.out_h * c.out_w * 16)});
  p.set(hw::PpuMiscCtrl{.burst_len = hw::Burst::beats_4});
  p.set(hw::PpuRdmaCubeInWidth{.cube_in_width = u(c.in_w)});
  p.set(hw::PpuRdmaCubeInHeight{.cube_in_height = u(c.in_h)});
  p.set(hw::PpuRdmaCubeInChannel{.cube_in_channel = u(c.channels)});
  p.set(hw::PpuRdmaSrcBaseAddr{.src_base_addr = {bits::Address::kAbsolute, kInput}});
  p.set(hw::PpuRdmaSrcLineStride{.src_line_stride = u(c.in_w * 16)});
  p.set(hw::PpuRdmaSrcSurfStride{.src_surf_stride = u(c.in_h * c.in_w * 16)});
  p.set(hw::PpuRdmaDataFormat{.in_precision = hw::Width::bits_8});
  return p;
}

// Random bytes; made once, since scenes are many.
inline const Bytes& noise() {
  static const Bytes kNoise = [] {
    std::mt19937 random(1);
    Bytes bytes(0x20000);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    return bytes;
  }();
  return kNoise;
}

// Buffers at the addresses above, filled with noise; outputs hold a sentinel.
// Every task of every test begins with this: whole runs of bytes at a time.
inline void fill_with_noise(Bytes& buffer, size_t from) {
  const Bytes& bytes = noise();
  for (size_t at = 0; at < buffer.size();) {
    const size_t begin = (from + at) % bytes.size(), count = std::min(buffer.size() - at, bytes.size() - begin);
    std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(begin), count, buffer.begin() + static_cast<ptrdiff_t>(at));
    at += count;
  }
}

// Noise of a size that leaves results inside int8. Runs of the same seed follow each other.
inline const Bytes& bias_noise(size_t from, size_t size) {
  thread_local size_t last_from = 0;
  thread_local Bytes last;
  if (last.size() == size && last_from == from) return last;
  last.resize(size);
  fill_with_noise(last, from);
  for (size_t at = 0; at + 4 <= size; at += 4) store_le(&last[at], load_le<int32_t>(&last[at]) >> 20);
  last_from = from;
  return last;
}

struct Scene {
  std::map<uint64_t, Bytes> buffers;
  Memory memory;

  explicit Scene(uint32_t seed = 1, size_t size = 0x10000) {
    for (const uint64_t address : {kStream, kWeights, kBias, kInput, kSecond, kOutput}) {
      Bytes& buffer = buffers[address] = Bytes(size, 0xEE);
      const size_t from = (seed * 7919 + address / 0x1000) % 0x10000;
      if (address == kBias) buffer = bias_noise(from, size);
      if (address == kWeights || address == kInput || address == kSecond) fill_with_noise(buffer, from);
      (void)memory.map(address, buffer, fmt::format("buffer {:#x}", address)).ok();
    }
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  Task load(const std::vector<uint64_t>& words, uint64_t offset = 0) {
    for (size_t i = 0; i < words.size(); ++i) store_le(&buffers[kStream].at(offset + i * 8), words[i]);
    return {.regcmd = kStream + offset, .regcmd_count = static_cast<uint32_t>(words.size())};
  }
  const Bytes& output() const { return buffers.at(kOutput); }
};

}  // namespace skillet::sim::rockchip::testing
