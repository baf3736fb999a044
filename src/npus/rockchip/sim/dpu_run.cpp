// The DPU's stages and its output (hardware specification 7.1, 7.4 to 7.7, 5.1).
#include <cstring>

#include "base/bytes.h"
#include "npus/rockchip/sim/dpu_job.h"
#include "npus/rockchip/sim/fault.h"

namespace skillet::sim::rockchip {

int64_t convert_operand(const ElementWise& ew, int8_t byte) {
  if (!ew.convert) return byte;
  if (ew.add_first) return round_shift((int64_t{byte} + ew.offset) * ew.scale, ew.shift, ew.tie);
  return round_shift(int64_t{byte} * ew.scale, ew.shift, ew.tie) + ew.offset;
}

namespace {

constexpr int64_t kAtom = 16;

Result<ChannelOperands> read_channel_operands(const DpuJob& job, const Dma& dma) {
  const auto lanes = static_cast<size_t>(job.lanes);
  ChannelOperands out{std::vector<int32_t>(lanes, job.bs.alu_operand), std::vector<int32_t>(lanes, job.correction),
                      std::vector<int32_t>(lanes, job.bs.multiplier)};
  if (job.channel_operands == 0) return out;
  const bool groups = job.channel_operands != 1;
  // Programs that count single channels have operands for these only.
  const size_t known = job.multiplied_lanes != 0 ? static_cast<size_t>(job.multiplied_lanes) : lanes;
  const auto channels = static_cast<size_t>(job.operand_group);
  const auto group_bytes = static_cast<size_t>(job.operand_bytes);
  std::vector<uint8_t> bytes(groups ? (known + channels - 1) / channels * group_bytes : lanes * 4);
  SK_TRY(dma.read(static_cast<uint64_t>(job.channel_address), bytes, "operands per channel"));
  for (size_t lane = 0; lane < (groups ? known : lanes); ++lane) {
    const uint8_t* group = bytes.data() + (groups ? lane / channels * group_bytes : 0);
    const size_t at = groups ? lane % channels : lane;
    if (job.bs.alu_from_memory) out.a[lane] = load_le<int32_t>(group + at * 4);
    if (groups && job.correction_from_memory) out.b[lane] = load_le<int16_t>(group + job.correction_at + at * 2);
    if (groups && job.bs.multiplier_from_memory && job.multiplied_lanes != 0 &&
        load_le<int16_t>(group + job.multiplier_at + at * 2) <= 0)
      return not_modelled("dpu_rdma.bs_base_addr: channel {} is multiplied by 0: its group is never written", lane);
    if (groups && job.bs.multiplier_from_memory) out.c[lane] = load_le<int16_t>(group + job.multiplier_at + at * 2);
  }
  return out;
}

int32_t run_stage(const Stage& s, int32_t value, int32_t addend, int32_t multiplier) {
  int64_t v = value;
  if (s.alu) v = s.subtract ? v - addend : v + addend;
  if (s.clamp_first) v = std::min(v, int64_t{*s.clamp_first});
  if (s.multiply && !(s.prelu && v >= 0)) {
    const int64_t product = s.narrow_products ? saturate32(v * multiplier) : v * multiplier;
    v = round_shift(product, product >= 0 ? s.shift : s.shift_negative, s.tie);
  }
  int32_t out = saturate32(v);
  if (s.relu) out = std::max(out, 0);
  if (s.clamp) out = std::min(out, *s.clamp);
  return out;
}

int32_t run_element_wise(const ElementWise& ew, int32_t value, int8_t byte) {
  const int64_t v = value, operand = convert_operand(ew, byte);
  const auto rank = [&](int64_t byte_value) { return ew.unsigned_order ? byte_value & 0xFF : byte_value; };
  int64_t out = v;
  switch (ew.op) {
    case EwOp::none: return value;
    case EwOp::add: out = v + operand; break;
    case EwOp::minus: out = v - operand; break;
    case EwOp::max: out = rank(v) < rank(operand) ? operand : v; break;
    case EwOp::min: out = rank(operand) < rank(v) ? operand : v; break;
    case EwOp::multiply: out = v * saturate32(operand); break;
  }
  const int64_t most = (int64_t{1} << (ew.bits - 1)) - 1;
  auto result = static_cast<int32_t>(std::clamp(out, -most - 1, most));
  if (ew.relu) result = std::max(result, 0);
  if (ew.clamp) result = std::min(result, *ew.clamp);
  return result;
}

int8_t run_out_converter(const DpuJob& job, const Options& options, int32_t value) {
  const int64_t product = int64_t{value} * job.out_scale;
  if (!options.offset_before_rounding)
    return saturate8(round_shift(product, job.out_shift, job.out_tie) + job.out_offset);
  // A large offset saturates anyway; keep the sum inside 62 bits.
  const int64_t offset = std::clamp(job.out_offset, -1024, 1024) * (int64_t{1} << std::min(job.out_shift, 50U));
  return saturate8(round_shift(product + offset, job.out_shift, job.out_tie));
}

// A cube of int8 in the task's own order: [surface][pixel][16].
Result<std::vector<uint8_t>> read_operand(const DpuJob& job, const OperandCube& even, const OperandCube& odd,
                                          int64_t step, const Dma& dma, Extent& read) {
  const int64_t surface_bytes = job.pixels() * kAtom;
  std::vector<uint8_t> cube(static_cast<size_t>(job.lanes / kAtom * surface_bytes));
  for (int64_t surface = 0; surface < job.lanes / kAtom; ++surface) {
    const OperandCube& from = surface % 2 == 0 ? even : odd;
    const int64_t address = from.address + surface / step * (surface_bytes + from.notch_atoms * kAtom);
    const std::span<uint8_t> to(cube.data() + surface * surface_bytes, static_cast<size_t>(surface_bytes));
    read.add(address, surface_bytes);
    SK_TRY(dma.read(static_cast<uint64_t>(address), to, "element-wise operand"));
  }
  return cube;
}

class Runner {
 public:
  Runner(const DpuJob& job, const ConvJob* conv, const ConvSums* sums, const Tables& tables, const Options& options,
         const Dma& dma, const Extent& read)
      : job_(job), conv_(conv), sums_(sums), tables_(tables), options_(options), dma_(dma), read_(read) {}

