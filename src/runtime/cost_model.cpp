#include "runtime/cost_model.h"

#include <algorithm>
#include <deque>

#include "base/int_math.h"
#include "base/stop.h"
#include "runtime/loaded_program.h"

namespace skillet::runtime {
namespace {

constexpr uint64_t kPageBytes = 4096;

// A program as in a device's memory, without a device. Tensors are left out, because times do not depend on them.
class Image {
 public:
  Result<void> load(const npu::Program& program) {
    uint64_t address = kPageBytes;
    for (const npu::Buffer& buffer : program.buffers) {
      addresses_.push_back(address);
      address += align_up(buffer.size_bytes + 1, kPageBytes);
    }
    views_.resize(program.buffers.size());
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      if (program.buffers[i].is_constant()) SK_TRY(fill(program.buffers[i], i));
    }
    return {};
  }

  sim::Commands commands(const npu::ByteRange& range, bool in_memory) const {
    if (in_memory) return {.address = addresses_[range.buffer] + range.offset_bytes, .size_bytes = range.size_bytes};
    return {.bytes = views_[range.buffer].subspan(range.offset_bytes, range.size_bytes)};
  }
  const sim::Memory& memory() const { return memory_; }

 private:
  Result<void> fill(const npu::Buffer& buffer, size_t index) {
    views_[index] = buffer.contents;
    if (!buffer.relocations.empty() || buffer.contents.size() != buffer.size_bytes) {
      Bytes& bytes = changed_.emplace_back();
      bytes.reserve(buffer.size_bytes);
      bytes.assign(buffer.contents.begin(), buffer.contents.end());
      bytes.resize(buffer.size_bytes);
      for (const npu::Relocation& one : buffer.relocations)
        SK_TRY(relocate(bytes, one, addresses_[one.target]).with_context(buffer.name));
      views_[index] = bytes;
    }
    return memory_.map_to_read(addresses_[index], views_[index], buffer.name);
  }

  std::vector<uint64_t> addresses_;
  std::vector<std::span<const uint8_t>> views_;
  std::deque<Bytes> changed_;  // of buffers with relocations applied
  sim::Memory memory_;
};

}  // namespace

Result<std::vector<TimedTask>> time_tasks(const npu::Program& program, sim::Timer& timer) {
  Image image;
  SK_TRY(image.load(program));
  std::vector<TimedTask> out;
  size_t operation = 0;
  uint32_t of_operation = 0;  // number of its tasks so far
  for (size_t job = 0; job < program.jobs.size(); ++job) {
    std::vector<sim::Commands> commands;
    for (const npu::ByteRange& range : program.jobs[job].commands)
      commands.push_back(image.commands(range, timer.reads_commands()));
    SK_TRY_ASSIGN(auto costs, timer.time_job({.commands = commands}, image.memory()));
    for (size_t i = 0; i < costs.size(); ++i, ++of_operation) {
      while (operation < program.operations.size() && of_operation == program.operations[operation].tasks) {
        ++operation;
        of_operation = 0;
      }
      out.push_back({std::move(costs[i]), job, operation, i == 0});
    }
  }
  return out;
}

namespace {

Result<std::vector<compile::OperationCost>> price(const npu::Program& program, Measured measured) {
  SK_TRY(check_stop());  // a search calls this thousands of times
  SK_TRY_ASSIGN(const auto timer, sim::create_timer(program.chip, sim::Jobs::open, measured));
  SK_TRY_ASSIGN(const std::vector<TimedTask> tasks, time_tasks(program, *timer));
  std::vector<compile::OperationCost> out(program.operations.size());
  for (const TimedTask& task : tasks) {
    if (task.operation == out.size())
      return error(ErrorCode::internal, "{} tasks are timed, the program has {}", tasks.size(), &task - tasks.data());
    out[task.operation] += {.device_us = task.cost.us,
                            .start_us = timer->wall_us(0, 1, task.begins_job ? 1 : 0, 0),
                            .dram_bytes = task.cost.read_bytes + task.cost.written_bytes,
                            .tasks = 1};
  }
  return out;
}

}  // namespace

Result<compile::ProgramCosts> timing_costs(const npu::Chip& chip, Measured measured) {
  SK_TRY(sim::create_timer(chip.name, sim::Jobs::open, measured));
  return compile::ProgramCosts([values = std::vector(measured.begin(), measured.end())](const npu::Program& program) {
    return price(program, values);
  });
}

namespace {

int cores_of(const sim::Timer& timer, int host_threads) {
  const int cores = std::max(1, static_cast<int>(timer.parameter("cpu_cores")));
  return host_threads == 0 ? cores : std::min(host_threads, cores);
}
std::optional<compile::CpuSpeed> known_cpu(const sim::Timer& timer, int host_threads) {
  return compile::cpu_speed_of(static_cast<int>(timer.parameter("cpu_core")), timer.parameter("cpu_ghz"),
                               cores_of(timer, host_threads));
}

}  // namespace

compile::CpuSpeed cpu_speed(const sim::Timer& timer) { return known_cpu(timer, 0).value_or(compile::plain_cpu(1, 1)); }

double transfer_us(const sim::Timer& timer, const ir::Graph& part) {
  double bytes = 0;
  for (const auto* list : {&part.inputs, &part.outputs})
    for (const ir::TensorId id : *list) bytes += static_cast<double>(part.tensor(id).bytes());
  return timer.caches_us() + bytes / timer.way_bytes_per_us(cpu_speed(timer).copy_bytes_per_us() / 1e3);
}

// If the timer does not model the copies, a tensor is copied once on each side.
Result<compile::CostModel> timing_cost_model(const npu::Chip& chip, int host_threads, Measured measured) {
  SK_TRY_ASSIGN(const auto timer, sim::create_timer(chip.name, sim::Jobs::open, measured));
  SK_TRY_ASSIGN(compile::ProgramCosts program_costs, timing_costs(chip, measured));
  const auto cpu = known_cpu(*timer, host_threads);
  if (!cpu) return error(ErrorCode::unsupported, "the CPU of chip '{}' has no timing model", chip.name);
  compile::CostModel out{.program_costs = std::move(program_costs), .cpu = *cpu, .margin = timer->error()};
  out.cpu_cores = cores_of(*timer, host_threads);
  out.submit_us = timer->parameter("submit_us") + timer->caches_us();
  out.in_bytes_per_us = out.out_bytes_per_us = timer->way_bytes_per_us(cpu_speed(*timer).copy_bytes_per_us() / 1e3);
  return out;
}

}  // namespace skillet::runtime
