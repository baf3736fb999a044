#include "npus/rockchip/hw/rockchip.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "base/leaked.h"

namespace skillet::rockchip::hw {

using namespace ::skillet::bits;  // NOLINT: the rows name codecs and places

#define SK_BITS_SET kRegisterTable
#define SK_BITS_FILE "npus/rockchip/hw/registers.def"
#include "bits/define_set.h"

namespace rk3576 {
#define SK_BITS_SET kRegisterTable3576
#define SK_BITS_FILE "npus/rockchip/hw/registers_3576.def"
#include "bits/define_set.h"
}  // namespace rk3576

#define SK_BITS_TYPE Command
#define SK_BITS_NAME "command"
#define SK_BITS_FILE "npus/rockchip/hw/command.def"
#include "bits/define.h"

#define SK_BITS_TYPE BlockEnable
#define SK_BITS_NAME "block_enable"
#define SK_BITS_FILE "npus/rockchip/hw/block_enable.def"
#include "bits/define.h"

namespace {

constexpr std::string_view kMissing3568 =
    "missing: a kernel driver (its start sequence takes a task descriptor), the fields of registers that are known as "
    "whole values, the stride of surfaces of planes that are no multiple of 4 pixels, registers for scales per channel "
    "and for the DPU alone, recorded jobs";
constexpr std::array kChips = {
#define CHIP(name, title, compatible, cores, banks, bank_bytes, unit_bytes, atom, kernels, channels, task_bits, \
             commands, flags, missing)                                                                          \
  ChipRow{#name, title,   compatible, cores,     banks,    bank_bytes, unit_bytes,                              \
          atom,  kernels, channels,   task_bits, commands, flags,      missing},
#include "npus/rockchip/hw/chips.def"
#undef CHIP
};

}  // namespace

const bits::RegisterSet& registers() {
  return leaked([] { return bits::RegisterSet(kRegisterTable); });
}

namespace {

constexpr uint32_t kEndOfUnits = 0x8000;  // end of the addresses that streams write

// Both chips share the rows of PC, and the remaining rows of PPU and PPU_RDMA.
const bits::RegisterSet& registers_3576() {
  const auto& kSet = leaked([] {
    std::vector<bits::Descriptor> all(std::begin(rk3576::kRegisterTable3576), std::end(rk3576::kRegisterTable3576));
    const auto is_shared = [&](const bits::Descriptor& one) {
      const uint32_t block = one.address / kBlockBytes;
      const bool same = block == 0 || (block >= 6 && one.address < kEndOfUnits);
      return same && std::ranges::find(rk3576::kRegisterTable3576, one.address, &bits::Descriptor::address) ==
                         std::end(rk3576::kRegisterTable3576);
    };
    std::ranges::copy_if(registers().registers, std::back_inserter(all), is_shared);
    std::ranges::sort(all, {}, &bits::Descriptor::address);
    return all;
  });
  return leaked([&] { return bits::RegisterSet(kSet); });
}

}  // namespace

const bits::RegisterSet& registers_of(const ChipRow& chip) {
  return chip.has(kRegisters3576) ? registers_3576() : registers();
}

std::span<const ChipRow> chips() { return kChips; }

const ChipRow* find_chip(std::string_view name) {
  for (const ChipRow& row : kChips) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace skillet::rockchip::hw
