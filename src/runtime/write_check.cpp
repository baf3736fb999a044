#include "runtime/write_check.h"

#include <algorithm>

namespace skillet::runtime {

// Neither a run of equal bytes nor a ramp, which outputs often end with.
uint8_t WriteCheck::mark_byte(size_t i) const {
  constexpr std::array<uint8_t, npu::kWitnessBytes> kMark = {0x5a, 0x17, 0xe3, 0x88, 0x3c, 0xc9, 0x6f, 0x02,
                                                             0xb4, 0x71, 0xde, 0x25, 0x9b, 0x40, 0xf6, 0x8d};
  return static_cast<uint8_t>(kMark[i] ^ flip_);
}

void WriteCheck::mark(std::span<uint8_t> witness) {
  if (is_marked()) return;
  std::ranges::copy(witness, kept_.begin());
  for (size_t i = 0; i < witness.size(); ++i) witness[i] = mark_byte(i);
  state_ = State::marked;
}

bool WriteCheck::settle(std::span<uint8_t> witness) {
  const State before = state_;
  state_ = State::clear;
  if (before == State::marked) std::copy_n(kept_.begin(), witness.size(), witness.begin());
  if (before != State::unchecked) return true;
  for (size_t i = 0; i < witness.size(); ++i) {
    if (witness[i] != mark_byte(i)) return true;
  }
  flip_ ^= 0xff;
  return false;
}

}  // namespace skillet::runtime
