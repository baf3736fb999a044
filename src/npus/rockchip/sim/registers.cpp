#include "npus/rockchip/sim/registers.h"

#include "npus/rockchip/sim/fault.h"
#include "npus/rockchip/sim/field_check.h"

namespace skillet::sim::rockchip {
namespace {

constexpr uint32_t kPointerOffset = 4;  // of s_pointer in each block

bool has_core_index(Block block) { return block == Block::cna || block == Block::core; }

}  // namespace

Registers::Registers(int core, const bits::RegisterSet& set, bool streams_point)
    : core_(core), set_(&set), streams_point_(streams_point) {
  for (auto& group : groups_) group.resize(set.registers.size());
}

Result<void> Registers::write(Block block, uint32_t address, uint32_t value) {
  const bits::Descriptor* const descriptor = set_->find(address);
  if (descriptor == nullptr) return not_modelled("register 0x{:04x}: there is none", address);
  if (block_of(address) != block) return not_modelled("{}: not a register of the command's target", descriptor->name);
  const uint32_t offset = address % hw::kBlockBytes;
  if (offset == kPointerOffset) return write_pointers(block, value);
  Pointers& p = pointers_[index(block)];
  if (offset < hw::kFirstShadowed) return not_modelled("{}: read only", descriptor->name);
  if (offset == hw::kEnableAddress)
    return not_modelled("{}: starting a block by its own register is not modelled", descriptor->name);
  SK_TRY(check_fields(*set_, *descriptor, value));
  if (p.order == Pointers::Order::none) p.order = Pointers::Order::wrong;
  groups_[p.pointer][set_->index(*descriptor)] = {value, true};
  return {};
}

Result<void> Registers::write_pointers(Block block, uint32_t value) {
  Pointers& p = pointers_[index(block)];
  const auto config = bits::read<hw::CnaSPointer>({&value, 1});
  const uint32_t unknown = bits::unclaimed_bits(hw::CnaSPointer::descriptor(), 0, value);
  if (unknown != 0 || config.executer != 0 || (config.core_index != 0 && !has_core_index(block)))
    return not_modelled("s_pointer of block {} <- 0x{:08x}: unknown or read-only bits", index(block), value);
  if (config.pointer_pp_en && config.pointer_pp_mode == 0)
    return not_modelled("s_pointer.pointer_pp_mode = 0: a write pointer that follows the executer is not modelled");
  p.config = config;
  const bool clears = streams_point_ && config.pointer_pp_clear && config.executer_pp_clear && !config.pointer_pp_en;
  const bool alternates = clears || (value & hw::kPointerPingPong) == hw::kPointerPingPong;
  p.order = alternates && p.order != Pointers::Order::wrong ? Pointers::Order::pointed : Pointers::Order::wrong;
  if (config.pointer_pp_clear) p.pointer = 0;
  if (config.executer_pp_clear) p.executer = 0;
  // While the pointer moves by itself, a write to `pointer` has no effect: recorded streams write 0 for both groups.
  if (!config.pointer_pp_en) p.pointer = static_cast<uint8_t>(config.pointer);
  return {};
}

void Registers::begin_task() {
  for (Pointers& p : pointers_) p.order = Pointers::Order::none;
}

Result<void> Registers::check_start(Block block) const {
  const uint32_t named = pointers_[index(block)].config.core_index;
  if (!streams_point_ && has_core_index(block) && named != static_cast<uint32_t>(core_))
    return stall("{}: s_pointer.core_index is {} on core {}: the task never ends", block == Block::cna ? "cna" : "core",
                 named, core_);
  return {};
}

void Registers::finish(Block block) {
  Pointers& p = pointers_[index(block)];
  for (size_t i = 0; i < groups_[0].size(); ++i) {
    if (block_of(set_->registers[i].address) == block) groups_[p.executer][i].fresh = false;
  }
  if (p.config.pointer_pp_en) p.pointer ^= 1;
  if (p.config.executer_pp_en) p.executer ^= 1;
}

uint32_t Registers::executed(uint32_t address) {
  const bits::Descriptor& descriptor = *set_->find(address);
  const Cell& cell = groups_[pointers_[index(block_of(address))].executer][set_->index(descriptor)];
  if (!cell.fresh && stale_.empty()) stale_ = descriptor.name;
  return cell.value;
}

}  // namespace skillet::sim::rockchip