  Result<void> run() {
    SK_TRY_ASSIGN(channels_, read_channel_operands(job_, dma_));
    SK_TRY(read_cubes());
    SK_TRY(check_overlap());
    const int64_t written = options_.depthwise_stops_at_true_channels && job_.depthwise ? job_.true_lanes : job_.lanes;
    if (sums_ != nullptr && !options_.reference_only)
      fast_ = run_stages_fast(job_, *conv_, *sums_, channels_, second_, options_);
    std::vector<uint8_t> surface(static_cast<size_t>(job_.pixels() * kAtom));
    for (int64_t lane = 0; lane < written; lane += kAtom) {
      for (int64_t pixel = 0; pixel < job_.pixels(); ++pixel) SK_TRY(atom(lane, pixel, &surface[pixel * kAtom]));
      SK_TRY(write_surface(lane / kAtom, surface));
    }
    return {};
  }

 private:
  Result<void> read_cubes() {
    Extent unused;  // not checked: the main operand of an element-wise task may be its output
    if (job_.from_memory) SK_TRY_INTO(main_, read_operand(job_, job_.main, job_.main, 1, dma_, unused));
    if (job_.ew.op == EwOp::none) return {};
    const OperandCube& even = job_.shared ? job_.main : job_.second;
    SK_TRY_ASSIGN(second_, read_operand(job_, even, job_.second, job_.shared ? 2 : 1, dma_, unused));
    return {};
  }

  int64_t surface_address(int64_t surface) const {
    return job_.address + surface / job_.surfaces_per_group * job_.group_bytes +
           surface % job_.surfaces_per_group * job_.surface_bytes;
  }

  // The chip reads and writes at the same time, in an order that is not known.
  Result<void> check_overlap() const {
    for (int64_t surface = 0; surface < job_.lanes / kAtom; ++surface) {
      Extent written;
      written.add(surface_address(surface), job_.pixels() * kAtom);
      if (written.overlaps(read_))
        return not_modelled("dpu.dst_base_addr: output surface {} at {:#x} overlaps the features", surface,
                            surface_address(surface));
    }
    return {};
  }

  // The CORE's value of one output: corrected, shifted, 32 bits.
  int32_t core_value(int64_t lane, int64_t pixel) const {
    const auto at = static_cast<size_t>(pixel * job_.lanes + lane);
    const int64_t window = sums_->window[job_.depthwise ? at : static_cast<size_t>(pixel)];
    int64_t factor = channels_.b[static_cast<size_t>(lane)];
    if (options_.cpend_plus_one_with_multiplier && job_.channel_operands > 1) ++factor;
    const int64_t value = round_shift(sums_->sum[at] + factor * window, conv_->truncate, conv_->truncate_tie);
    return options_.accumulator_wraps ? static_cast<int32_t>(value) : saturate32(value);
  }

