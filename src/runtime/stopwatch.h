// Stopwatch: milliseconds since it was made.
// Called by runtime/ for its reports.
// Must not know: anything.
#pragma once

#include <chrono>

namespace skillet::runtime {

class Stopwatch {
 public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace skillet::runtime
