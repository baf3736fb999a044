#include "npus/ethosu/hw/ethosu.h"

#include <algorithm>
#include <array>
#include <bit>

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
#define CHIP(name, title, accelerator, compatible, product, macs, shram, address, table_kbytes, ublock, cores,      \
             transfers)                                                                                             \
  ChipRow{#name,        title,  accelerator, compatible, static_cast<ConfigProduct>(product), macs, shram, address, \
          table_kbytes, ublock, cores,       transfers},
#include "npus/ethosu/hw/chips.def"
#undef CHIP
};

}  // namespace

const bits::RegisterSet& commands() {
  static constexpr bits::RegisterSet kSet{kCommandTable};
  return kSet;
}

const bits::Descriptor* find_command(uint32_t code) { return commands().find(code); }

std::span<const ChipRow> chips() { return kChips; }

const ChipRow* find_chip(std::string_view name) {
  const auto found = std::ranges::find(kChips, name, &ChipRow::name);
  return found == kChips.end() ? nullptr : &*found;
}

uint32_t ChipRow::config() const {
  return static_cast<uint32_t>(std::countr_zero(macs)) | shram_kbytes * cores << 8 |
         static_cast<uint32_t>(product) << 28;
}

const ChipRow* find_device(uint32_t config, std::string_view compatible) {
  const ChipRow* found = nullptr;
  for (const ChipRow& chip : kChips) {
    if (chip.config() != config) continue;
    if (found == nullptr || chip.compatible == compatible) found = &chip;
  }
  return found;
}

const ChipRow* find_configuration(const PayloadConfig& config) {
  const auto found = std::ranges::find_if(kChips, [&](const ChipRow& chip) { return chip.has(config); });
  return found == kChips.end() ? nullptr : &*found;
}

}  // namespace skillet::ethosu::hw
