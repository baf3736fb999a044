// Times of the operations of a stream: registers as the simulated chip reads them, then cycles by the one cost model.
#include "sim/timing.h"

#include <algorithm>
#include <deque>

#include "npus/ethosu/hw/timing.h"
#include "npus/ethosu/sim/stream.h"

namespace skillet::sim::ethosu {
namespace {

namespace timing = ::skillet::ethosu::timing;
using timing::Kind;
using timing::Memory;

#define ROW(chip, name, value, unit, mark, source) \
  TimingParameter { #chip, "open", name, value, unit, mark, source }
constexpr std::string_view kVela = "a system that Vela estimates for", kImx93 = "as of the i.MX 93";
constexpr TimingParameter kRows[] = {
#define SYSTEM(chip, ghz, port, gbps, read, write, on_chip)                                                        \
  ROW(chip, "clock_ghz", ghz, "GHz", "K", kVela), ROW(chip, "port_bytes", port, "B", "S", "width of a port"),      \
      ROW(chip, "sram_cycles", 32, "cycles", "K", kVela), ROW(chip, "sram_burst", 32, "B", "K", kVela),            \
      ROW(chip, "dram_gbps", gbps, "GB/s", "K", kVela), ROW(chip, "dram_read_cycles", read, "cycles", "K", kVela), \
      ROW(chip, "dram_write_cycles", write, "cycles", "K", kVela), ROW(chip, "dram_burst", 128, "B", "K", kVela),  \
      ROW(chip, "arena_on_chip", on_chip, "0 or 1", "K", kVela),                                                   \
      ROW(chip, "submit_us", 75, "us", "K", "call and interrupt, as of others"),                                   \
      ROW(chip, "cpu_core", 55, "Cortex-A", "K", kImx93), ROW(chip, "cpu_cores", 2, "cores", "K", kImx93),         \
      ROW(chip, "cpu_ghz", 1.7, "GHz", "K", kImx93),                                                               \
      ROW(chip, "error_percent", 50, "%", "K", "nobody has measured a chip"),
#include "npus/ethosu/hw/timing_params.def"
#undef SYSTEM
};
#undef ROW

constexpr uint32_t kArenaRegion = 1, kSramRegion = 2, kOperationsMax = 2;
constexpr uint64_t kTapsMax = 65536;

// Times at which operations and transfers run. Commands go on until the chip's limit of running ones, or a wait. Two
// that use a memory at the same time have half of its bandwidth each.
class Timeline {
 public:
  Timeline(const timing::Rates& rates, uint32_t transfers_max) : rates_(rates), transfers_max_(transfers_max) {}

  void operate(const timing::Cost& cost) {
    wait(operations_, kOperationsMax - 1);
    const double start = std::max(now_, operations_end_);
    double end = start + cost.cycles;
    for (const Memory memory : {timing::kSram, timing::kDram}) {
      const double own = cost.memory_cycles(rates_, memory);
      double shared = 0;
      for (Transfer& one : transfers_) {
        const double both = one.uses[memory] ? std::min(own, std::max(0.0, one.end - start)) : 0;
        shared += both, one.end += cost.cycles < own + both ? both : 0;
      }
      end = std::max(end, start + own + shared);
    }
    operations_.push_back(end);
    operations_end_ = end;
  }
  void transfer(Memory from, Memory to, double bytes) {
    wait_for_transfers(transfers_max_ - 1);
    const double start = std::max(now_, transfers_.empty() ? 0 : transfers_.back().end);
    const double cycles = std::max(rates_[from].read_cycles + bytes / rates_[from].bytes, bytes / rates_[to].bytes);
    Transfer one{.end = start + cycles};
    one.uses[from] = one.uses[to] = true;
    transfers_.push_back(one);
    transfers_end_ = std::max(transfers_end_, one.end);
  }
  void wait_for_operations(uint32_t count) { wait(operations_, count); }
  void wait_for_transfers(uint32_t count) {
    for (; transfers_.size() > count; transfers_.pop_front()) {
      now_ = std::max(now_, transfers_.front().end);
      transfers_end_ = std::max(transfers_end_, transfers_.front().end);
    }
  }

  double operations_end() const { return operations_end_; }
  double end() const {
    double end = std::max({now_, operations_end_, transfers_end_});
    for (const Transfer& one : transfers_) end = std::max(end, one.end);
    return end;
  }

 private:
  struct Transfer {
    double end = 0;
    std::array<bool, timing::kMemories> uses{};
  };
  void wait(std::deque<double>& running, uint32_t count) {
    for (; running.size() > count; running.pop_front()) now_ = std::max(now_, running.front());
  }

  const timing::Rates& rates_;
  uint32_t transfers_max_;
  double now_ = 0, operations_end_ = 0, transfers_end_ = 0;
  std::deque<double> operations_;  // end times
  std::deque<Transfer> transfers_;
};

constexpr uint64_t kTransferMax = uint64_t{1} << 32;  // per transfer

// Times a job, whose commands run in order.
class StreamTimer {
 public:
  StreamTimer(const hw::ChipRow& chip, const timing::Rates& rates, double clock_ghz, bool is_arena_on_chip)
      : chip_(chip),
        rates_(rates),
        cycles_per_us_(clock_ghz * 1e3),
        is_arena_on_chip_(is_arena_on_chip),
        timeline_(rates, chip.transfers) {}

  Result<std::vector<Cost>> run(std::span<const uint32_t> words) {
    for (size_t at = 0; at < words.size();) {
      SK_TRY(check_stop());
      SK_TRY_ASSIGN(const Command command, command_at(words, at, chip_.generation()));
      SK_TRY_IN_CONTEXT(step(*command.row, command.words),
                        fmt::format("word {} of the stream, {}", at, command.row->name));
      at += command.count;
    }
    if (!costs_.empty()) take_time(costs_.back(), timeline_.end());
    return std::move(costs_);
  }

 private:
  Result<void> step(const bits::Descriptor& command, std::array<uint32_t, 2> words) {
    if (!hw::starts(command.address)) {
      registers_.set(command, words);
      return {};
    }
    switch (command.address) {
      case hw::OpStop::kAddress:
      case hw::OpPmuMask::kAddress: return {};
      case hw::OpDmaWait::kAddress:
        timeline_.wait_for_transfers(bits::read<hw::OpDmaWait>(words).outstanding);
        return {};
      case hw::OpKernelWait::kAddress:
        timeline_.wait_for_operations(bits::read<hw::OpKernelWait>(words).outstanding);
        return {};
      case hw::OpDmaStart::kAddress: return transfer();
      default: return operate(command.address, words);
    }
  }

  Memory memory_of(uint32_t region) const {
    return region == kSramRegion || (region == kArenaRegion && is_arena_on_chip_) ? timing::kSram : timing::kDram;
  }
  timing::Side side_of(const FeatureMap& map) const {
    return {.size = {map.height, map.width, map.depth},
            .elem_bytes = map.elem_bytes(),
            .stride_x = map.stride_x,
            .stride_c = map.stride_c,
            .is_bricks = map.format == hw::Format::nhcwb16,
            .memory = memory_of(map.region)};
  }

  Result<void> operate(uint32_t code, std::array<uint32_t, 2> words) {
    const FeatureMap output = output_of(registers_, chip_);
    SK_TRY(check(output));
    timing::Operation op{.output = side_of(output)};
    op.block = {registers_.get<hw::OfmBlkHeightM1>().value, registers_.get<hw::OfmBlkWidthM1>().value,
                registers_.get<hw::OfmBlkDepthM1>().value};
    const auto activation = registers_.get<hw::Activation>();
    op.function = activation.function != 0 ? timing::Function::table
                  : is_clamped(output)     ? timing::Function::clamp
                                           : timing::Function::none;
    op.has_wide_sums = registers_.get<hw::AccFormat>().format == hw::Accumulator::int40;
    std::string what;
    if (code == hw::OpElementwise::kAddress) {
      set_elementwise(bits::read<hw::OpElementwise>(words).mode, output, op);
      what = "element-wise";
    } else {
      SK_TRY(set_window(code, words, output, op));
      what =
          fmt::format("{} {}x{}", code == hw::OpPool::kAddress ? "pooling" : "convolution", op.kernel_h, op.kernel_w);
    }
    add(timing::cost_of(chip_, rates_, op), std::move(what));
    return {};
  }

  // True if the clamp is narrower than the output's type.
  bool is_clamped(const FeatureMap& output) const {
    if (output.precision != hw::Precision::bits_8) return false;
    const auto least = static_cast<int16_t>(registers_.get<hw::ActivationMin>().value);
    const auto most = static_cast<int16_t>(registers_.get<hw::ActivationMax>().value);
    return output.is_signed ? least > INT8_MIN || most < INT8_MAX : least > 0 || most < UINT8_MAX;
  }

  void set_elementwise(hw::ElementwiseMode mode, const FeatureMap& output, timing::Operation& op) const {
    using Mode = hw::ElementwiseMode;
    op.kind = Kind::elementwise;
    const bool has_one = mode == Mode::lrelu || mode == Mode::abs || mode == Mode::clz;
    op.arithmetic = has_one                                  ? timing::Output::one_operand
                    : mode == Mode::mul                      ? timing::Output::product
                    : mode == Mode::add || mode == Mode::sub ? timing::Output::sum
                                                             : timing::Output::other;
    op.input = side_of(input_of(registers_, chip_));
    op.input.size = op.output.size;
    if (has_one) return;
    const auto broadcast = registers_.get<hw::Ifm2Broadcast>();
    op.has_input2 = !broadcast.constant;
    if (!op.has_input2) return;
    op.input2 = side_of(input2_of(registers_, chip_));
    op.input2.size = {broadcast.height ? 1 : output.height, broadcast.width ? 1 : output.width,
                      broadcast.depth ? 1 : output.depth};
  }

  Result<void> set_window(uint32_t code, std::array<uint32_t, 2> words, const FeatureMap& output,
                          timing::Operation& op) const {
    SK_TRY_ASSIGN(const Windows windows, windows_of(registers_, output));
    if (windows.taps() > kTapsMax) return error(ErrorCode::fault, "a kernel of {} taps", windows.taps());
    op.kernel_h = windows.height, op.kernel_w = windows.width;
    op.stride_h = windows.stride_y, op.stride_w = windows.stride_x;
    op.dilation_h = windows.dilation_y, op.dilation_w = windows.dilation_x;
    op.upscale = windows.upscale == hw::Upscale::none ? 1 : 2;
    op.is_nearest = windows.upscale == hw::Upscale::nearest;
    op.input = side_of(input_of(registers_, chip_));
    const uint32_t depth = registers_.get<hw::IfmDepthM1>().value;
    op.input.size = {windows.input_height(), windows.input_width(), depth};
    if (code != hw::OpPool::kAddress) {
      const bool is_part = registers_.get<hw::KernelStride>().part_kernel_first;
      op.kind = code == hw::OpDepthwise::kAddress ? Kind::depthwise : is_part ? Kind::part_kernel : Kind::depth_first;
      set_streams(op);
      return {};
    }
    const hw::PoolMode mode = bits::read<hw::OpPool>(words).mode;
    op.kind = mode == hw::PoolMode::max       ? Kind::max_pool
              : mode == hw::PoolMode::average ? Kind::average_pool
                                              : Kind::reduce_sum;
    return {};
  }

  void set_streams(timing::Operation& op) const {
    op.weight_bytes = registers_.get<hw::WeightLength>().value,
    op.scale_bytes = registers_.get<hw::ScaleLength>().value;
    if (chip_.cores > 1 && registers_.has<hw::Weight1Length>() && registers_.has<hw::Scale1Length>()) {
      op.weight_bytes += registers_.get<hw::Weight1Length>().value;
      op.scale_bytes += registers_.get<hw::Scale1Length>().value;
    }
    op.weight_memory = memory_of(registers_.get<hw::WeightRegion>().value);
    op.scale_memory = memory_of(registers_.get<hw::ScaleRegion>().value);
  }

  // SHRAM counts as fast as on-chip memory.
  Result<void> transfer() {
    const auto source = registers_.get<hw::Dma0SrcRegion>();
    const auto destination = registers_.get<hw::Dma0DstRegion>();
    auto bytes = static_cast<double>(registers_.get<hw::Dma0Len>().value);
    const auto deepest = std::max(source.stride_mode, destination.stride_mode);
    if (deepest != hw::StrideMode::d1) bytes *= registers_.get<hw::Dma0Size0>().value;
    if (deepest == hw::StrideMode::d3) bytes *= registers_.get<hw::Dma0Size1>().value;
    if (bytes > static_cast<double>(kTransferMax)) return error(ErrorCode::fault, "a transfer of {} bytes", bytes);
    const Memory from = source.internal ? timing::kSram : memory_of(source.region);
    const Memory to = destination.internal ? timing::kSram : memory_of(destination.region);
    timeline_.transfer(from, to, bytes);
    moved_.read_bytes[from] += bytes, moved_.written_bytes[to] += bytes;
    return {};
  }

  // Transfers count for the operation that follows them.
  void add(const timing::Cost& cost, std::string what) {
    timeline_.operate(cost);
    const auto bytes = [&](const auto& of, const auto& moved, Memory memory) { return of[memory] + moved[memory]; };
    Cost out{.what = std::move(what),
             .cycles = cost.cycles,
             .read_bytes = bytes(cost.read_bytes, moved_.read_bytes, timing::kDram),
             .written_bytes = bytes(cost.written_bytes, moved_.written_bytes, timing::kDram),
             .on_chip_bytes = bytes(cost.read_bytes, moved_.read_bytes, timing::kSram) +
                              bytes(cost.written_bytes, moved_.written_bytes, timing::kSram)};
    const auto us = [&](double cycles) { return cycles / cycles_per_us_; };
    out.units = {{{"MAC", us(cost.mac_cycles)},
                  {"output", us(cost.ao_cycles)},
                  {"SRAM", us(out.on_chip_bytes / rates_[timing::kSram].bytes)},
                  {"DRAM", us((out.read_bytes + out.written_bytes) / rates_[timing::kDram].bytes)},
                  {}}};
    moved_ = {};
    take_time(out, timeline_.operations_end());
    costs_.push_back(std::move(out));
  }
  // Adds the time until `end` that no operation has counted.
  void take_time(Cost& cost, double end) {
    cost.us += (end - timed_) / cycles_per_us_;
    timed_ = end;
  }

  const hw::ChipRow& chip_;
  const timing::Rates& rates_;
  double cycles_per_us_;
  bool is_arena_on_chip_;
  Registers registers_;
  Timeline timeline_;
  timing::Cost moved_;  // by transfers since the last operation
  double timed_ = 0;    // cycles
  std::vector<Cost> costs_;
};

class EthosUTimer final : public Timer {
 public:
  EthosUTimer(const hw::ChipRow& chip, TimingParameters values) : Timer(std::move(values)), chip_(chip) {
    const double port = parameter("port_bytes"), sram_cycles = parameter("sram_cycles");
    rates_[timing::kSram] = {port, parameter("sram_burst"), sram_cycles, sram_cycles};
    rates_[timing::kDram] = {std::min(parameter("dram_gbps") / parameter("clock_ghz"), port), parameter("dram_burst"),
                             parameter("dram_read_cycles"), parameter("dram_write_cycles")};
  }

  Result<std::vector<Cost>> time_job(const Job& job, const sim::Memory& /*memory*/) override {
    SK_TRY_ASSIGN(const auto stream, words_of(job));
    return StreamTimer(chip_, rates_, parameter("clock_ghz"), parameter("arena_on_chip") != 0).run(stream);
  }
  Result<std::vector<Cost>> time_layers(std::span<const Layer> /*layers*/, Fusion /*fusion*/) const override {
    return skillet::error(ErrorCode::unsupported, "layers without weights are not timed for this chip");
  }

 private:
  const hw::ChipRow& chip_;
  timing::Rates rates_;
};

}  // namespace

std::span<const TimingParameter> timing_rows() { return kRows; }

std::unique_ptr<Timer> make_timer(std::string_view chip, TimingParameters values) {
  const hw::ChipRow* const row = hw::find_chip(chip);
  return row == nullptr ? nullptr : std::make_unique<EthosUTimer>(*row, std::move(values));
}

}  // namespace skillet::sim::ethosu
