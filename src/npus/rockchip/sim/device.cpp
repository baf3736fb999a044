#include "npus/rockchip/sim/device.h"

#include <atomic>
#include <map>
#include <mutex>

#include "base/bytes.h"
#include "npus/rockchip/hw/rockchip.h"
#include "npus/rockchip/sim/fault.h"
#include "npus/rockchip/sim/quirks.h"

namespace skillet::sim::rockchip {
namespace {

constexpr uint64_t kCommandBytes = 8;
constexpr uint32_t kAllBanks = UINT32_MAX;

constexpr uint32_t banks_between(uint32_t first, uint32_t end) {
  constexpr uint32_t kBits = 32;
  uint32_t out = 0;
  for (uint32_t bank = first; bank < std::min(end, kBits); ++bank) out |= 1U << bank;
  return out;
}

// Banks of the shared memory that the job's tasks name, one bit each; all banks if a task names none. Only the CNA uses
// banks (specification of the RK3588, 1.1): tasks of the DPU or PPU alone read memory through their own units, and the
// vendor's have the same bank values for both cores.
uint32_t banks_of(const Job& job, const Memory& memory) {
  uint32_t out = 0;
  for (const Commands& one : job.commands) {
    const auto bytes = memory.at(one.address, one.size_bytes, "commands");
    if (!bytes.ok()) return kAllBanks;
    hw::rk3576::CnaCbufBanks data{};
    hw::rk3576::CnaWeightBanks weights{};
    bool fetches = false;
    for (size_t at = 0; at + kCommandBytes <= bytes->size(); at += kCommandBytes) {
      const std::array words{load_le<uint32_t>(&(*bytes)[at]), load_le<uint32_t>(&(*bytes)[at + 4])};
      const auto command = bits::read<hw::Command>(words);
      if (command.target == hw::Target::enable) fetches = bits::read<hw::BlockEnable>({&command.value, 1}).cna;
      if (command.target != hw::Target::cna) continue;
      if (command.address == data.kAddress) data = bits::read<hw::rk3576::CnaCbufBanks>({&command.value, 1});
      if (command.address == weights.kAddress) weights = bits::read<hw::rk3576::CnaWeightBanks>({&command.value, 1});
    }
    if (!fetches) continue;
    const bool is_named = data.data_banks > 0 && data.data_banks <= data.data_end_bank;
    if (!is_named || weights.weight_end_bank <= data.data_end_bank) return kAllBanks;
    out |= banks_between(data.data_end_bank - data.data_banks, weights.weight_end_bank);
  }
  return out;
}

class NpuDevice final : public Device {
 public:
  NpuDevice(std::unique_ptr<Npu> npu, const hw::ChipRow& chip, const Options& options)
      : npu_(std::move(npu)), chip_(chip), options_(options) {}

  Result<void> run(const Job& job, const Memory& memory) override {
    const Busy busy(shared_, chip_.has(hw::kOneCoreAtATime) ? banks_of(job, memory) : 0, job.core);
    const bool spoiled = busy.meets;
    if (spoiled && !options_.loses_weights_at_once)
      return not_modelled(
          "a job on core {} while another core has one in the same banks, or one of them names none: each may spoil "
          "what the other has on the chip",
          job.core);
    if (counts_wrong() && started_.exchange(true)) return {};
    double cycles = 0;
    for (size_t i = 0; i < job.commands.size(); ++i) {
      const Commands& one = job.commands[i];
      if (one.size_bytes == 0 || one.size_bytes % kCommandBytes != 0 || !one.bytes.empty())
        return error(ErrorCode::malformed, "task {}: the chip fetches register commands from memory", i);
      const Task task{.regcmd = one.address,
                      .regcmd_count = static_cast<uint32_t>(one.size_bytes / kCommandBytes),
                      .first_of_job = i == 0,
                      .loses_weights = spoiled,
                      .next_regcmd = i + 1 < job.commands.size() ? job.commands[i + 1].address : 0,
                      .next_regcmd_count = static_cast<uint32_t>(
                          i + 1 < job.commands.size() ? job.commands[i + 1].size_bytes / kCommandBytes : 0)};
      auto result = npu_->run_task(static_cast<int>(job.core), task, memory);
      if (!result.ok()) return std::move(result).error().with_context(fmt::format("task {}", i));
      if (options_.deaf_to_pooling) result->also_completes = 0;
      if (!result->completes())
        return stall("task {}: {}", i, result->stall.empty() ? "it ends without the DPU" : result->stall);
      SK_TRY(check_time(i, cycles += result->cycles));
    }
    return {};
  }
  uint32_t cores() const override { return static_cast<uint32_t>(npu_->cores()); }
  void reset(uint32_t core) override { npu_->reset(static_cast<int>(core)); }
  bool loses_jobs() const override { return counts_wrong() || options_.wide_output_poisons; }

 private:
  // Whether the kernel writes the number of tasks with fewer bits than the chip has.
  bool counts_wrong() const {
    constexpr int kStockBits = 12;
    return options_.stock_task_con && chip_.task_number_bits > kStockBits;
  }
  Result<void> check_time(size_t task, double cycles) const {
    constexpr double kCyclesPerMs = 200'000;
    if (cycles < options_.max_job_ms * kCyclesPerMs) return {};
    return broken(options_.job_time, "job_time",
                  stall("task {}: the job has taken {:.0f} ms", task, cycles / kCyclesPerMs));
  }

  // The banks of the running jobs, by core.
  struct Shared {
    std::mutex mutex;
    std::map<uint32_t, uint32_t> banks;
  };
  struct Busy {
    Busy(Shared& all, uint32_t banks, uint32_t its_core) : shared(all), core(its_core) {
      const std::lock_guard lock(shared.mutex);
      for (const auto& [other, taken] : shared.banks) meets = meets || (other != core && (taken & banks) != 0);
      shared.banks[core] = banks;
    }
    ~Busy() {
      const std::lock_guard lock(shared.mutex);
      shared.banks.erase(core);
    }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;
    Shared& shared;
    const uint32_t core;
    bool meets = false;  // a job of another core uses one of these banks
  };

  std::unique_ptr<Npu> npu_;
  const hw::ChipRow& chip_;
  Options options_;
  Shared shared_;
  std::atomic<bool> started_ = false;  // a job was started since power-up
};

}  // namespace

Result<std::unique_ptr<Device>> create_device(std::string_view chip, const Options& options) {
  SK_TRY_ASSIGN(std::unique_ptr<Npu> npu, Npu::create(chip, options));
  return std::unique_ptr<Device>(std::make_unique<NpuDevice>(std::move(npu), *hw::find_chip(chip), options));
}

std::vector<Quirk> quirks(std::string_view chip) {
  std::vector<Quirk> out;
  const hw::ChipRow* const row = hw::find_chip(chip);
  if (row == nullptr) return out;
  for (const QuirkRow& one : quirk_rows(*row)) out.push_back(one.quirk);
  return out;
}

Result<std::unique_ptr<Device>> simulator_of(std::string_view chip, std::span<const std::string_view> quirks) {
  const hw::ChipRow* const row = hw::find_chip(chip);
  if (row == nullptr) return create_device(chip);  // returns the error, whatever the environment contains
  SK_TRY_ASSIGN(Options options, options_from_environment());
  for (const std::string_view quirk : quirks) SK_TRY(add_quirk(*row, quirk, options));
  return create_device(chip, options);
}

}  // namespace skillet::sim::rockchip
