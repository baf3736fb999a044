#include "lab/mmio/shrinkable.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <utility>

namespace skillet::mmio {
namespace {

struct Range {
  std::atomic<bool> is_taken = false;
  std::atomic<uintptr_t> begin = 0, end = 0;
};
// Enough for 8 regions of each of two sockets, and the address spaces of 16 cores.
constinit std::array<Range, 64> g_ranges;
constinit std::atomic<uint64_t> g_count = 0;
constinit std::atomic<int> g_eventfd = -1;
static_assert(std::atomic<uintptr_t>::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free);

// Maps zeros from the page to the end of its range, so that sequential reads do not fault for each page.
bool put_zeros(uintptr_t at, uintptr_t end) {
  const uintptr_t page = at & ~(static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE)) - 1);
  return ::mmap(reinterpret_cast<void*>(page), end - page, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

// The access is repeated afterwards: on zeros, or, for bytes that are not watched, it ends the process.
void on_missing_page(int /*signal*/, siginfo_t* info, void* /*context*/) {
  const int saved = errno;
  const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  bool is_done = false;
  for (const Range& one : g_ranges) {
    const uintptr_t begin = one.begin, end = one.end;
    if (at >= begin && at < end) is_done = put_zeros(at, end);
  }
  if (!is_done) std::signal(SIGBUS, SIG_DFL);
  ++g_count;
  const uint64_t one = 1;
  const int eventfd = g_eventfd;
  if (eventfd >= 0 && ::write(eventfd, &one, sizeof(one)) < 0) errno = 0;
  errno = saved;
}

void install() {
  struct sigaction action {};
  action.sa_sigaction = on_missing_page;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  if (::sigaction(SIGBUS, &action, nullptr) != 0) std::abort();  // cannot fail: the signal's number is valid
}

}  // namespace

Shrinkable::Shrinkable(Shrinkable&& other) noexcept : slot_(std::exchange(other.slot_, -1)) {}

Shrinkable& Shrinkable::operator=(Shrinkable&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}

Result<void> Shrinkable::watch(std::span<uint8_t> bytes) {
  static std::once_flag once;
  std::call_once(once, install);
  forget();
  for (size_t i = 0; i < g_ranges.size(); ++i) {
    if (g_ranges[i].is_taken.exchange(true)) continue;
    slot_ = static_cast<int>(i);
    g_ranges[i].end = reinterpret_cast<uintptr_t>(bytes.data()) + bytes.size();
    g_ranges[i].begin = reinterpret_cast<uintptr_t>(bytes.data());
    return {};
  }
  return error(ErrorCode::io, "more than {} pieces of memory of guests at once", g_ranges.size());
}

void Shrinkable::forget() {
  if (slot_ < 0) return;
  Range& range = g_ranges[static_cast<size_t>(std::exchange(slot_, -1))];
  range.end = 0;
  range.is_taken = false;
}

uint64_t Shrinkable::count() { return g_count; }

void Shrinkable::tell(int eventfd) { g_eventfd = eventfd; }

}  // namespace skillet::mmio
