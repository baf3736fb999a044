#include "npus/rockchip/compiler/commands.h"

namespace skillet::npus::rockchip {
namespace {

constexpr int kValueLsb = 16;  // of a command

}  // namespace

hw::Target CommandList::target_of(uint32_t address) {
  switch (address / hw::kBlockBytes) {
    case 0: return hw::Target::pc;
    case 1: return hw::Target::cna;
    case 3: return hw::Target::core;
    case 4: return hw::Target::dpu;
    case 5: return hw::Target::dpu_rdma;
    case 6: return hw::Target::ppu;
    default: return hw::Target::ppu_rdma;
  }
}

void CommandList::add_relocations() {
  for (const bits::AddressSlot& slot : slots_) {
    const bits::Piece piece = slot.row->where.pieces[0];
    const uint64_t shift = slot.row->codec.kind == bits::CodecKind::aligned ? slot.row->codec.argument : 0;
    out_.relocations.push_back({.at_byte = out_.bytes.size(),
                                .target = slot.address.symbol,
                                .target_offset_bytes = slot.address.offset,
                                .lsb = static_cast<uint8_t>(kValueLsb + piece.lsb),
                                .width_bits = piece.width,
                                .shift = static_cast<uint8_t>(shift)});
  }
}

void CommandList::command(hw::Target target, uint32_t address, uint32_t value) {
  const uint64_t word = uint64_t{static_cast<uint32_t>(target)} << 48 | uint64_t{value} << kValueLsb | address;
  out_.bytes.resize(out_.bytes.size() + hw::kCommandBytes);
  store_le(out_.bytes.data() + out_.bytes.size() - hw::kCommandBytes, word);
}

void CommandList::start(const hw::BlockEnable& blocks) {
  command(hw::Target::barrier, 0, 0);
  command(hw::Target::enable, hw::kEnableAddress, (*bits::pack(blocks))[0]);
}

Result<Commands> CommandList::take() {
  if (failed_) return std::move(*failed_);
  return std::move(out_);
}

}  // namespace skillet::npus::rockchip
