// Registers: the values that commands have set most recently, read as the structs of the rows.
// Called by npus/ethosu/sim and kernel_rules.cpp, which both follow a stream command by command.
// Must not know: what the values mean.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "npus/ethosu/hw/ethosu.h"

namespace skillet::ethosu::hw {

class Registers {
 public:
  Registers() : values_(commands().registers.size()) {}

  void set(const bits::Descriptor& command, std::array<uint32_t, 2> words) {
    values_[slot_of(command)] = {words, true};
  }
  template <typename T>
  bool has() const {
    return values_[index<T>()].is_set;
  }
  // Zeros if no command has set the register; take_missing() then returns its name.
  template <typename T>
  T get() const {
    const Value& value = values_[index<T>()];
    if (!value.is_set && missing_ == nullptr) missing_ = T::descriptor().name;
    return bits::read<T>(value.words);
  }
  // The first unset register that get() read since the last call, or null.
  const char* take_missing() { return std::exchange(missing_, nullptr); }

 private:
  struct Value {
    std::array<uint32_t, 2> words{};
    bool is_set = false;
  };
  template <typename T>
  static size_t index() {
    return slot_of(T::descriptor());
  }

  std::vector<Value> values_;
  mutable const char* missing_ = nullptr;
};

}  // namespace skillet::ethosu::hw
