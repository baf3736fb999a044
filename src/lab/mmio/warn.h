// warn(): a warning about a guest. A guest can cause any number of errors, so beyond a limit per period warnings are
// only counted. Allowance: that limit, for one source of warnings. Called by the server and by devices. Must not know:
// the texts.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "base/log.h"

namespace skillet::mmio {

// A limited number of warnings in each period. For all threads.
class Allowance {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr uint32_t kMost = 20;
  static constexpr auto kPeriod = std::chrono::seconds(10);

  // Returns nothing if no warning may be written now; else the number of those left out since the last one.
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

// For all devices.
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
