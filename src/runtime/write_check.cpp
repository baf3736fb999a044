#include "runtime/write_check.h"

#include <algorithm>

namespace skillet::runtime {

std::span<uint8_t> WriteCheck::end_of(std::span<uint8_t> tensor) {
  return tensor.last(std::min(tensor.size(), kMarkBytes));
}

// No run of equal bytes and no ramp, which outputs often end with.
uint8_t WriteCheck::mark_byte(size_t i) const {
  constexpr std::array<uint8_t, kMarkBytes> kMark = {0x5a, 0x17, 0xe3, 0x88, 0x3c, 0xc9, 0x6f, 0x02,
                                                     0xb4, 0x71, 0xde, 0x25, 0x9b, 0x40, 0xf6, 0x8d};
  return static_cast<uint8_t>(kMark[i] ^ flip_);
}

void WriteCheck::mark(std::span<uint8_t> tensor) {
  const std::span<uint8_t> end = end_of(tensor);
  std::ranges::copy(end, kept_.begin());
  for (size_t i = 0; i < end.size(); ++i) end[i] = mark_byte(i);
  marked_ = true;
  pending_ = false;
}

bool WriteCheck::settle(std::span<uint8_t> tensor) {
  if (!marked_) return true;
  const std::span<uint8_t> end = end_of(tensor);
  if (pending_) {
    bool untouched = !end.empty();
    for (size_t i = 0; i < end.size(); ++i) untouched &= end[i] == mark_byte(i);
    if (untouched) {
      flip_ ^= 0xff;
      std::array<uint8_t, kMarkBytes> kept = kept_;
      mark(tensor);
      kept_ = kept;
      return false;
    }
  } else {
    std::copy_n(kept_.begin(), end.size(), end.begin());
  }
  marked_ = pending_ = false;
  return true;
}

}  // namespace skillet::runtime
