#include "npus/ethosu/hw/ethosu.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "base/leaked.h"

namespace skillet::ethosu::hw {

using namespace ::skillet::bits;  // NOLINT: the rows name codecs and places

#define SK_BITS_SET kCommandTable
#define SK_BITS_FILE "npus/ethosu/hw/commands.def"
#include "bits/define_set.h"

#define SK_BITS_TYPE PayloadConfig
#define SK_BITS_NAME "payload"
#define SK_BITS_FILE "npus/ethosu/hw/payload.def"
#include "bits/define.h"

namespace {

constexpr std::array kChips = {
#define CHIP(name, title, accelerator, compatible, product, macs, shram, address, table_kbytes, ublock, cores, \
             transfers, config)                                                                                \
  ChipRow{#name, title,     accelerator, compatible,   static_cast<ConfigProduct>(product),                    \
          macs,  shram,     address,     table_kbytes, ublock,                                                 \
          cores, transfers, config},
#include "npus/ethosu/hw/chips.def"
#undef CHIP
};

// Codes without a command on Ethos-U85.
constexpr uint32_t kRemoved[] = {IfmIbEnd::kAddress, ParallelMode::kAddress, Ifm2Scalar::kAddress,
                                 Ifm2IbStart::kAddress};

}  // namespace

const bits::RegisterSet& commands() {
  return leaked([] { return bits::RegisterSet(kCommandTable); });
}

const bits::Descriptor* find_command(uint32_t code, Generation generation) {
  if (generation == Generation::u5x) return commands().find(code & ~kOfU85);
  if (const bits::Descriptor* const own = commands().find(code | kOfU85); own != nullptr) return own;
  return std::ranges::find(kRemoved, code) != std::end(kRemoved) ? nullptr : commands().find(code);
}

size_t slot_of(const bits::Descriptor& command) {
  const bits::Descriptor* const first = commands().find(code_of(command.address));
  return commands().index(first == nullptr ? command : *first);
}

std::span<const ChipRow> chips() { return kChips; }

const ChipRow* find_chip(std::string_view name) {
  const auto found = std::ranges::find(kChips, name, &ChipRow::name);
  return found == kChips.end() ? nullptr : &*found;
}

uint32_t ChipRow::config() const {
  return static_cast<uint32_t>(std::countr_zero(macs)) | (config_rest == 0 ? shram_kbytes * cores << 8 : config_rest) |
         static_cast<uint32_t>(product) << 28;
}

const ChipRow* find_device(uint32_t config, std::string_view compatible) {
  const ChipRow* found = nullptr;
  for (const ChipRow& chip : kChips) {
    if (!chip.is_of(config)) continue;
    if (found == nullptr || chip.compatible == compatible) found = &chip;
  }
  return found;
}

const ChipRow* find_configuration(const PayloadConfig& config) {
  const auto found = std::ranges::find_if(kChips, [&](const ChipRow& chip) { return chip.has(config); });
  return found == kChips.end() ? nullptr : &*found;
}

}  // namespace skillet::ethosu::hw
