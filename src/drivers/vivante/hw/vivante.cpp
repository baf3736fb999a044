#include "drivers/vivante/hw/vivante.h"

#include <array>

namespace skillet::bits {

#define SK_BITS_NAMESPACE ::skillet::vivante::hw

#define SK_BITS_TYPE NnInstruction
#define SK_BITS_NAME "nn_instruction"
#define SK_BITS_WORDS 32
#define SK_BITS_FILE "drivers/vivante/hw/nn_instruction.def"
#include "bits/define.h"

#define SK_BITS_TYPE TpInstruction
#define SK_BITS_NAME "tp_instruction"
#define SK_BITS_WORDS 31
#define SK_BITS_FILE "drivers/vivante/hw/tp_instruction.def"
#include "bits/define.h"

#define SK_BITS_TYPE NnConfig
#define SK_BITS_NAME "nn_config"
#define SK_BITS_WORDS 1
#define SK_BITS_FILE "drivers/vivante/hw/state_nn_config.def"
#include "bits/define.h"

#define SK_BITS_TYPE VipFlushControl
#define SK_BITS_NAME "vip_flush_control"
#define SK_BITS_WORDS 1
#define SK_BITS_FILE "drivers/vivante/hw/state_vip_flush_control.def"
#include "bits/define.h"

}  // namespace skillet::bits

namespace skillet::vivante::hw {
namespace {

constexpr std::array kStates = {
#define STATE(name, address, doc) StateRow{State::name, #name, doc},
#include "drivers/vivante/hw/states.def"
#undef STATE
};

constexpr std::array kChips = {
#define CHIP(name, title, ids, generation, nn, tp, in_depth, acc_depth, sram, zrl, offset_bits, max_kernel, mhz, \
             flags)                                                                                              \
  ChipRow{#name, title, ids, generation, nn, tp, in_depth, acc_depth, sram, zrl, offset_bits, max_kernel, mhz, flags},
#include "drivers/vivante/hw/chips.def"
#undef CHIP
};

}  // namespace

std::span<const StateRow> states() { return kStates; }

std::string_view state_name(uint32_t address) {
  for (const StateRow& row : kStates) {
    if (static_cast<uint32_t>(row.state) == address) return row.name;
  }
  return {};
}

std::span<const ChipRow> chips() { return kChips; }

const ChipRow* find_chip(std::string_view name) {
  for (const ChipRow& row : kChips) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

const ChipRow* find_chip(const ChipIds& ids) {
  constexpr uint32_t kRevision = 0xFFF0;
  for (const ChipRow& row : kChips) {
    const ChipIds& own = row.ids;
    if (own.model == ids.model && (own.revision & kRevision) == (ids.revision & kRevision) &&
        own.product == ids.product && own.eco == ids.eco && own.customer == ids.customer)
      return &row;
  }
  return nullptr;
}

}  // namespace skillet::vivante::hw
