#include "npus/rockchip/sim/npu.h"

#include "npus/rockchip/sim/core.h"

namespace skillet::sim::rockchip {

Npu::Npu() = default;
Npu::~Npu() = default;

Result<std::unique_ptr<Npu>> Npu::create(std::string_view chip, const Options& options) {
  const hw::ChipRow* const row = hw::find_chip(chip);
  std::string names;
  for (const hw::ChipRow& r : hw::chips()) {
    if (r.has_registers()) names += fmt::format("{}{}", names.empty() ? "" : ", ", r.name);
  }
  if (row == nullptr) return error(ErrorCode::invalid_argument, "no Rockchip chip '{}': there are {}", chip, names);
  if (!row->has_registers())
    return error(ErrorCode::unsupported, "chip {} ({}) cannot be simulated: its registers are not modelled; {}", chip,
                 row->title, row->missing);
  auto npu = std::unique_ptr<Npu>(new Npu);
  for (int i = 0; i < row->cores; ++i) npu->cores_.push_back(std::make_unique<Core>(i, *row, options));
  return npu;
}

Result<TaskResult> Npu::run_task(int core, const Task& task, const Memory& memory) {
  if (core < 0 || core >= cores()) return error(ErrorCode::invalid_argument, "core {} of {}", core, cores());
  return cores_[static_cast<size_t>(core)]->run(task, memory).with_context(fmt::format("core {}", core));
}

void Npu::reset(int core) {
  if (core >= 0 && core < cores()) cores_[static_cast<size_t>(core)]->reset();
}

}  // namespace skillet::sim::rockchip
