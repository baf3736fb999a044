#include "base/stop.h"

#include <atomic>
#include <cstring>

namespace skillet {
namespace {

constinit std::atomic<int> g_signal{0}, g_held{0};
static_assert(std::atomic<int>::is_always_lock_free);

}  // namespace

void request_stop(int signal) { g_signal = signal; }

int requested_stop() { return g_signal; }

void hold_end() { ++g_held; }
void release_end() { --g_held; }
bool end_is_held() { return g_held > 0; }

Result<void> check_stop() {
  const int signal = g_signal;
  if (signal == 0) return {};
  const char* const name = ::sigabbrev_np(signal);
  return error(ErrorCode::io, "stopped by SIG{}", name == nullptr ? "?" : name);
}

}  // namespace skillet
