// splitmix64: the pseudo-random stream that recorded cases name as the source of their inputs; also test data.
// Called by tools (--random) and tests.
// Must not know: anything above base/.
#pragma once

#include <cstdint>

namespace skillet {

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

}  // namespace skillet
