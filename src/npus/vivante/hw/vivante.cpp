#include "npus/vivante/hw/vivante.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace skillet::vivante::hw {

using namespace ::skillet::bits;  // NOLINT: the rows name codecs and places

#define V8_BITS(where) \
  Where {}
#define SK_BITS_TYPE NnInstruction
#define SK_BITS_NAME "nn_instruction"
#define SK_BITS_FILE "npus/vivante/hw/nn_instruction.def"
#include "bits/define.h"
#undef V8_BITS

#define V8_BITS(where) where
#define SK_BITS_TYPE NnInstructionV8
#define SK_BITS_NAME "nn_instruction"
#define SK_BITS_FILE "npus/vivante/hw/nn_instruction.def"
#include "bits/define.h"
#undef V8_BITS

#define SK_BITS_TYPE TpInstruction
#define SK_BITS_NAME "tp_instruction"
#define SK_BITS_FILE "npus/vivante/hw/tp_instruction.def"
#include "bits/define.h"

#define SK_BITS_TYPE NnConfig
#define SK_BITS_NAME "nn_config"
#define SK_BITS_FILE "npus/vivante/hw/state_nn_config.def"
#include "bits/define.h"

#define SK_BITS_TYPE VipFlushControl
#define SK_BITS_NAME "vip_flush_control"
#define SK_BITS_FILE "npus/vivante/hw/state_vip_flush_control.def"
#include "bits/define.h"

namespace {

constexpr std::array kStates = {
#define STATE(name, address, doc) StateRow{State::name, #name, doc},
#include "npus/vivante/hw/states.def"
#undef STATE
};

constexpr std::array kChips = {
#define CHIP(name, title, ids, generation, nn, tp, in_depth, acc_depth, sram, zrl, offset_bits, max_kernel, mhz, \
             flags, assumption)                                                                                  \
  ChipRow{#name, title, ids,         generation, nn,  tp,    in_depth,  acc_depth,                               \
          sram,  zrl,   offset_bits, max_kernel, mhz, flags, assumption},
#include "npus/vivante/hw/chips.def"
#undef CHIP
};

constexpr std::array kGenerations = {
#define GENERATION(...) Generation{__VA_ARGS__},
#include "npus/vivante/hw/generations.def"
#undef GENERATION
};

}  // namespace

const bits::Descriptor& nn_instruction(const ChipRow& chip) {
  return chip.generation >= 8 ? bits::descriptor_of<NnInstructionV8>() : bits::descriptor_of<NnInstruction>();
}

bits::Typed<NnInstruction> unpack_nn_instruction(const ChipRow& chip, std::span<const uint32_t> words) {
  bits::Typed<NnInstruction> typed{{}, bits::unpack(nn_instruction(chip), words)};
  bits::read_struct(nn_instruction(chip), words, &typed.fields);
  return typed;
}

const Generation& generation_of(const ChipRow& chip) {
  const auto* const row = std::find_if(kGenerations.begin(), kGenerations.end(),
                                       [&](const Generation& g) { return g.generation == chip.generation; });
  SK_CHECK(row != kGenerations.end());
  return *row;
}

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
