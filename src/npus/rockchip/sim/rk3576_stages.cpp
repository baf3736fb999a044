// Stages of the RK3576's DPU that convolutions and the DPU alone share: a second tensor, a factor of the whole tensor,
// tables (specification of the RK3576, sections 9 and 10).
#include "npus/rockchip/sim/rk3576_known.h"

namespace skillet::sim::rockchip::rk3576 {
namespace {

constexpr int32_t kTableEnd = 16384;
constexpr unsigned kTableStepLog2 = 5;

// One register holds a slope twice, another one its shift four times.
template <typename First, typename Second, typename Shifts>
Result<void> read_slope(Registers& r, Lookup::Beyond& beyond) {
  constexpr uint32_t kTwice = 0x10001, kFourTimes = 0x01010101, kShiftBits = 63;
  const uint32_t slope = r.word(First::kAddress) & 0xFFFF, shift = r.word(Shifts::kAddress) & kShiftBits;
  SK_TRY(expect<First>(r, {slope * kTwice}));
  SK_TRY(expect<Second>(r, {slope * kTwice}));
  SK_TRY(expect<Shifts>(r, {shift * kFourTimes}));
  beyond.slope = static_cast<int16_t>(slope), beyond.shift = shift;
  return {};
}
template <typename First, typename Second>
Result<void> read_end(Registers& r, Lookup::Beyond& beyond) {
  const uint32_t value = r.word(First::kAddress) >> 16;
  SK_TRY(expect<First>(r, {value << 16}));
  SK_TRY(expect<Second>(r, {value << 16 | value}));
  beyond.value = static_cast<int16_t>(value);
  return {};
}

}  // namespace

Result<void> read_second(Registers& r, EwOp op, DpuJob& job) {
  const auto scale = r.get<r::DpuEwCvtScale>();
  job.ew = {.op = op,
            .convert = true,
            .add_first = true,
            .offset = r.get<r::DpuEwCvtOffset>().value,
            .scale = scale.scale,
            .shift = scale.shift};
  const int64_t pitch = r.get<r::DpuRdmaEwSurfStride>().ew_surf_stride;
  if (pitch < job.pixels()) return not_modelled("dpu_rdma.ew_surf_stride = {}: less than a surface", pitch);
  job.second = {static_cast<int64_t>(r.get<r::DpuRdmaEwBaseAddr>().ew_base_addr.offset), pitch - job.pixels()};
  return {};
}

Result<void> read_bn_tensor(Registers& r, DpuJob& job) {
  const uint32_t use = r.word(r::DpuBnCfg::kAddress);
  if (use != kBnFactor && use != kBnSlope) return expect_zero<r::DpuRdmaNrdmaCfg>(r);
  // With a slope no addend is read, and values from 0 up are neither multiplied nor shifted.
  const bool is_slope = use == kBnSlope;
  SK_TRY(expect<r::DpuRdmaNrdmaCfg>(r, {is_slope ? 0x18U : 0x1AU}));
  SK_TRY((expect_no_limits<r::DpuBnMin, r::DpuBnMax>(r)));
  job.bn = {.alu = !is_slope, .multiply = true, .prelu = is_slope};
  job.bn_tensor = static_cast<int64_t>(r.get<r::DpuRdmaBnBaseAddr>().bn_base_addr.offset);
  if (job.bn_tensor % kAtom == 0 && job.bn_tensor != 0) return {};
  return not_modelled("dpu_rdma.bn_base_addr = {:#x}: not aligned, or none", job.bn_tensor);
}

// Two tables of 512 steps each side of 0.
Result<void> read_tables(Registers& r, DpuJob& job) {
  SK_TRY((expect_zero<r::DpuLutAccessCfg>(r)));
  if (r.word(r::DpuEwCfg::kAddress) != kEwLookup) {
    SK_TRY((expect_zero<r::DpuLutCfg>(r)));
    return expect_no_tables(r);
  }
  SK_TRY(expect<r::DpuLutCfg>(r, {0x02000006}));
  SK_TRY(expect<r::DpuLutInfo>(r, {0x00050500}));
  constexpr auto kStart = static_cast<uint32_t>(-kTableEnd), kEnd = static_cast<uint32_t>(kTableEnd);
  SK_TRY(expect<r::DpuLutLeStart0>(r, {kStart}));
  SK_TRY(expect<r::DpuLutLeStart1>(r, {kStart}));
  SK_TRY(expect<r::DpuLutLeStart2>(r, {kStart}));
  SK_TRY(expect<r::DpuLutLeStart3>(r, {kStart}));
  SK_TRY(expect<r::DpuLutLoEnd0>(r, {kEnd}));
  SK_TRY(expect<r::DpuLutLoEnd1>(r, {kEnd}));
  SK_TRY(expect<r::DpuLutLoEnd2>(r, {kEnd}));
  SK_TRY(expect<r::DpuLutLoEnd3>(r, {kEnd}));
  job.lookup = {.on = true, .both = 1, .between = true};
  job.lookup.ranges = {Lookup::Range{-kTableEnd, 0, kTableStepLog2}, Lookup::Range{0, kTableEnd, kTableStepLog2}};
  SK_TRY((read_slope<r::DpuLut4150, r::DpuLut4154, r::DpuLut4160>(r, job.lookup.beyond[0])));
  SK_TRY((read_slope<r::DpuLut4170, r::DpuLut4174, r::DpuLut4184>(r, job.lookup.beyond[1])));
  SK_TRY((read_end<r::DpuLut4188, r::DpuLut418C>(r, job.lookup.beyond[0])));
  SK_TRY((read_end<r::DpuLut4190, r::DpuLut4194>(r, job.lookup.beyond[1])));
  return expect_zero<r::DpuLut4120, r::DpuLut4130>(r);
}

void read_output_scale(Registers& r, DpuJob& job) {
  const auto shift = r.get<r::DpuOutCvtShift>();
  job.out_scale = r.get<r::DpuOutCvtScale>().out_cvt_scale;
  job.out_shift = shift.out_cvt_shift;
  job.out_tie = shift.cvt_round == hw::TieAway::half_away ? Tie::away : Tie::even;
  job.out_offset = r.get<r::DpuOutCvtOffset>().value;
}

}  // namespace skillet::sim::rockchip::rk3576
