#include "lab/mmio/rocket/core.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "lab/mmio/warn.h"

namespace skillet::mmio::rocket {
namespace {

namespace pc {
enum Register : uint32_t {
#define PC(name, offset) name = offset,
#include "lab/mmio/rocket/registers.def"
#undef PC
};
}  // namespace pc
namespace iommu {
enum Register : uint32_t {
#define IOMMU(name, offset) name = offset,
#include "lab/mmio/rocket/registers.def"
#undef IOMMU
};
}  // namespace iommu

constexpr RegisterName kPcNames[] = {
#define PC(name, offset) {offset, "pc." #name},
#include "lab/mmio/rocket/registers.def"
#undef PC
};
constexpr RegisterName kIommuNames[] = {
#define IOMMU(name, offset) {offset, #name},
#include "lab/mmio/rocket/registers.def"
#undef IOMMU
};

constexpr uint32_t kVersion = 0x46495245;  // value on an RK3588
constexpr uint32_t kDmaReadError = 1 << 12, kInterruptBits = 0x1ffff;
constexpr uint32_t kTaskNumber = 0xfff, kAmountMask = 0xffff, kSlaveMode = 1;

// Bits of the IOMMU's STATUS and commands.
constexpr uint32_t kPagingEnabled = 1, kFaultActive = 2, kStallActive = 4, kIdle = 8, kReplayEmpty = 16,
                   kFaultIsWrite = 32, kStallNotActive = uint32_t{1} << 31;
enum Command : uint32_t {
  kEnablePaging = 0,
  kDisablePaging = 1,
  kEnableStall = 2,
  kDisableStall = 3,
  kZapCache = 4,
  kFaultDone = 5,
  kForceReset = 6,
};
constexpr uint64_t kCommandBytes = 8;
constexpr uint32_t kPageFault = 1, kEntryWritable = 4;

// An entry of the directory or of a page table: bits 35:32 of the address are in 11:8, bits 39:36 in 7:4.
uint64_t address_of(uint32_t entry) {
  return (entry & 0xfffff000) | uint64_t{entry >> 8 & 0xf} << 32 | uint64_t{entry >> 4 & 0xf} << 36;
}

}  // namespace

Core::Core(std::string name, uint32_t index, uint32_t iommu_sets, std::shared_ptr<sim::rockchip::Npu> npu,
           Faults faults, Surroundings around, JobWatch watch)
    : name_(std::move(name)),
      index_(index),
      iommu_sets_(iommu_sets),
      npu_(std::move(npu)),
      around_(std::move(around)),
      faults_(std::move(faults)),
      watch_(std::move(watch)),
      worker_([this](Lock& lock) { run_next(lock); }) {}

Core::~Core() {
  stop();
  worker_.end();
}

std::string Core::register_name(uint64_t offset) const {
  if (offset >= kResetOffset) return fmt::format("resets + {:#x}", offset - kResetOffset);
  if (offset < kIommuOffset) return name_of(kPcNames, offset);
  const uint64_t set = (offset - kIommuOffset) / kIommuStride;
  return fmt::format("iommu{}.{}", set, name_of(kIommuNames, (offset - kIommuOffset) % kIommuStride));
}

std::string Core::summary() const {
  const Lock lock = worker_.lock();
  return fmt::format("{} jobs, {} tasks, {} pages mapped, {} page walks, {} page faults, {} resets", jobs_, tasks_,
                     pages_, walked_, faults_seen_, count_resets_);
}

uint32_t Core::read_iommu(const Set& set, uint32_t offset) const {
  switch (offset) {
    case iommu::dte_addr: return set.directory;
    case iommu::status:
      return set.status | kIdle | kReplayEmpty | ((set.status & kStallActive) == 0 ? kStallNotActive : 0);
    case iommu::page_fault_addr: return set.fault_address;
    case iommu::int_rawstat: return set.raw;
    case iommu::int_mask: return set.mask;
    case iommu::int_status: return set.raw & set.mask;
    case iommu::auto_gating: return set.gating;
    default: return 0;
  }
}

// Takes effect at once: the kernel polls for 1 ms.
void Core::command(Set& set, uint32_t value) {
  switch (value) {
    case kEnablePaging:
      if ((set.status & kPagingEnabled) == 0) is_first_of_job_ = true;
      set.status |= kPagingEnabled;
      break;
    case kDisablePaging: set.status &= ~kPagingEnabled; break;
    case kEnableStall: set.status |= kStallActive; break;
    case kDisableStall: set.status &= ~kStallActive; break;
    case kFaultDone: set.status &= ~(kFaultActive | kFaultIsWrite); break;
    case kForceReset: set = {}; break;
    case kZapCache: break;  // no cache: tables are walked for each task
    default: break;
  }
}

void Core::write_iommu(Set& set, uint32_t offset, uint32_t value) {
  switch (offset) {
    case iommu::dte_addr: set.directory = value; break;
    case iommu::command: command(set, value); break;
    case iommu::int_clear: set.raw &= ~value; break;
    case iommu::int_mask: set.mask = value; break;
    case iommu::auto_gating: set.gating = value; break;
    default: break;
  }
  update_line();
}

uint32_t Core::read(uint64_t offset) {
  const Lock lock = worker_.lock();
  if (is_off_) return 0;
  if (offset >= kResetOffset) return resets_;
  if (offset >= kIommuOffset) {
    const uint64_t set = (offset - kIommuOffset) / kIommuStride;
    return set < iommu_sets_ ? read_iommu(sets_[set], static_cast<uint32_t>((offset - kIommuOffset) % kIommuStride))
                             : 0;
  }
  switch (offset) {
    case pc::version: return kVersion;
    case pc::version_num: return 0;
    case pc::interrupt_raw_status: return raw_;
    case pc::interrupt_status: return raw_ & registers_[pc::interrupt_mask];
    default: return registers_[static_cast<uint32_t>(offset)];
  }
}

void Core::write(uint64_t offset, uint32_t value) {
  const Lock lock = worker_.lock();
  if (is_off_) return;
  if (offset >= kResetOffset) return write_resets(value);
  if (offset < kIommuOffset) return write_core(static_cast<uint32_t>(offset), value);
  const uint64_t set = (offset - kIommuOffset) / kIommuStride;
  if (set < iommu_sets_) write_iommu(sets_[set], static_cast<uint32_t>((offset - kIommuOffset) % kIommuStride), value);
}

void Core::write_core(uint32_t offset, uint32_t value) {
  if (offset == pc::interrupt_clear) {
    raw_ &= ~value;
  } else {
    registers_[offset] = value;
  }
  if (offset == pc::interrupt_mask) is_spurious_ = false;
  if (offset == pc::operation_enable && (value & 1) != 0) start();
  update_line();
}

// A line for each of the two resets, low while asserted: after a write that asserts either, nothing runs.
void Core::write_resets(uint32_t value) {
  const bool was_running = resets_ == kNoReset;
  resets_ = value & kNoReset;
  if (was_running && resets_ != kNoReset) {
    ++count_resets_;
    next_.reset();
    raw_ = 0;
    registers_.clear();
    if (worker_.computes())
      space_.revoke();
    else
      npu_->reset(static_cast<int>(index_));
    update_line();
  }
}

void Core::start() {
  const uint32_t base = registers_[pc::base_address];
  if ((base & kSlaveMode) != 0 || resets_ != kNoReset) return;  // the PC does not fetch
  Task task;
  task.start = {.regcmd = base,
                .regcmd_count = ((registers_[pc::register_amounts] & kAmountMask) + 1) * 2,
                .task_number = registers_[pc::task_con] & kTaskNumber,
                .first_of_job = std::exchange(is_first_of_job_, false)};
  if (task.start.first_of_job) ++jobs_;
  ++tasks_;
  task.fault = faults_.next();
  next_ = task;
  worker_.wake();
}

void Core::update_line() {
  bool is_high = (raw_ & registers_[pc::interrupt_mask]) != 0 || is_spurious_;
  for (const Set& one : sets_) is_high = is_high || (one.raw & one.mask) != 0;
  around_.set_interrupt(is_high);
}

void Core::page_fault(uint64_t address, bool is_write) {
  ++faults_seen_;
  Set& set = sets_[0];
  set.fault_address = static_cast<uint32_t>(address);
  set.status |= kFaultActive | (is_write ? kFaultIsWrite : 0);
  set.raw |= kPageFault;
  update_line();
}

void Core::stop() {
  Lock lock = worker_.lock();
  is_off_ = false;
  next_.reset();
  raw_ = 0;
  is_spurious_ = false;
  registers_.clear();
  sets_ = {};
  if (worker_.computes()) space_.revoke();
  worker_.wait_until_idle(lock);
  watch_.flush();
  npu_->reset(static_cast<int>(index_));
  space_.revoke();
  update_line();
}

namespace {

Page page_of(uint32_t entry) {
  return {.index = 0, .guest_address = address_of(entry), .is_writable = (entry & kEntryWritable) != 0};
}

}  // namespace

void Core::run_next(Lock& lock) {
  if (!next_) return worker_.wait(lock);
  const Task task = *std::exchange(next_, {});
  run(task, lock);
}

void Core::run(const Task& task, Lock& lock) {
  if (task.fault == FaultKind::page_fault) return page_fault(task.start.regcmd, false);
  is_off_ = task.fault == FaultKind::power_loss;
  if (task.fault == FaultKind::hang || is_off_)
    return log::info("{}: task {} ends by an injected fault", name_, tasks_);
  const uint64_t epoch = space_.epoch(), directory = address_of(sets_[0].directory);
  const bool has_pages = (sets_[0].status & kPagingEnabled) != 0;
  sim::Memory memory;
  sim::rockchip::TaskResult result;
  const Result<void> done = worker_.compute(lock, [&]() -> Result<void> {
    const std::vector<Page> pages =
        has_pages ? walk(around_.guest, directory, address_of, page_of) : std::vector<Page>();
    pages_ = pages.size();
    walked_ += pages.size();
    SK_TRY_ASSIGN(memory, space_.map(around_.guest, pages, epoch));
    const sim::Commands commands{.address = task.start.regcmd, .size_bytes = task.start.regcmd_count * kCommandBytes};
    watch_.record({.words = {}, .address = commands.address, .size_bytes = commands.size_bytes}, pages, memory,
                  !task.start.first_of_job);
    const JobWatch::Time begun = std::chrono::steady_clock::now();
    sim::rockchip::Task start = task.start;
    --start.regcmd_count;  // registers count pairs: with an odd number of commands the last one is a filler
    SK_TRY_ASSIGN(result, npu_->run_task(static_cast<int>(index_), start, memory));
    watch_.wait({.commands = {&commands, 1}, .core = index_}, memory, begun, [&] { return epoch != space_.epoch(); });
    return {};
  });
  if (epoch != space_.epoch()) return npu_->reset(static_cast<int>(index_));
  const std::optional<uint64_t> missed = memory.missed();
  if (!done.ok() || !result.stall.empty()) {
    warn(device_warnings(), "{}: task {}: {}", name_, tasks_, done.ok() ? result.stall : done.error().message);
    if (missed) page_fault(*missed, false);
    return;
  }
  raw_ |= result.raw_status & kInterruptBits;
  if (task.fault == FaultKind::bus_error) raw_ |= kDmaReadError;
  if (task.fault == FaultKind::lost_interrupt) return;
  is_spurious_ = task.fault == FaultKind::spurious_interrupt;
  update_line();
}

}  // namespace skillet::mmio::rocket
