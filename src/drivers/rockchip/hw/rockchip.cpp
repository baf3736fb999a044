#include "drivers/rockchip/hw/rockchip.h"

#include <array>

namespace skillet::rockchip::hw {

using namespace ::skillet::bits;  // NOLINT: the rows name codecs and places

#define SK_BITS_SET kRegisterTable
#define SK_BITS_FILE "drivers/rockchip/hw/registers.def"
#include "bits/define_set.h"

#define SK_BITS_TYPE Command
#define SK_BITS_NAME "command"
#define SK_BITS_FILE "drivers/rockchip/hw/command.def"
#include "bits/define.h"

#define SK_BITS_TYPE BlockEnable
#define SK_BITS_NAME "block_enable"
#define SK_BITS_FILE "drivers/rockchip/hw/block_enable.def"
#include "bits/define.h"

namespace {

constexpr std::array kChips = {
#define CHIP(name, title, compatible, cores, banks, bank_bytes, unit_bytes, atom, kernels, channels, task_bits, \
             commands, flags)                                                                                   \
  ChipRow{#name, title,   compatible, cores,     banks,    bank_bytes, unit_bytes,                              \
          atom,  kernels, channels,   task_bits, commands, flags},
#include "drivers/rockchip/hw/chips.def"
#undef CHIP
};

}  // namespace

const bits::RegisterSet& registers() {
  static constexpr bits::RegisterSet kSet{kRegisterTable};
  return kSet;
}

std::span<const ChipRow> chips() { return kChips; }

const ChipRow* find_chip(std::string_view name) {
  for (const ChipRow& row : kChips) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace skillet::rockchip::hw
