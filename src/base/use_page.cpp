#include "base/use_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "base/environment.h"
#include "base/parse_bool.h"
#include "base/process_lock.h"
#include "base/trace.h"

namespace skillet::use {
namespace {

using Word = std::atomic_ref<uint64_t>;
static_assert(Word::is_always_lock_free);

// State of this process. No destructor: contexts may be closed while the program exits.
struct Shared {
  Page* page = nullptr;
  int fd = -1;
  size_t counters = 0;
};
constinit ProcessLock shared_lock;
constinit Shared shared;

class Locked {
 public:
  Locked() {
    if (shared_lock.lock_in_process()) shared = {};  // a child must not use its parent's page
  }
  ~Locked() { shared_lock.unlock(); }
  Locked(const Locked&) = delete;
};

uint64_t load(const uint64_t& word) { return Word(const_cast<uint64_t&>(word)).load(std::memory_order_relaxed); }
void store(uint64_t& word, uint64_t value) { Word(word).store(value, std::memory_order_relaxed); }
void add(uint64_t& word, uint64_t more) { store(word, load(word) + more); }

uint64_t now_ns() { return static_cast<uint64_t>(trace::now_ns()); }

bool is_wanted() {
  const char* const said = environment_variable("SKILLET_TOP");
  bool wanted = true;
  rlimit limit{};  // beyond it the kernel sends a signal
  return (said == nullptr || !parse_bool(said, wanted) || wanted) && ::getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
         limit.rlim_cur >= sizeof(Page);
}

// Seals the size of the file, so that nobody can truncate it under the mapping.
Page* map_page(int fd) {
  if (::fallocate(fd, 0, 0, sizeof(Page)) != 0) return nullptr;
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return nullptr;
  void* const at = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return nullptr;
  Page* const page = new (at) Page;
  page->process = static_cast<uint64_t>(::getpid());
  return page;
}

// Null: the page is off or cannot be created.
Page* make_page(int& fd) {
  if (!is_wanted()) return nullptr;
  fd = ::memfd_create(kPageName, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  Page* const page = fd < 0 ? nullptr : map_page(fd);
  if (fd >= 0 && page == nullptr) ::close(fd);
  return page;
}

// Null: no slot is free.
Slot* take_slot(uint64_t cores) {
  const Locked lock;
  if (shared.counters++ == 0) shared.page = make_page(shared.fd);
  if (shared.page == nullptr) return nullptr;
  const auto slot = std::ranges::find(shared.page->slots, 0U, &Slot::cores);
  if (slot == shared.page->slots.end()) return nullptr;
  slot->cores = cores;
  return &*slot;
}

// Null is ignored.
void give_back(Slot* slot) {
  const Locked lock;
  if (slot != nullptr) *slot = {};
  if (--shared.counters != 0 || shared.page == nullptr) return;
  ::munmap(shared.page, sizeof(Page));
  ::close(shared.fd);
  shared.page = nullptr;
}

template <size_t size>
void put(std::array<char, size>& to, std::string_view text) {
  to = {};
  std::ranges::copy(text.substr(0, size - 1), to.begin());
}

// Another process may have written it: a zero byte at the end is not guaranteed.
template <size_t size>
std::string_view text_of(const std::array<char, size>& chars) {
  return {chars.data(), ::strnlen(chars.data(), size)};
}

}  // namespace

uint64_t busy_cores(std::span<const Slot> slots, std::string_view device) {
  uint64_t running = 0, cores = 0;
  for (const Slot& slot : slots) {
    if (load(slot.since_ns) == 0 || text_of(slot.device) != device) continue;
    ++running;
    cores = std::max(cores, load(slot.cores));
  }
  return std::min(running, cores);
}

Counter::Counter(std::string_view device, std::string_view chip, uint64_t cores)
    : slot_(take_slot(std::max<uint64_t>(cores, 1))) {
  if (slot_ == nullptr) slot_ = (own_ = std::make_unique<Slot>(Slot{.cores = 1})).get();  // not shared with other slots
  put(slot_->device, device);
  put(slot_->chip, chip);
}

Counter::~Counter() {
  if (process_.is_here()) give_back(own_ == nullptr ? slot_ : nullptr);
}

// Counts busy time up to now for all slots of the device; running jobs are counted from here, this slot's only if it
// `runs`.
void Counter::count_busy(bool runs) {
  const Locked lock;
  const bool is_shared = own_ == nullptr && shared.page != nullptr;  // a child of fork() has no page
  const std::span<Slot> slots = is_shared ? std::span<Slot>(shared.page->slots) : std::span<Slot>(slot_, 1);
  const std::string_view device = slot_->device.data();
  const uint64_t now = now_ns(), cores = busy_cores(slots, device);
  uint64_t passed = 0;
  for (Slot& slot : slots) {
    if (load(slot.since_ns) == 0 || text_of(slot.device) != device) continue;
    passed = now - load(slot.since_ns);  // the same for each slot
    store(slot.since_ns, now);
  }
  add(slot_->busy_ns, passed * cores);
  store(slot_->since_ns, runs ? now : 0);
}

void Counter::submitted(size_t jobs) {
  count_busy(true);
  in_flight_ += jobs;
  add(slot_->submitted, jobs);
}

void Counter::ended(bool is_well) {
  if (in_flight_ == 0) return;
  if (is_well) add(slot_->finished, in_flight_);
  in_flight_ = 0;
  count_busy(false);
}

void Counter::change_bytes(int64_t by) { add(slot_->bytes, static_cast<uint64_t>(by)); }

void Counter::name_model(std::string_view model) { put(slot_->model, model); }

Totals Counter::totals() const { return {load(slot_->finished), load(slot_->busy_ns)}; }

}  // namespace skillet::use
