#include "lab/mmio/ethosu/core.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "base/log.h"
#include "lab/mmio/warn.h"

namespace skillet::mmio::ethosu {
namespace {

namespace npu {
enum Register : uint32_t {
#define REGISTER(name, offset) name = offset,
#include "lab/mmio/ethosu/registers.def"
#undef REGISTER
};
}  // namespace npu
constexpr RegisterName kNames[] = {
#define REGISTER(name, offset) {offset, #name},
#include "lab/mmio/ethosu/registers.def"
#undef REGISTER
};

// Bits of STATUS and of CMD.
constexpr uint32_t kRunning = 1, kIrqRaised = 2, kBusError = 4, kResetting = 8, kParseError = 16, kEndReached = 32;
constexpr uint32_t kStart = 1, kClearIrq = 2;
constexpr uint32_t kPrivilege = 3;  // bits of RESET that PROT shows
constexpr uint32_t kCommandStreamMax = uint32_t{16} << 20;

// The simulator's address of a region: regions may overlap in the guest's memory.
constexpr uint64_t address_of(size_t region) { return uint64_t{region + 1} << 36; }

}  // namespace

Core::Core(std::string name, Identity identity, std::unique_ptr<sim::Device> chip, Faults faults, Surroundings around,
           JobWatch watch)
    : name_(std::move(name)),
      identity_(identity),
      chip_(std::move(chip)),
      around_(std::move(around)),
      faults_(std::move(faults)),
      watch_(std::move(watch)),
      worker_([this](Lock& lock) { run_next(lock); }) {}

Core::~Core() {
  stop();
  worker_.end();
}

std::string Core::register_name(uint64_t offset) const {
  if (offset < npu::basep || offset >= npu::basep + kRegions * 8) return name_of(kNames, offset);
  return fmt::format("basep{}{}", (offset - npu::basep) / 8, offset % 8 == 0 ? "" : "_high");
}

std::string Core::summary() const {
  const Lock lock = worker_.lock();
  return fmt::format("{} jobs, {} of them failed, {} resets", jobs_, failed_, count_resets_);
}

uint64_t Core::pair(uint32_t offset) const {
  return registers_[offset / 4] | uint64_t{registers_[offset / 4 + 1]} << 32;
}

uint32_t Core::status() const { return ended_ | (runs_ ? kRunning : 0) | (resets_ ? kResetting : 0); }

uint32_t Core::read(uint64_t offset) {
  const Lock lock = worker_.lock();
  if (is_off_) return 0;
  switch (offset) {
    case npu::id: return identity_.id;
    case npu::config: return identity_.config;
    case npu::status: return status();
    case npu::cmd:
    case npu::reset: return 0;
    case npu::qread:  // like a chip that works through its queue: repeated reads show progress
      if (worker_.computes()) read_offset_ = (read_offset_ + 4) % std::max(registers_[npu::qsize / 4], 4U);
      return read_offset_;
    case npu::prot: return registers_[npu::reset / 4] & kPrivilege;
    default: return offset / 4 < registers_.size() ? registers_[offset / 4] : 0;
  }
}

void Core::write(uint64_t offset, uint32_t value) {
  const Lock lock = worker_.lock();
  if (is_off_) return;
  if (offset == npu::cmd) return write_command(value);
  if (offset / 4 >= registers_.size()) return;
  registers_[offset / 4] = value;
  if (offset != npu::reset) return;
  ++count_resets_;
  next_.reset();
  runs_ = false;
  resets_ = worker_.computes();
  if (!resets_) reset_now();
}

// The value written to RESET stays: PROT shows it.
void Core::reset_now() {
  const uint32_t privilege = registers_[npu::reset / 4];
  registers_.fill(0);
  registers_[npu::reset / 4] = privilege;
  ended_ = read_offset_ = 0;
  resets_ = false;
  chip_->reset(0);
  update_line();
}

void Core::write_command(uint32_t value) {
  if ((value & kClearIrq) != 0) ended_ &= ~kIrqRaised;
  if ((value & kStart) != 0) start();
  update_line();
}

void Core::start() {
  if (runs_ || resets_) return;
  Job job{.queue = pair(npu::qbase_low), .queue_bytes = registers_[npu::qsize / 4], .fault = faults_.next()};
  for (uint32_t i = 0; i < kRegions; ++i) job.bases[i] = pair(npu::basep + 8 * i);
  ++jobs_;
  runs_ = true;
  ended_ = read_offset_ = 0;
  next_ = job;
  worker_.wake();
}

void Core::update_line() { around_.set_interrupt((ended_ & kIrqRaised) != 0); }

void Core::stop() {
  Lock lock = worker_.lock();
  is_off_ = false;
  next_.reset();
  stops_ = true;
  worker_.wait_until_idle(lock);
  stops_ = false;
  watch_.flush();
  runs_ = false;
  registers_.fill(0);
  reset_now();
}

void Core::run_next(Lock& lock) {
  if (!next_) return worker_.wait(lock);
  const Job job = *std::exchange(next_, {});
  run(job, lock);
}

void Core::run(const Job& job, Lock& lock) {
  is_off_ = job.fault == FaultKind::power_loss;
  if (job.fault == FaultKind::hang || is_off_) return log::info("{}: job {} ends by an injected fault", name_, jobs_);
  const bool is_bus_error = job.fault == FaultKind::bus_error || job.fault == FaultKind::page_fault;
  const Result<void> done =
      is_bus_error ? Result<void>() : worker_.compute(lock, [&] { return compute(job); });  // an error writes nothing
  if (resets_) return reset_now();
  const bool has_failed = !done.ok() || is_bus_error;
  if (!done.ok()) warn(device_warnings(), "{}: job {}: {}", name_, jobs_, done.error().message);
  if (has_failed) ++failed_;
  runs_ = false;
  read_offset_ = job.queue_bytes;
  ended_ = !done.ok() ? kParseError : has_failed ? kBusError : kEndReached;
  if (job.fault != FaultKind::lost_interrupt) ended_ |= kIrqRaised;
  update_line();
}

// Records the pages of each region that the commands access: the chip has no other limits of a region.
void Core::record(const std::vector<uint32_t>& words, const sim::Memory& memory) {
  if (identity_.check == nullptr) return;
  const auto needs = identity_.check(words);
  std::vector<Page> pages;
  for (size_t i = 0; needs.ok() && i < kRegions; ++i) {
    const auto mapped = memory.from(address_of(i), "a capture");
    if (!mapped.ok()) continue;
    const uint64_t count = (std::min<uint64_t>(needs->bytes[i], mapped->size()) + kPageBytes - 1) / kPageBytes;
    const auto first = static_cast<uint32_t>(address_of(i) / kPageBytes);
    for (uint32_t k = 0; k < count; ++k) pages.push_back({first + k, 0, needs->writes[i]});
  }
  watch_.record({.words = words}, pages, memory, false);
}

// A region extends to the end of the guest's memory: the chip has no limits for it.
Result<void> Core::compute(const Job& job) {
  const std::span<const uint8_t> queue =
      job.queue_bytes <= kCommandStreamMax ? around_.guest.at(job.queue, job.queue_bytes) : std::span<uint8_t>();
  if (queue.empty() || queue.size() % 4 != 0)
    return error(ErrorCode::fault, "{} bytes of commands at {:#x} are not in memory", job.queue_bytes, job.queue);
  std::vector<uint32_t> words(queue.size() / 4);
  std::memcpy(words.data(), queue.data(), queue.size());
  sim::Memory memory;
  std::array<uint64_t, kRegions> slots{};
  for (size_t i = 0; i < kRegions; ++i) {
    const std::span<uint8_t> bytes = job.bases[i] == 0 ? std::span<uint8_t>() : around_.guest.from(job.bases[i]);
    if (bytes.empty()) continue;
    slots[i] = address_of(i);
    SK_TRY(memory.map(slots[i], bytes, fmt::format("region {}", i)));
  }
  record(words, memory);
  const sim::Commands commands{.bytes = {reinterpret_cast<const uint8_t*>(words.data()), words.size() * 4}};
  const sim::Job all{.commands = {&commands, 1}, .slots = slots};
  const JobWatch::Time begun = std::chrono::steady_clock::now();
  SK_TRY(chip_->run(all, memory));
  watch_.wait(all, memory, begun, [&] { return resets_ || stops_; });
  return {};
}

}  // namespace skillet::mmio::ethosu
