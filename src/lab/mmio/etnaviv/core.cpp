#include "lab/mmio/etnaviv/core.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "lab/mmio/warn.h"

namespace skillet::mmio::etnaviv {
namespace {

enum Register : uint32_t {
#define REGISTER(name, offset) name = offset,
#include "lab/mmio/etnaviv/registers.def"
#undef REGISTER
};
constexpr RegisterName kNames[] = {
#define REGISTER(name, offset) {offset, #name},
#include "lab/mmio/etnaviv/registers.def"
#undef REGISTER
};
// Registers of the feature words: FEATURE, MINOR_FEATURE_0 and so on.
constexpr uint32_t kFeatureRegisters[] = {hi_chip_feature,         hi_chip_minor_feature_0, hi_chip_minor_feature_1,
                                          hi_chip_minor_feature_2, hi_chip_minor_feature_3, hi_chip_minor_feature_4,
                                          hi_chip_minor_feature_5};

constexpr uint32_t kIdle3d = 1 << 16, kIdle2d = 1 << 17, kIdleVg = 1 << 18, kSoftReset = 1 << 12;
constexpr uint32_t kFrontEndIdle = 1, kAllIdle = 0x7fffffff;
constexpr uint32_t kMmuException = uint32_t{1} << 30, kBusError = uint32_t{1} << 31;
constexpr uint32_t kStart = 1 << 16, kAhbReset = 1, kMmuEnable = 1;
constexpr uint32_t kPageNotPresent = 2, kWriteViolation = 3;

// Packets of a stream, and states that only the kernel writes.
enum Opcode : uint32_t { kLoadState = 1, kEnd = 2, kNop = 3, kWait = 7, kLink = 8, kStall = 9 };
constexpr uint32_t kEvent = 0x3804, kSemaphore = 0x3808, kPipeSelect = 0x3800, kTileFlush = 0x1650;
constexpr uint32_t kMmuFirst = 0x180, kMmuLast = 0x1fc;

constexpr uint32_t kPresent = 1, kWritable = 4;        // in a page table's entry; a directory's entry has kPresent
constexpr auto kPoll = std::chrono::microseconds(20);  // for a front end in its loop of WAIT and LINK

uint32_t opcode(uint32_t head) { return head >> 27; }
uint32_t packet_words(uint32_t head) { return opcode(head) == kLoadState ? ((head >> 16 & 0x3ff) + 2) / 2 * 2 : 2; }

bool is_of_kernel(uint32_t state) {
  return state == kEvent || state == kSemaphore || state == kPipeSelect || state == kTileFlush ||
         (state >= kMmuFirst && state <= kMmuLast);
}

// The kernel's own parts of the ring contain states or packets that no job has.
bool is_kernel_part(const std::vector<uint32_t>& words) {
  for (size_t at = 0; at < words.size(); at += packet_words(words[at])) {
    const bool is_last = at + 2 >= words.size();
    if (opcode(words[at]) == kWait || (opcode(words[at]) == kLink && !is_last)) return true;
    if (opcode(words[at]) != kLoadState) continue;
    const uint32_t first = (words[at] & 0xffff) * 4, count = words[at] >> 16 & 0x3ff;
    for (uint32_t i = 0; i < count; ++i) {
      if (is_of_kernel(first + i * 4)) return true;
    }
  }
  return false;
}

constexpr uint32_t kFirstPageOfPrograms = (uint32_t{4} << 20) / kPageBytes;  // pages below hold the kernel's commands

}  // namespace

Core::Core(std::string name, const Identity& identity, std::unique_ptr<sim::Device> simulator, Faults faults,
           Surroundings around, JobWatch watch)
    : name_(std::move(name)),
      identity_(identity),
      simulator_(std::move(simulator)),
      around_(std::move(around)),
      faults_(std::move(faults)),
      watch_(std::move(watch)),
      front_end_([this](Lock& lock) { run_front_end(lock); }) {}

Core::~Core() {
  stop();
  front_end_.end();
}

std::string Core::register_name(uint64_t offset) const { return name_of(kNames, offset); }

std::string Core::summary() const {
  const Lock lock = front_end_.lock();
  return fmt::format("{} jobs, {} events, {} pages mapped, {} page walks, {} MMU exceptions, {} resets", jobs_, events_,
                     pages_, walked_, exceptions_, resets_);
}

uint32_t Core::read(uint64_t offset) {
  const Lock lock = front_end_.lock();
  if (is_off_) return 0;
  const auto feature = std::ranges::find(kFeatureRegisters, offset);
  if (feature != std::end(kFeatureRegisters))
    return identity_.features[static_cast<size_t>(feature - std::begin(kFeatureRegisters))];
  switch (offset) {
    case hi_chip_identity: return 0;  // not an old core: the ids are in separate registers
    case hi_chip_model: return identity_.ids[0];
    case hi_chip_rev: return identity_.ids[1];
    case hi_chip_product_id: return identity_.ids[2];
    case hi_chip_customer_id: return identity_.ids[3];
    case hi_chip_eco_id: return identity_.ids[4];
    case hi_clock_control: return registers_[hi_clock_control] | kIdle3d | kIdle2d | kIdleVg;
    case hi_idle_state:
      return state_ == State::stopped && !front_end_.computes() ? kAllIdle : kAllIdle & ~kFrontEndIdle;
    case hi_intr_acknowledge: {
      const uint32_t pending = std::exchange(pending_, 0);
      update_line();
      return pending;
    }
    case mc_profile_fe_read: return front_end_.computes() && state_ != State::hung ? ++progress_ : progress_;
    case fe_dma_address: return at_;
    default: return registers_[static_cast<uint32_t>(offset)];
  }
}

void Core::write(uint64_t offset, uint32_t value) {
  const Lock lock = front_end_.lock();
  if (is_off_) return;
  registers_[static_cast<uint32_t>(offset)] = value;
  switch (offset) {
    case hi_clock_control:
      if ((value & kSoftReset) != 0) reset(false);
      break;
    case mmuv2_ahb_control:
      if ((value & kAhbReset) != 0) reset(true);
      registers_[mmuv2_ahb_control] &= ~kAhbReset;
      break;
    case hi_intr_enable: update_line(); break;
    case mmuv2_control:
    case mmuv2_sec_control: mmu_is_on_ = (value & kMmuEnable) != 0; break;
    case fe_command_control:
      if (!is_secure_) start(value);
      break;
    case mmuv2_sec_command_control:
      if (is_secure_) start(value);
      break;
    default: break;
  }
}

void Core::start(uint32_t prefetch) {
  if ((prefetch & kStart) == 0) return;
  at_ = registers_[fe_command_address] & ~uint32_t{7};  // after a sync point the kernel adds 2
  state_ = State::running;
  front_end_.wake();
}

// Results of a job that is being computed are discarded. A kernel that knows that the core has the secure states resets
// it by them, and uses them for everything else.
void Core::reset(bool is_secure) {
  is_secure_ = is_secure;
  ++resets_;
  state_ = State::stopped;
  mmu_is_on_ = false;
  context_ = 0;
  registers_[mmuv2_sec_control] = registers_[mmuv2_control] = registers_[mmuv2_sec_status] = 0;
  registers_[mmuv2_status] = 0;
  pending_ = 0;
  if (front_end_.computes())
    space_.revoke();
  else
    simulator_->reset(0);
  update_line();
  front_end_.wake();
}

void Core::stop() {
  Lock lock = front_end_.lock();
  is_off_ = false;
  state_ = State::stopped;
  pending_ = 0;
  mmu_is_on_ = false;
  if (front_end_.computes()) space_.revoke();
  front_end_.wake();
  front_end_.wait_until_idle(lock);
  watch_.flush();
  simulator_->reset(0);
  space_.revoke();
  update_line();
}

void Core::update_line() { around_.set_interrupt((pending_ & registers_[hi_intr_enable]) != 0); }

void Core::raise(uint32_t bits) {
  pending_ |= bits;
  update_line();
}

void Core::mmu_exception(uint32_t address, uint32_t status) {
  registers_[is_secure_ ? mmuv2_sec_status : mmuv2_status] = status;
  registers_[is_secure_ ? mmuv2_sec_exception_address : mmuv2_exception_address] = address;
  ++exceptions_;
  state_ = State::hung;
  raise(kMmuException);
}

// With the secure states: a page table array has a 64-bit entry for each context.
std::optional<uint64_t> Core::master_table() const {
  if (!is_secure_) return configuration_;
  const auto value = [&](uint32_t offset) {
    const auto found = registers_.find(offset);
    return found == registers_.end() ? 0 : found->second;
  };
  const uint64_t array = value(mmuv2_pta_address_low) | uint64_t{value(mmuv2_pta_address_high)} << 32;
  const std::optional<uint32_t> low = around_.guest.word(array + uint64_t{context_} * 8);
  const std::optional<uint32_t> high = around_.guest.word(array + uint64_t{context_} * 8 + 4);
  if (!low || !high) return std::nullopt;
  return (*low & ~uint32_t{0xfff}) | uint64_t{*high} << 32;
}

namespace {

uint64_t table_of(uint32_t entry) { return entry & ~uint32_t{0xfff}; }

// The page of a page table entry: bits 39:32 of its address are in bits 11:4.
Page page_of(uint32_t entry) {
  return {.index = 0,
          .guest_address = (entry & 0xfffff000) | uint64_t{entry >> 4 & 0xff} << 32,
          .is_writable = (entry & kWritable) != 0};
}

}  // namespace

std::optional<uint64_t> Core::translate(uint32_t address, bool is_told) {
  if (!mmu_is_on_) return address;
  const GuestMemory& guest = around_.guest;
  const std::optional<uint64_t> master = master_table();
  const std::optional<uint32_t> directory = master ? guest.word(*master + uint64_t{address >> 22} * 4) : std::nullopt;
  if (directory && (*directory & kPresent) != 0) {
    const std::optional<uint32_t> entry = guest.word(table_of(*directory) + uint64_t{address >> 12 & 0x3ff} * 4);
    if (entry && (*entry & kPresent) != 0) return page_of(*entry).guest_address | (address & 0xfff);
  }
  if (is_told) mmu_exception(address, directory && (*directory & kPresent) != 0 ? kPageNotPresent : 1);
  return std::nullopt;
}

// Limits packets without a WAIT, which no kernel writes, so that they do not use a whole processor.
void Core::run_front_end(Lock& lock) {
  constexpr uint32_t kMostSteps = 4096;
  if (state_ != State::running) return front_end_.wait(lock);
  step(lock);
  if (++steps_ < kMostSteps) return;
  steps_ = 0;
  front_end_.wait_for(lock, kPoll, [&] { return state_ != State::running; });
}

bool Core::fetch(uint32_t address, uint32_t& word) {
  const std::optional<uint64_t> physical = translate(address, true);
  if (!physical) return false;
  const std::optional<uint32_t> value = around_.guest.word(*physical);
  if (!value) {
    warn(device_warnings(), "{}: the front end reads at {:#x}, which is not in memory", name_, *physical);
    state_ = State::hung;
    raise(kBusError);
    return false;
  }
  word = *value;
  return true;
}

// Reads both words of a packet consistently: the kernel changes the WAIT of the loop while the front end runs.
bool Core::fetch_packet(uint32_t address, uint32_t& head, uint32_t& next) {
  uint32_t again = 0;
  do {
    if (!fetch(address, head) || !fetch(address + 4, next) || !fetch(address, again)) return false;
  } while (again != head);
  return true;
}

void Core::step(Lock& lock) {
  uint32_t head = 0, next = 0;
  if (!fetch_packet(at_, head, next)) return;
  switch (opcode(head)) {
    case kLoadState: {
      const uint32_t count = head >> 16 & 0x3ff;
      for (uint32_t i = 0; i < count; ++i) {
        uint32_t value = 0;
        if (!fetch(at_ + 4 + i * 4, value)) return;
        load_state(((head & 0xffff) + i) * 4, value);
      }
      at_ += packet_words(head) * 4;
      return;
    }
    case kEnd:
      state_ = State::stopped;
      at_ += 8;
      return;
    case kWait: {
      steps_ = 0;
      at_ += 8;
      front_end_.wait_for(lock, kPoll, [&] { return state_ != State::running; });
      return;
    }
    case kLink: return link(head & 0xffff, next, lock);
    case 0:
    case kNop:
    case kStall: at_ += 8; return;
    default:
      warn(device_warnings(), "{}: the front end stops at packet {:#010x} at {:#x}", name_, head, at_);
      state_ = State::hung;
  }
}

// Linked words without the kernel's states are a job of user space, with a LINK at its end.
void Core::link(uint32_t words64, uint32_t target, Lock& lock) {
  std::vector<uint32_t> words(size_t{words64} * 2);
  for (size_t i = 0; i < words.size(); ++i) {
    if (!fetch(target + static_cast<uint32_t>(i) * 4, words[i])) return;
  }
  const bool is_job = words.size() > 2 && opcode(words[words.size() - 2]) == kLink && !is_kernel_part(words);
  at_ = target;
  if (!is_job) return;
  words.resize(words.size() - 2);
  run_job(std::move(words), target + (words64 - 1) * 8, lock);
}

void Core::load_state(uint32_t state, uint32_t value) {
  if (state == kEvent) {
    ++events_;
    if (!std::exchange(loses_interrupt_, false)) raise(uint32_t{1} << (value & 0x1f));
  }
  if (state == mmuv2_pta_config) context_ = value & 0xffff;
  if (state == mmuv2_configuration && (value >> 8 & 1) == 0) configuration_ = value & ~uint32_t{0x3ff};
}

void Core::run_job(std::vector<uint32_t> stream, uint32_t return_at, Lock& lock) {
  ++jobs_;
  const FaultKind fault = faults_.next();
  is_off_ = fault == FaultKind::power_loss;
  if (fault == FaultKind::hang || is_off_) state_ = State::hung;
  if (fault == FaultKind::page_fault) mmu_exception(at_, kPageNotPresent);
  if (fault == FaultKind::bus_error) {
    state_ = State::hung;
    raise(kBusError);
  }
  if (state_ != State::running) return log::info("{}: job {} ends by an injected fault", name_, jobs_);
  const uint64_t epoch = space_.epoch();
  const std::optional<uint64_t> master = mmu_is_on_ ? master_table() : std::nullopt;
  sim::Memory memory;
  const Result<void> done = front_end_.compute(lock, [&]() -> Result<void> {
    if (!master) return error(ErrorCode::fault, "there is no page table");
    const std::vector<Page> pages = walk(around_.guest, *master, table_of, page_of);
    pages_ = pages.size();
    walked_ += pages.size();
    SK_TRY_ASSIGN(memory, space_.map(around_.guest, pages, epoch));
    watch_.record({.words = stream}, pages, memory, false, kFirstPageOfPrograms);
    const sim::Commands commands{.bytes = {reinterpret_cast<const uint8_t*>(stream.data()), stream.size() * 4}};
    const sim::Job job{.commands = {&commands, 1}};
    const JobWatch::Time begun = std::chrono::steady_clock::now();
    SK_TRY(simulator_->run(job, memory));
    watch_.wait(job, memory, begun, [&] { return epoch != space_.epoch(); });
    return {};
  });
  if (epoch != space_.epoch()) return simulator_->reset(0);
  if (!done.ok()) {
    warn(device_warnings(), "{}: job {}: {}", name_, jobs_, done.error().message);
    const std::optional<uint64_t> missed = memory.missed();
    state_ = State::hung;
    if (!missed) return;
    const auto address = static_cast<uint32_t>(*missed);
    return mmu_exception(address, translate(address, false) ? kWriteViolation : kPageNotPresent);
  }
  at_ = return_at;
  loses_interrupt_ = fault == FaultKind::lost_interrupt;
  if (fault == FaultKind::spurious_interrupt) around_.set_interrupt(true);
}

}  // namespace skillet::mmio::etnaviv