  Result<void> atom(int64_t first, int64_t pixel, uint8_t* out) const {
    if (!fast_) return compute_atom(first, pixel, out);
    std::memcpy(out, fast_->data() + pixel * job_.lanes + first, kAtom);
    return {};
  }

  Result<void> compute_atom(int64_t first, int64_t pixel, uint8_t* out) const {
    const size_t in_cube = static_cast<size_t>(first / kAtom * job_.pixels() * kAtom + pixel * kAtom);
    for (int64_t i = 0; i < kAtom; ++i) {
      const auto lane = static_cast<size_t>(first + i);
      int32_t v = job_.from_memory ? static_cast<int8_t>(main_[in_cube + i]) : core_value(first + i, pixel);
      v = run_stage(job_.bs, v, channels_.a[lane], channels_.c[lane]);
      v = run_stage(job_.bn, v, job_.bn.alu_operand, job_.bn.multiplier);
      if (job_.ew.op != EwOp::none) v = run_element_wise(job_.ew, v, static_cast<int8_t>(second_[in_cube + i]));
      if (job_.lookup.on) {
        SK_TRY_ASSIGN(v, look_up(job_.lookup, tables_, v));
        if (job_.ew.relu) v = std::max(v, 0);
      }
      if (job_.from_memory && options_.element_wise_narrows_to_8_bits) v = saturate8(v);
      out[i] = static_cast<uint8_t>(run_out_converter(job_, options_, v));
    }
    return {};
  }

  Result<void> write_surface(int64_t surface, std::span<const uint8_t> bytes) const {
    const int64_t row = job_.width * kAtom;
    for (int64_t y = 0; y < job_.height; ++y) {
      const int64_t address = surface_address(surface) + y * (job_.width + job_.notch_pixels) * kAtom;
      SK_TRY(dma_.write(static_cast<uint64_t>(address),
                        bytes.subspan(static_cast<size_t>(y * row), static_cast<size_t>(row)), "output"));
    }
    return {};
  }

  const DpuJob& job_;
  const ConvJob* conv_;
  const ConvSums* sums_;
  const Tables& tables_;
  const Options& options_;
  const Dma& dma_;
  const Extent& read_;
  ChannelOperands channels_;
  std::vector<uint8_t> main_, second_;
  std::optional<std::vector<uint8_t>> fast_;
};

// One shift for products above zero, one for those below.
void set_shifts(uint32_t word, Stage& stage) {
  constexpr uint32_t kShiftBits = 63;
  stage.shift = word & kShiftBits;
  stage.shift_negative = word >> 8 & kShiftBits;
}

// Reads a stage's operands for the whole tensor.
Result<void> read_tensor(int64_t address, std::string_view name, const Dma& dma, Stage& stage) {
  constexpr size_t kBytes = 64, kFactorAt = 32, kShiftAt = 48;
  if (address == 0) return {};
  SK_TRY_ASSIGN(const std::vector<uint8_t> tensor,
                dma.read(static_cast<uint64_t>(address), kBytes, "operand of a tensor"));
  stage.alu_operand = load_le<int32_t>(tensor.data());
  stage.multiplier = load_le<int16_t>(tensor.data() + kFactorAt);
  set_shifts(load_le<uint32_t>(tensor.data() + kShiftAt), stage);
  if (stage.multiply && stage.multiplier == 0)
    return not_modelled("{}: the tensor is multiplied by 0: nothing of it is added", name);
  return {};
}

}  // namespace

Result<void> run_dpu(const DpuJob& job, const ConvJob* conv, const ConvSums* sums, const Tables& tables,
                     const Options& options, const Dma& dma, const Extent& read) {
  DpuJob own = job;
  if (job.shift_address != 0) {
    SK_TRY_ASSIGN(const std::vector<uint8_t> word, dma.read(static_cast<uint64_t>(job.shift_address), 4, "shift word"));
    set_shifts(load_le<uint32_t>(word.data()), own.bs);
  }
  SK_TRY(read_tensor(job.bs_tensor, "dpu_rdma.bs_base_addr", dma, own.bs));
  SK_TRY(read_tensor(job.bn_tensor, "dpu_rdma.bn_base_addr", dma, own.bn));
  return Runner(own, conv, sums, tables, options, dma, read).run();
}

}  // namespace skillet::sim::rockchip
