// Writes LSB-first bits of a coefficient stream.
// Called by the coefficient writers.
// Must not know: any format.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/bytes.h"

namespace skillet::npus::vivante {

// Writes into memory that has room for all bits and kSlackBytes more.
class BitWriter {
 public:
  static constexpr size_t kSlackBytes = 8;
  static constexpr int kMaxBits = 57;  // of one put()

  explicit BitWriter(uint8_t* at) : at_(at) {}

  void put(uint64_t value, int bits) {
    pending_ |= value << filled_;
    filled_ += bits;
    store_le(at_, pending_);
    const int whole = filled_ / 8;
    at_ += whole;
    pending_ = whole == 8 ? 0 : pending_ >> (8 * whole);
    filled_ %= 8;
  }
  uint8_t* at() const { return at_; }  // the first byte that is not complete
  bool at_byte() const { return filled_ == 0; }
  // Only if at_byte().
  void put_bytes(const uint8_t* bytes, size_t count) {
    std::memcpy(at_, bytes, count);
    at_ += count;
  }
  void put_bytes(uint8_t byte, size_t count) {
    std::memset(at_, byte, count);
    at_ += count;
  }

 private:
  uint8_t* at_;
  uint64_t pending_ = 0;
  int filled_ = 0;
};

}  // namespace skillet::npus::vivante
