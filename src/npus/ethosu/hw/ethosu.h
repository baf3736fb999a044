// Arm Ethos-U55, U65 and U85: commands, chips, and the header of what Vela makes, as rows and structs. No logic.
// Called by npus/ethosu/compiler (reads programs of others), npus/ethosu/sim (runs streams), its emulated kernel
// driver. Must not know: how a driver or simulator uses them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "bits/bits.h"

namespace skillet::ethosu::hw {

#define SK_BITS_FILE "npus/ethosu/hw/enums.def"
#include "bits/declare_enums.h"

#define SK_BITS_WORDS 2
#define SK_BITS_FILE "npus/ethosu/hw/commands.def"
#include "bits/declare_set.h"

#define SK_BITS_TYPE PayloadConfig
#define SK_BITS_WORDS 3
#define SK_BITS_FILE "npus/ethosu/hw/payload.def"
#include "bits/declare.h"

constexpr uint32_t kRegions = 8;  // buffers that addresses are offsets into
// Where captures have the buffer of a region: commands have offsets alone.
constexpr uint64_t region_address(size_t region) { return uint64_t{region + 1} << 36; }

// Code of a command: bits 9:0 and 15:14 of its first word.
constexpr uint32_t kCodeMask = 0xC3FF, kReservedMask = 0x3C00, kLongCommand = 0x4000;
constexpr uint32_t code_of(uint32_t word) { return word & kCodeMask; }
constexpr uint32_t words_of_code(uint32_t code) { return (code & kLongCommand) != 0 ? 2 : 1; }
constexpr uint32_t kFirstRegister = 0x100;  // codes below start something, or wait
constexpr bool starts(uint32_t code) { return code_of(code) < kFirstRegister; }

// Whose commands: those of U55 and U65 are the same.
enum class Generation : uint8_t { u5x, u85 };
constexpr uint32_t kOfU85 = 0x10000;  // of the address of a row: not of U55 and U65 (commands_u85.def)

const bits::RegisterSet& commands();
// Null: no such command.
const bits::Descriptor* find_command(uint32_t code, Generation generation = Generation::u5x);
// Of a register's value among those of all commands: two rows of one code have the same.
size_t slot_of(const bits::Descriptor& command);

// The payload of an operation that Vela made is a list of words: this one, then actions, each a word whose low byte
// says what it is.
constexpr uint32_t kPayloadMark = 0x31504F43;       // "COP1"
constexpr uint32_t kNewerPayloadMark = 0x32504F43;  // "COP2", with inputs and outputs in regions of their own
enum class Action : uint8_t { config = 1, stream = 2, nop = 5 };

struct ChipRow {
  std::string_view name, title, accelerator, compatible;
  ConfigProduct product;
  uint32_t macs, shram_kbytes, table_address, table_kbytes, ublock_depth, cores, transfers, config_rest;

  Generation generation() const { return product == ConfigProduct::u85 ? Generation::u85 : Generation::u5x; }
  uint32_t config() const;  // its register CONFIG
  // Of U85 the ports of a board may be others than those that Vela compiles for.
  bool is_of(uint32_t one) const {
    constexpr uint32_t kMacsAndProduct = 0xF000000F;
    return generation() == Generation::u85 ? ((one ^ config()) & kMacsAndProduct) == 0 : one == config();
  }
  uint32_t address_bits() const { return product == ConfigProduct::u55 ? 32 : 40; }
  // A stream that was made for `config` runs there.
  bool has(const PayloadConfig& config) const {
    return product == config.product && macs == uint64_t{1} << config.macs_log2;
  }
};
// Made for the format of commands and the architecture that are known, and for no DMA unit of a vendor.
constexpr bool is_known(const PayloadConfig& config) {
  const bool is_u85 = config.product == ConfigProduct::u85;
  return config.stream_version == (is_u85 ? 1 : 0) && config.arch_major == (is_u85 ? 2 : 1) && !config.custom_dma;
}
std::span<const ChipRow> chips();
const ChipRow* find_chip(std::string_view name);
// The first chip of that configuration; null: it is of no chip.
const ChipRow* find_configuration(const PayloadConfig& config);
// The chip whose register CONFIG says so, by preference the one of that name in the device tree; null: none.
const ChipRow* find_device(uint32_t config, std::string_view compatible);

}  // namespace skillet::ethosu::hw
