#include "kernels/rocket/client/quiet.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/process_lock.h"
#include "base/stop.h"

namespace skillet::kernels::rocket {
namespace {

// The open files of this process; a child of fork() starts with none. Constant-initialised and never destroyed: devices
// may be closed while the program ends.
constinit ProcessLock g_lock;
constinit Quiet* g_open = nullptr;
constinit std::atomic<bool> g_is_ending{false};

class Locked {
 public:
  Locked() {
    if (!g_lock.lock_in_process()) return;
    g_open = nullptr;
    g_is_ending = false;
  }
  ~Locked() { g_lock.unlock(); }
  Locked(const Locked&) = delete;
};

std::chrono::nanoseconds now() { return std::chrono::steady_clock::now().time_since_epoch(); }

}  // namespace

// The kernel closes files that a process leaves open, and programs end right after their last job: an interpreter does
// not close its remaining objects. Other threads may continue, so objects are left unchanged, but no more jobs may be
// submitted. Runs after the destructors of static objects, which may close devices.
__attribute__((destructor)) void end_of_process() {
  constexpr std::chrono::nanoseconds kBetweenLooks = std::chrono::milliseconds(2);
  for (std::chrono::nanoseconds time{1}; time.count() > 0;) {
    time = std::chrono::nanoseconds(0);
    {
      const Locked lock;
      g_is_ending = true;
      for (Quiet* one = g_open; one != nullptr; one = one->next_) {
        if (one->still_to_wait() > kReleaseTime) one->look_();
        time = std::max(time, one->still_to_wait());
      }
    }
    if (time.count() > 0) std::this_thread::sleep_for(std::min(time, kBetweenLooks));
  }
}

Quiet::Quiet(std::function<void()> look) : look_(std::move(look)) {
  const Locked lock;
  next_ = g_open;
  g_open = this;
}

Quiet::~Quiet() {
  if (!process_.is_here()) return;
  if (holds_end_) release_end();
  const Locked lock;
  Quiet** link = &g_open;
  while (*link != this) link = &(*link)->next_;
  *link = next_;
}

void Quiet::set(std::chrono::nanoseconds from_now) { quiet_at_ns_ = (now() + from_now).count(); }

// Counts the jobs before checking for the end of the process: that end either sees these jobs or prevents their
// submission.
bool Quiet::submitted(size_t jobs) {
  if (!std::exchange(holds_end_, true)) hold_end();
  set(kJobTimeout * jobs + kReleaseTime);
  return !g_is_ending;
}

void Quiet::ended() { set(kReleaseTime); }

std::chrono::nanoseconds Quiet::still_to_wait() const { return std::chrono::nanoseconds(quiet_at_ns_) - now(); }

}  // namespace skillet::kernels::rocket
