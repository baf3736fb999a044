// Stopwatch: milliseconds since its construction.
// Called by code that reports times.
// Must not know: anything.
#pragma once

#include <chrono>

namespace skillet {

class Stopwatch {
 public:
  double ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace skillet
