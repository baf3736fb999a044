// The values of a task's registers when its blocks start, from its commands. Called by decode.cpp, task_check.cpp.
// Must not know: what the registers do.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "npus/rockchip/hw/rockchip.h"

namespace skillet::npus::rockchip {

class TaskRegisters {
 public:
  explicit TaskRegisters(const bits::RegisterSet& set = ::skillet::rockchip::hw::registers())
      : set_(&set), cells_(set.registers.size()) {}
  // Reads up to the command that starts blocks. A register that is not written counts as 0.
  void read(std::span<const ::skillet::rockchip::hw::Command> commands) {
    namespace hw = ::skillet::rockchip::hw;
    std::ranges::fill(cells_, Cell{});
    enable_ = {};
    for (const hw::Command& command : commands) {
      if (command.target == hw::Target::enable) {
        enable_ = bits::read<hw::BlockEnable>({&command.value, 1});
        return;
      }
      if (command.target == hw::Target::none || command.target == hw::Target::barrier) continue;
      if (const bits::Descriptor* const known = set_->find(command.address))
        cells_[set_->index(*known)] = {command.value, true};
    }
  }

  const ::skillet::rockchip::hw::BlockEnable& enable() const { return enable_; }
  bool writes(const bits::Descriptor& one) const { return cell(one).is_written; }
  uint32_t value(const bits::Descriptor& one) const { return cell(one).value; }
  const bits::RegisterSet& set() const { return *set_; }
  template <typename T>
  bool writes() const {
    return writes(T::descriptor());
  }
  template <typename T>
  T get() const {
    const uint32_t word = value(T::descriptor());
    return bits::read<T>({&word, 1});
  }

 private:
  struct Cell {
    uint32_t value = 0;
    bool is_written = false;
  };
  const Cell& cell(const bits::Descriptor& one) const {
    return cells_[set_->index(*set_->find(static_cast<uint32_t>(one.address)))];
  }

  const bits::RegisterSet* set_;  // of the chip; borrowed
  std::vector<Cell> cells_;       // by index in the register set
  ::skillet::rockchip::hw::BlockEnable enable_;
};

}  // namespace skillet::npus::rockchip
