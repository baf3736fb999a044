#include "sim/rockchip/device.h"

#include "sim/rockchip/fault.h"

namespace skillet::sim::rockchip {
namespace {

constexpr uint64_t kCommandBytes = 8;

class NpuDevice final : public Device {
 public:
  explicit NpuDevice(std::unique_ptr<Npu> npu) : npu_(std::move(npu)) {}

  Result<void> run(const Job& job, const Memory& memory) override {
    for (size_t i = 0; i < job.commands.size(); ++i) {
      const Commands& one = job.commands[i];
      if (one.size_bytes == 0 || one.size_bytes % kCommandBytes != 0 || !one.bytes.empty())
        return error(ErrorCode::malformed, "task {}: the chip fetches register commands from memory", i);
      const Task task{.regcmd = one.address,
                      .regcmd_count = static_cast<uint32_t>(one.size_bytes / kCommandBytes),
                      .first_of_job = i == 0};
      auto result = npu_->run_task(static_cast<int>(job.core), task, memory);
      if (!result.ok()) return std::move(result).error().with_context(fmt::format("task {}", i));
      if (!result->completes())
        return stall("task {}: {}", i, result->stall.empty() ? "it ends without the DPU" : result->stall);
    }
    return {};
  }
  uint32_t cores() const override { return static_cast<uint32_t>(npu_->cores()); }
  void reset(uint32_t core) override { npu_->reset(static_cast<int>(core)); }

 private:
  std::unique_ptr<Npu> npu_;
};

}  // namespace

Result<std::unique_ptr<Device>> create_device(std::string_view chip, const Options& options) {
  SK_TRY_ASSIGN(std::unique_ptr<Npu> npu, Npu::create(chip, options));
  return std::unique_ptr<Device>(std::make_unique<NpuDevice>(std::move(npu)));
}

Result<std::unique_ptr<Device>> create(std::string_view chip) { return create_device(chip); }

}  // namespace skillet::sim::rockchip
