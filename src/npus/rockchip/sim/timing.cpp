// Times of the tasks of a job: reads the registers as the simulated chip does, then counts units and bytes.
#include "npus/rockchip/sim/timing.h"

#include "npus/rockchip/sim/conv.h"
#include "npus/rockchip/sim/dpu.h"
#include "npus/rockchip/sim/fault.h"
#include "npus/rockchip/sim/front.h"
#include "npus/rockchip/sim/ppu.h"
#include "npus/rockchip/sim/task.h"

namespace skillet::sim::rockchip {
namespace {

constexpr TimingParameter kRows[] = {
#define TIMING(chip, jobs, name, value, unit, mark, source) {#chip, #jobs, #name, value, unit, #mark, source},
#define TIMING_RANGE(chip, name, low, high) range_of(#chip, #name, low, high),
#define TIMING_STATE(chip, title, name, value) state_of(#chip, title, #name, value),
#include "npus/rockchip/hw/timing_params.def"
#undef TIMING
#undef TIMING_RANGE
#undef TIMING_STATE
};

constexpr int64_t kAtomBytes = 16;

double feature_bytes(const ConvJob& conv) {
  const int64_t pixel = conv.pixel_channels != 0 ? conv.pixel_channels : conv.in_lanes;
  return static_cast<double>(conv.in_width * conv.in_height * pixel);
}

double operand_bytes(const DpuJob& dpu) {
  const auto cube = static_cast<double>(dpu.pixels() * dpu.lanes);
  const double per_channel = dpu.channel_operands == 0 ? 0 : dpu.channel_operands == 1 ? 4.0 : 8.0;
  return (dpu.from_memory ? cube : 0) + (dpu.ew.op != EwOp::none ? cube : 0) +
         per_channel * static_cast<double>(dpu.lanes);
}

Work work_of(const ConvJob& conv, const DpuJob& dpu, const Lanes& lanes) {
  const Window window{.pixels = conv.pixels(),
                      .channels = conv.depthwise ? conv.out_lanes : conv.in_lanes,
                      .kernels = conv.kernels,
                      .rows = conv.kernel_height,
                      .columns = conv.kernel_width,
                      .depthwise = conv.depthwise,
                      .packed = conv.pixel_channels != 0};
  return {.conv_cycles = static_cast<double>(conv_cycles(lanes, window)),
          .read_bytes = feature_bytes(conv) + operand_bytes(dpu) +
                        (conv.weight_reuse ? 0 : static_cast<double>(conv.weight_bytes)),
          .written_bytes = static_cast<double>(dpu.pixels() * dpu.true_lanes),
          .loaded_bytes = feature_bytes(conv)};
}

Work work_of(const PoolJob& pool) {
  const auto pixels = [&](int64_t width, int64_t height) {
    return static_cast<double>(width * height * align_up(pool.lanes, kAtomBytes));
  };
  const double in = pixels(pool.in_width, pool.in_height);
  return {.pooled_bytes = in, .read_bytes = in, .written_bytes = pixels(pool.out_width, pool.out_height)};
}

class RockchipTimer final : public Timer {
 public:
  RockchipTimer(const hw::ChipRow* chip, TimingParameters parameters)
      : Timer(std::move(parameters)), chip_(chip), rates_(rates_of(this->parameters())) {}

  Result<std::vector<Cost>> time_job(const Job& job, const Memory& memory) override {
    if (chip_ == nullptr || !chip_->has_registers())
      return not_modelled("jobs of this chip cannot be read: its registers are not modelled");
    std::vector<Cost> costs;
    for (size_t i = 0; i < job.commands.size(); ++i) {
      auto cost = time_task(job.commands[i], Dma(memory));
      if (!cost.ok()) return std::move(cost).error().with_context(fmt::format("task {}", i));
      costs.push_back(std::move(cost).value());
    }
    return costs;
  }

  bool reads_commands() const override { return true; }

  Result<std::vector<Cost>> time_layers(std::span<const Layer> layers, Fusion fusion) const override {
    return price_layers(parameters(), layers, fusion);
  }

 private:
  Result<Cost> time_task(const Commands& commands, const Dma& dma) {
    SK_TRY_ASSIGN(const uint32_t blocks, read_task(registers_, dma, commands, options_));
    SK_TRY_ASSIGN(Cost cost, price_blocks(bits::read<hw::BlockEnable>({&blocks, 1})));
    finish_task(registers_, blocks);
    return cost;
  }

  Result<Cost> price_blocks(const hw::BlockEnable& enable) {
    if (enable.cna) {
      SK_TRY_ASSIGN(const ConvJob conv, front_of(*chip_).read_conv_job(registers_, *chip_, options_));
      SK_TRY_ASSIGN(const DpuJob dpu, front_of(*chip_).read_dpu_job(registers_, &conv, options_));
      return price(rates_, work_of(conv, dpu, rates_.lanes), conv.depthwise ? "depthwise" : "convolution");
    }
    if (enable.ppu) {
      SK_TRY_ASSIGN(const PoolJob pool, front_of(*chip_).read_pool_job(registers_, options_));
      return price(rates_, work_of(pool), "pooling");
    }
    SK_TRY_ASSIGN(const DpuJob dpu, front_of(*chip_).read_dpu_job(registers_, nullptr, options_));
    return price(rates_,
                 {.table_elements = dpu.lookup.on ? static_cast<double>(dpu.pixels() * dpu.lanes) : 0,
                  .read_bytes = operand_bytes(dpu),
                  .written_bytes = static_cast<double>(dpu.pixels() * dpu.lanes),
                  .second_bytes = dpu.ew.op != EwOp::none ? static_cast<double>(dpu.pixels() * dpu.lanes) : 0},
                 "element-wise");
  }

  const hw::ChipRow* chip_;  // null: only its times are known
  Rates rates_;
  Options options_ = options_without_rules();
  Registers registers_ = chip_ != nullptr && chip_->has_registers()
                             ? Registers(0, hw::registers_of(*chip_), chip_->has(hw::kStreamsPoint))
                             : Registers(0);
};

}  // namespace

Rates rates_of(const TimingParameters& parameters) {
  return rates_by([&](std::string_view name) { return parameters.get(name); });
}

Cost price(const Rates& rates, const Work& work, std::string what) {
  Cost cost{.what = std::move(what),
            .cycles = work.conv_cycles * rates.mac_stretch,
            .read_bytes = work.read_bytes,
            .written_bytes = work.written_bytes};
  const auto us = units_us(rates, work);
  for (size_t i = 0; i < us.size(); ++i) cost.units[i] = {kUnitNames[i], us[i]};
  cost.us = task_us(rates, work);
  return cost;
}

std::span<const TimingParameter> timing_rows() { return kRows; }

std::unique_ptr<Timer> make_timer(std::string_view chip, TimingParameters values) {
  return std::make_unique<RockchipTimer>(hw::find_chip(chip), std::move(values));
}

}  // namespace skillet::sim::rockchip
