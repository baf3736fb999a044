#include "tools/cli/orderly_end.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/stop.h"
#include "tools/show/output.h"

namespace skillet::tools {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
// A second signal within this time is the same request: `timeout` signals its child and the child's group.
constexpr int64_t kTogetherMs = 500;

pthread_t g_main;  // the thread whose calls a signal interrupts
volatile int64_t g_asked_ms = 0;

int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

void end_now(int signal) {
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

void say(std::string_view text) { static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size())); }

void end_or_wait(int signal) {
  if (!end_is_held()) return end_now(signal);
  say("\n"
      "skillet: waiting for the NPU, a few seconds at most: its kernel driver would crash if the program ended now\n");
}

void on_signal(int signal) {
  const int number = errno;
  if (::pthread_equal(::pthread_self(), g_main) == 0) {
    ::pthread_kill(g_main, signal);
  } else if (requested_stop() != 0) {
    if (now_ms() - g_asked_ms > kTogetherMs) end_or_wait(signal);
  } else {
    g_asked_ms = now_ms();
    request_stop(signal);
    say(end_is_held() ? "\n"
                        "skillet: ending after the current run\n"
                      : "\n"
                        "skillet: ending after the current run; press again to end now\n");
  }
  errno = number;
}

}  // namespace

// Ignored signals stay ignored (nohup). No SA_RESTART: a signal interrupts waiting calls.
OrderlyEnd::OrderlyEnd() {
  g_main = ::pthread_self();
  for (const int signal : kSignals) {
    struct sigaction now {};
    if (::sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
    struct sigaction ours {};
    ours.sa_handler = on_signal;
    ::sigaction(signal, &ours, nullptr);
  }
}

OrderlyEnd::~OrderlyEnd() {
  const int signal = requested_stop();
  if (signal == 0) return;
  flush_output();
  end_now(signal);
}

void runs_jobs(const Verb& verb, Outcome& outcome, std::function<Result<void>()> work) {
  verb.runs([&outcome, work = std::move(work)] {
    const OrderlyEnd end;
    outcome.finish(work());
  });
}

}  // namespace skillet::tools
