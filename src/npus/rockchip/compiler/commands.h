// CommandList: register writes as commands, with their addresses left out.
// Called by registers.cpp, pointwise.cpp.
// Must not know: what the registers do.
#pragma once

#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "npus/rockchip/hw/rockchip.h"
#include "program/program.h"

namespace skillet::npus::rockchip {

namespace hw = ::skillet::rockchip::hw;

inline uint32_t u(int64_t value) { return static_cast<uint32_t>(value); }

// Commands with their addresses left out.
struct Commands {
  Bytes bytes;
  std::vector<npu::Relocation> relocations;  // at_byte: within bytes
};

class CommandList {
 public:
  template <typename T>
  void put(const T& fields) {
    slots_.clear();
    auto words = bits::pack(fields, &slots_);
    if (!words.ok()) {
      if (!failed_) failed_ = std::move(words).error();
      return;
    }
    add_relocations();
    command(target_of(T::kAddress), T::kAddress, (*words)[0]);
  }
  // Registers that are 0.
  template <typename... T>
  void zeros() {
    (put(T{}), ...);
  }
  void command(hw::Target target, uint32_t address, uint32_t value);
  // Starts the blocks; ends the list.
  void start(const hw::BlockEnable& blocks);
  // Returns the first error of a put(), if any.
  Result<Commands> take();

 private:
  static hw::Target target_of(uint32_t address);
  void add_relocations();

  Commands out_;
  std::vector<bits::AddressSlot> slots_;
  std::optional<Error> failed_;
};

}  // namespace skillet::npus::rockchip
