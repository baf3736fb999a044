// warn(): a warning about a guest, which may do wrong as often as it likes: of many in a short time some are counted
// only. Allowance: which ones, of one place that warns. Called by the server and by devices. Must not know: what they
// say.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "base/log.h"

namespace skillet::mmio {

// So many in each period. For all threads.
class Allowance {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr uint32_t kMost = 20;
  static constexpr auto kPeriod = std::chrono::seconds(10);

  // Whether one may be said now; then how many were not, since the last one that was.
  std::optional<uint64_t> take(Time now) {
    const std::lock_guard lock(mutex_);
    if (now - begun_ >= kPeriod || begun_ == Time()) {
      begun_ = now;
      said_ = 0;
    }
    if (said_ == kMost) {
      ++unsaid_;
      return std::nullopt;
    }
    ++said_;
    return std::exchange(unsaid_, 0);
  }
  uint64_t unsaid() const {
    const std::lock_guard lock(mutex_);
    return unsaid_;
  }

 private:
  mutable std::mutex mutex_;
  Time begun_;
  uint32_t said_ = 0;
  uint64_t unsaid_ = 0;
};

// Of all devices.
inline Allowance& device_warnings() {
  static Allowance all;
  return all;
}

template <typename... Args>
void warn(Allowance& allowance, fmt::format_string<Args...> format, Args&&... args) {
  const std::optional<uint64_t> unsaid = allowance.take(std::chrono::steady_clock::now());
  if (!unsaid) return;
  if (*unsaid != 0) log::warning("{} more warnings about guests were left out", *unsaid);
  log::warning(format, std::forward<Args>(args)...);
}

}  // namespace skillet::mmio
