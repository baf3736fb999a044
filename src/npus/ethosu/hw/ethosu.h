// Arm Ethos-U55, U65 and U85: commands, chips, and the header of Vela's output, as rows and structs. No logic.
// Called by npus/ethosu/compiler (reads others' programs), npus/ethosu/sim (runs streams), the emulated kernel driver.
// Must not know: how a driver or simulator uses them.
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
// Address of a region's buffer in captures: commands only have offsets.
constexpr uint64_t region_address(size_t region) { return uint64_t{region + 1} << 36; }

// Code of a command: bits 9:0 and 15:14 of its first word.
constexpr uint32_t kCodeMask = 0xC3FF, kReservedMask = 0x3C00, kLongCommand = 0x4000;
constexpr uint32_t code_of(uint32_t word) { return word & kCodeMask; }
constexpr uint32_t words_of_code(uint32_t code) { return (code & kLongCommand) != 0 ? 2 : 1; }
constexpr uint32_t kFirstRegister = 0x100;  // codes below start something or wait
constexpr bool starts(uint32_t code) { return code_of(code) < kFirstRegister; }

// Generation of commands: U55 and U65 have the same.
enum class Generation : uint8_t { u5x, u85 };
constexpr uint32_t kOfU85 = 0x10000;  // in the address of a row: not for U55 and U65 (commands_u85.def)

const bits::RegisterSet& commands();
// Null if there is no such command.
const bits::Descriptor* find_command(uint32_t code, Generation generation = Generation::u5x);
// Index of a register's value among all commands: two rows of one code share it.
size_t slot_of(const bits::Descriptor& command);

// The payload of an operation from Vela is a list of words: this one, then actions, each a word whose low byte is the
// action's code.
constexpr uint32_t kPayloadMark = 0x31504F43;       // "COP1"
constexpr uint32_t kNewerPayloadMark = 0x32504F43;  // "COP2", with separate regions for inputs and outputs
enum class Action : uint8_t { config = 1, stream = 2, nop = 5 };

struct ChipRow {
  std::string_view name, title, accelerator, compatible;
  ConfigProduct product;
  uint32_t macs, shram_kbytes, table_address, table_kbytes, ublock_depth, cores, transfers, config_rest;

  Generation generation() const { return product == ConfigProduct::u85 ? Generation::u85 : Generation::u5x; }
  uint32_t config() const;  // its register CONFIG
  // On U85 the ports of a board may differ from those that Vela compiles for.
  bool is_of(uint32_t one) const {
    constexpr uint32_t kMacsAndProduct = 0xF000000F;
    return generation() == Generation::u85 ? ((one ^ config()) & kMacsAndProduct) == 0 : one == config();
  }
  uint32_t address_bits() const { return product == ConfigProduct::u55 ? 32 : 40; }
  // True if a stream made for `config` runs on this chip.
  bool has(const PayloadConfig& config) const {
    return product == config.product && macs == uint64_t{1} << config.macs_log2;
  }
};
// True for a known format of commands and architecture, without a vendor's DMA unit.
constexpr bool is_known(const PayloadConfig& config) {
  const bool is_u85 = config.product == ConfigProduct::u85;
  return config.stream_version == (is_u85 ? 1 : 0) && config.arch_major == (is_u85 ? 2 : 1) && !config.custom_dma;
}
std::span<const ChipRow> chips();
const ChipRow* find_chip(std::string_view name);
// The first chip with that configuration; null if there is none.
const ChipRow* find_configuration(const PayloadConfig& config);
// The chip with this value of the register CONFIG, preferably the one with that name in the device tree; null if none.
const ChipRow* find_device(uint32_t config, std::string_view compatible);

}  // namespace skillet::ethosu::hw
