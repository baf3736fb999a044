// LSB-first bits of a coefficient stream.
// Called by nn_coefficients_v7.cpp and nn_coefficients_v8.cpp.
// Must not know: the formats.
#pragma once

#include <cstdint>
#include <span>

namespace skillet::sim::vivante {

// Reading past the end sets truncated() and returns zeros.
class BitReader {
 public:
  explicit BitReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  uint32_t get(int count) {
    while (held_ < count) {
      if (next_ < bytes_.size())
        hold_ |= uint64_t{bytes_[next_]} << held_;
      else
        truncated_ = true;
      ++next_;
      held_ += 8;
    }
    const auto value = static_cast<uint32_t>(hold_ & ((uint64_t{1} << count) - 1));
    hold_ >>= count;
    held_ -= count;
    position_ += count;
    return value;
  }
  bool truncated() const { return truncated_; }
  int64_t position() const { return position_; }

 private:
  std::span<const uint8_t> bytes_;
  size_t next_ = 0;
  uint64_t hold_ = 0;
  int held_ = 0;
  int64_t position_ = 0;
  bool truncated_ = false;
};

}  // namespace skillet::sim::vivante
