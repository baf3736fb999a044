#include "base/own_process.h"

#include <pthread.h>

#include <atomic>

namespace skillet {
namespace {

// How many fork()s lie between the first process and this one, since this library was loaded.
std::atomic<uint64_t>& forks() {
  static std::atomic<uint64_t> count{0};
  static const int kRegistered = ::pthread_atfork(nullptr, nullptr, [] { ++forks(); });
  static_cast<void>(kRegistered);
  return count;
}

}  // namespace

OwnProcess::OwnProcess() : forks_(forks()) {}

bool OwnProcess::is_here() const { return forks_ == forks(); }

}  // namespace skillet
