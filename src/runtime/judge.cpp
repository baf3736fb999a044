#include "runtime/judge.h"

#include <algorithm>
#include <deque>

#include "base/int_math.h"
#include "base/stop.h"
#include "runtime/loaded_program.h"

namespace skillet::runtime {
namespace {

constexpr uint64_t kPageBytes = 4096;

// A program as it lies in a device's memory, without a device; tensors are not there, because no time depends on them.
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
  std::deque<Bytes> changed_;  // of buffers that are not as in the program
  sim::Memory memory_;
};

Result<std::vector<sim::Cost>> time_jobs(const npu::Program& program, sim::Timer& timer) {
  Image image;
  SK_TRY(image.load(program));
  std::vector<sim::Cost> out;
  for (const npu::Job& job : program.jobs) {
    std::vector<sim::Commands> commands;
    for (const npu::ByteRange& range : job.commands) commands.push_back(image.commands(range, timer.reads_commands()));
    SK_TRY_ASSIGN(auto costs, timer.time_job({.commands = commands}, image.memory()));
    std::move(costs.begin(), costs.end(), std::back_inserter(out));
  }
  return out;
}

Result<std::vector<compile::OperationCost>> price(const npu::Program& program) {
  SK_TRY(check_stop());  // a search asks thousands of times
  SK_TRY_ASSIGN(const auto timer, sim::create_timer(program.chip, sim::Jobs::open));
  SK_TRY_ASSIGN(const std::vector<sim::Cost> costs, time_jobs(program, *timer));
  std::vector<compile::OperationCost> out;
  size_t next = 0;
  for (const npu::OperationInfo& operation : program.operations) {
    compile::OperationCost& sum = out.emplace_back();
    for (uint32_t task = 0; task < operation.tasks && next < costs.size(); ++task) {
      const sim::Cost& cost = costs[next++];
      sum += {.device_us = cost.us,
              .start_us = timer->wall_us(0, 1, 0),
              .dram_bytes = cost.read_bytes + cost.written_bytes,
              .tasks = 1};
    }
  }
  if (next == costs.size()) return out;
  return error(ErrorCode::internal, "{} tasks are timed, the program has {}", costs.size(), next);
}

}  // namespace

Result<compile::Judge> timing_judge(const npu::Chip& chip) {
  SK_TRY(sim::create_timer(chip.name, sim::Jobs::open));
  return compile::Judge(price);
}

compile::CpuSpeed cpu_speed(const sim::Timer& timer) {
  return {.macs_per_us = timer.parameter("cpu_gmacs") * 1e3, .bytes_per_us = timer.parameter("cpu_gbps") * 1e3};
}

// Without a word of the driver about the way, a tensor is copied once on each side. What moves bytes is as fast on one
// core: the memory is the limit, and hosts do such operations on one.
Result<compile::Prices> timing_prices(const npu::Driver& driver, const npu::Chip& chip, int host_threads) {
  SK_TRY_ASSIGN(const auto timer, sim::create_timer(chip.name, sim::Jobs::open));
  compile::Prices out{.judge = price, .cpu = cpu_speed(*timer), .doubt = timer->error()};
  const int cores = std::max(1, static_cast<int>(timer->parameter("cpu_cores")));
  out.cpu_cores = host_threads == 0 ? cores : std::min(host_threads, cores);
  out.cpu.macs_per_us *= static_cast<double>(out.cpu_cores) / cores;
  const npu::CostModel* const costs = driver.costs(chip);
  out.submit_us = timer->parameter("submit_us") + (costs != nullptr ? costs->submit_us : 0);
  out.in_bytes_per_us = costs != nullptr ? costs->host_in_bytes_per_us : out.cpu.bytes_per_us;
  out.out_bytes_per_us = costs != nullptr ? costs->host_out_bytes_per_us : out.cpu.bytes_per_us;
  if (out.cpu.macs_per_us > 0 && out.cpu.bytes_per_us > 0) return out;
  return error(ErrorCode::unsupported, "the CPU beside chip '{}' is not timed", chip.name);
}

}  // namespace skillet::runtime
