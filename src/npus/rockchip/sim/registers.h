// The registers of one core: two groups per block, which keep their values from task to task, and the pointers that
// select the group to write and the group to execute.
// Called by core.cpp (commands, start and end of a task) and the units (typed reading).
// Must not know: what the registers do.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/result.h"
#include "npus/rockchip/hw/rockchip.h"

namespace skillet::sim::rockchip {

namespace hw = ::skillet::rockchip::hw;

// The 4 KiB unit of the register space; cmac has no registers on the RK3588.
enum class Block : uint8_t { pc = 0, cna = 1, cmac = 2, core = 3, dpu = 4, dpu_rdma = 5, ppu = 6, ppu_rdma = 7 };
constexpr size_t kBlocks = 8;

class Registers {
 public:
  // `set`: the chip's; borrowed. `streams_point`: streams write the pointers of CNA and CORE, without the core's
  // number.
  explicit Registers(int core, const bits::RegisterSet& set = hw::registers(), bool streams_point = false);

  // A register write of the stream. Error for what is not modelled: address, field, value.
  Result<void> write(Block block, uint32_t address, uint32_t value);

  // The register in the executing group of its block.
  template <typename T>
  T get() {
    return bits::read<T>(std::array{executed(T::kAddress)});
  }
  int executing_group(Block block) const { return pointers_[index(block)].executer; }
  // Error (a stall) when the block cannot start.
  Result<void> check_start(Block block) const;
  // Moves both pointers of the block on, as set by its last s_pointer.
  void finish(Block block);
  // The first register that was read but not written since its group last ran; empty: none.
  const std::string& stale() const { return stale_; }
  void forget_stale() { stale_.clear(); }
  // Begins a task's commands.
  void begin_task();
  const bits::RegisterSet& set() const { return *set_; }
  // The word at the address in the executing group; for rows without a meaning.
  uint32_t word(uint32_t address) { return executed(address); }
  // Whether the task has written the block's pointers before any other register of the block: all three ping-pong bits
  // set or, if streams point, both pointers cleared.
  bool is_pointed(Block block) const { return pointers_[index(block)].order == Pointers::Order::pointed; }

 private:
  struct Pointers {
    hw::CnaSPointer config;  // the same layout in every block
    uint8_t pointer = 0, executer = 0;
    enum class Order : uint8_t { none, pointed, wrong } order = Order::none;  // of this task's writes
  };
  struct Cell {
    uint32_t value = 0;
    bool fresh = false;
  };

  static constexpr size_t index(Block block) { return static_cast<size_t>(block); }
  static Block block_of(uint32_t address) { return static_cast<Block>(address / hw::kBlockBytes); }
  uint32_t executed(uint32_t address);
  Result<void> write_pointers(Block block, uint32_t value);

  int core_;
  const bits::RegisterSet* set_;
  bool streams_point_;
  std::array<Pointers, kBlocks> pointers_;
  std::array<std::vector<Cell>, 2> groups_;  // by group, then by index in the register set
  std::string stale_;
};

}  // namespace skillet::sim::rockchip
