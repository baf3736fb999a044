// Times of the tasks of a job: the registers as the simulated chip reads them, then units and bytes.
#include "sim/rockchip/timing.h"

#include "base/bytes.h"
#include "sim/rockchip/conv.h"
#include "sim/rockchip/dpu.h"
#include "sim/rockchip/fault.h"
#include "sim/rockchip/ppu.h"

namespace skillet::sim::rockchip {
namespace {

constexpr TimingParameter kRows[] = {
#define TIMING(chip, jobs, name, value, unit, mark, source) {#chip, #jobs, #name, value, unit, #mark, source},
#include "sim/rockchip/timing_params.def"
#undef TIMING
};

constexpr int64_t kAtomBytes = 16;
constexpr std::array kBlocksOf = {std::pair{uint32_t{1}, Block::cna},  std::pair{uint32_t{4}, Block::core},
                                  std::pair{uint32_t{8}, Block::dpu},  std::pair{uint32_t{16}, Block::dpu_rdma},
                                  std::pair{uint32_t{32}, Block::ppu}, std::pair{uint32_t{64}, Block::ppu_rdma}};

// The registers that one task's commands leave, and which blocks they start.
class Task {
 public:
  Task(Registers& registers, const Dma& dma) : registers_(registers), dma_(dma) {}

  Result<uint32_t> read(uint64_t address, uint64_t commands) {
    std::vector<uint8_t> bytes(commands * hw::kCommandBytes);
    SK_TRY(dma_.read(address, bytes, "commands"));
    for (uint64_t i = 0; i < commands; ++i) {
      const std::array words{load_le<uint32_t>(&bytes[i * 8]), load_le<uint32_t>(&bytes[i * 8 + 4])};
      const auto command = bits::read<hw::Command>(words);
      if (command.target == hw::Target::enable) return command.value;
      SK_TRY(write(command).with_context(fmt::format("command {}", i)));
    }
    return stall("the stream starts no block");
  }

 private:
  Result<void> write(const hw::Command& command) {
    switch (command.target) {
      case hw::Target::none:
      case hw::Target::barrier:
      case hw::Target::pc: return {};
      case hw::Target::cna:
      case hw::Target::core:
      case hw::Target::dpu:
      case hw::Target::dpu_rdma:
      case hw::Target::ppu:
      case hw::Target::ppu_rdma:
        return registers_.write(static_cast<Block>(command.address / hw::kBlockBytes), command.address, command.value);
      default: return not_modelled("target 0x{:04x}: there is none", static_cast<uint32_t>(command.target));
    }
  }
  Registers& registers_;
  const Dma& dma_;
};

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
          .written_bytes = static_cast<double>(dpu.pixels() * dpu.true_lanes)};
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
  RockchipTimer(const hw::ChipRow* chip, TimingParameters parameters) : Timer(std::move(parameters)), chip_(chip) {}

  Result<std::vector<Cost>> time_job(const Job& job, const Memory& memory) override {
    if (chip_ == nullptr || !chip_->has(hw::kRegisters3588))
      return not_modelled("jobs of this chip cannot be read: its registers are not modelled");
    std::vector<Cost> costs;
    for (size_t i = 0; i < job.commands.size(); ++i) {
      auto cost = time_task(job.commands[i], Dma(memory));
      if (!cost.ok()) return std::move(cost).error().with_context(fmt::format("task {}", i));
      costs.push_back(std::move(cost).value());
    }
    return costs;
  }

  Result<std::vector<Cost>> time_layers(std::span<const Layer> layers, Fusion fusion) const override {
    return price_layers(parameters(), layers, fusion);
  }

 private:
  Result<Cost> time_task(const Commands& commands, const Dma& dma) {
    const uint64_t count = commands.size_bytes / hw::kCommandBytes;
    if (count == 0 || count > options_.max_elements_per_task) return not_modelled("{} commands", count);
    SK_TRY_ASSIGN(const uint32_t blocks, Task(registers_, dma).read(commands.address, count));
    SK_TRY_ASSIGN(Cost cost, price_blocks(bits::read<hw::BlockEnable>({&blocks, 1})));
    for (const auto& [bit, block] : kBlocksOf) {
      if (blocks & bit) registers_.finish(block);
    }
    return cost;
  }

  Result<Cost> price_blocks(const hw::BlockEnable& enable) {
    if (enable.cna) {
      SK_TRY_ASSIGN(const ConvJob conv, read_conv_job(registers_, *chip_, options_));
      SK_TRY_ASSIGN(const DpuJob dpu, read_dpu_job(registers_, &conv, options_));
      return price(parameters(), work_of(conv, dpu, lanes_of(parameters())),
                   conv.depthwise ? "depthwise" : "convolution");
    }
    if (enable.ppu) {
      SK_TRY_ASSIGN(const PoolJob pool, read_pool_job(registers_, options_));
      return price(parameters(), work_of(pool), "pooling");
    }
    SK_TRY_ASSIGN(const DpuJob dpu, read_dpu_job(registers_, nullptr, options_));
    return price(parameters(),
                 {.read_bytes = operand_bytes(dpu), .written_bytes = static_cast<double>(dpu.pixels() * dpu.lanes)},
                 "element-wise");
  }

  const hw::ChipRow* chip_;  // null: known from its times only
  Options options_;
  Registers registers_{0};
};

}  // namespace

Lanes lanes_of(const TimingParameters& parameters) {
  const auto number = [&](std::string_view name) { return static_cast<int64_t>(parameters.get(name)); };
  return {number("mac_channels"), number("mac_kernels"), number("depthwise_lanes"), number("output_cycles"),
          number("image_columns")};
}

Cost price(const TimingParameters& p, const Work& work, std::string what) {
  Cost cost{.what = std::move(what), .read_bytes = work.read_bytes, .written_bytes = work.written_bytes};
  cost.cycles = work.conv_cycles * p.get("mac_stretch");
  const double cycles_per_us = p.get("clock_ghz") * 1e3;
  const UnitTime busy[] = {{"MAC", cost.cycles / cycles_per_us},
                           {"DRAM", (work.read_bytes + work.written_bytes) / (p.get("dram_gbps") * 1e3)},
                           {"table", work.table_elements / p.get("table_rate") / cycles_per_us},
                           {"pool", work.pooled_bytes / p.get("pool_rate") / cycles_per_us},
                           {"transpose", work.transposed_bytes / (p.get("transpose_gbps") * 1e3)}};
  cost.set(busy, p.get("overlap"), p.get("least_us"));
  return cost;
}

std::span<const TimingParameter> timing_rows() { return kRows; }

std::unique_ptr<Timer> make_timer(std::string_view chip, TimingParameters values) {
  return std::make_unique<RockchipTimer>(hw::find_chip(chip), std::move(values));
}

}  // namespace skillet::sim::rockchip
