#include "uapi/rocket/quiet.h"

#include <algorithm>
#include <thread>

#include "base/process_lock.h"

namespace skillet::uapi::rocket {
namespace {

// The open files of this process; a child of fork() begins with none. Constants at first and never destroyed: devices
// may be closed while the program ends.
constinit ProcessLock g_lock;
constinit Quiet* g_open = nullptr;

class Locked {
 public:
  Locked() {
    if (g_lock.lock_in_process()) g_open = nullptr;
  }
  ~Locked() { g_lock.unlock(); }
  Locked(const Locked&) = delete;
};

std::chrono::nanoseconds now() { return std::chrono::steady_clock::now().time_since_epoch(); }

}  // namespace

// The kernel closes what a process leaves open, and programs end right after their last job: an interpreter does not
// close what it still holds.
struct AtEnd {
  ~AtEnd() {
    std::chrono::nanoseconds time{0};
    {
      const Locked lock;
      for (const Quiet* one = g_open; one != nullptr; one = one->next_) time = std::max(time, one->still_to_wait());
    }
    std::this_thread::sleep_for(time);
  }
};

namespace {
const AtEnd g_at_end{};
}

Quiet::Quiet() {
  const Locked lock;
  next_ = g_open;
  g_open = this;
}

Quiet::~Quiet() {
  if (!process_.is_here()) return;
  const Locked lock;
  Quiet** link = &g_open;
  while (*link != this) link = &(*link)->next_;
  *link = next_;
}

void Quiet::set(std::chrono::nanoseconds from_now) { quiet_at_ns_ = (now() + from_now).count(); }

void Quiet::submitted(size_t jobs) {
  set(std::min<std::chrono::nanoseconds>(kLongestQuiet, kJobTimeout * jobs) + kReleaseTime);
}

void Quiet::ended() { set(kReleaseTime); }

std::chrono::nanoseconds Quiet::still_to_wait() const { return std::chrono::nanoseconds(quiet_at_ns_) - now(); }

}  // namespace skillet::uapi::rocket
