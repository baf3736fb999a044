#include "npus/rockchip/sim/device.h"

#include <atomic>

#include "npus/rockchip/hw/rockchip.h"
#include "npus/rockchip/sim/fault.h"
#include "npus/rockchip/sim/quirks.h"

namespace skillet::sim::rockchip {
namespace {

constexpr uint64_t kCommandBytes = 8;

class NpuDevice final : public Device {
 public:
  NpuDevice(std::unique_ptr<Npu> npu, const hw::ChipRow& chip, const Options& options)
      : npu_(std::move(npu)), chip_(chip), options_(options) {}

  Result<void> run(const Job& job, const Memory& memory) override {
    const Busy busy(running_);
    const bool spoiled = busy.jobs > 1 && chip_.has(hw::kOneCoreAtATime);
    if (spoiled && !options_.loses_weights_at_once)
      return not_modelled("a job on core {} while another core has one: each spoils what the other has on the chip",
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
  // Tasks of a job: the kernel gives the chip a number of fewer bits than it has.
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

  // Counts the jobs of all cores.
  struct Busy {
    explicit Busy(std::atomic<int>& all) : count(all), jobs(++all) {}
    ~Busy() { --count; }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;
    std::atomic<int>& count;
    const int jobs;
  };

  std::unique_ptr<Npu> npu_;
  const hw::ChipRow& chip_;
  Options options_;
  std::atomic<int> running_ = 0;
  std::atomic<bool> started_ = false;  // a job, since the chip has power
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
  if (row == nullptr) return create_device(chip);  // says so, whatever the environment does
  SK_TRY_ASSIGN(Options options, options_from_environment());
  for (const std::string_view quirk : quirks) SK_TRY(add_quirk(*row, quirk, options));
  return create_device(chip, options);
}

}  // namespace skillet::sim::rockchip
