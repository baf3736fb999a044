// Arm Ethos-U55 and U65: commands, chips, and the header of what Vela makes, as rows and structs. No logic.
// Called by npus/ethosu/compiler (reads programs of others), npus/ethosu/sim (runs streams), its emulated kernel
// driver. Must not know: how a driver or simulator uses them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "bits/bits.h"

namespace skillet::ethosu::hw {

using bits::Address;
using bits::Blob;

#define SK_BITS_FILE "npus/ethosu/hw/enums.def"
#include "bits/declare_enums.h"

#define SK_BITS_WORDS 2
#define SK_BITS_FILE "npus/ethosu/hw/commands.def"
#include "bits/declare_set.h"

#define SK_BITS_TYPE Launch
#define SK_BITS_WORDS 11
#define SK_BITS_FILE "npus/ethosu/hw/launch.def"
#include "bits/declare.h"

#define SK_BITS_TYPE PayloadConfig
#define SK_BITS_WORDS 3
#define SK_BITS_FILE "npus/ethosu/hw/payload.def"
#include "bits/declare.h"

constexpr uint32_t kRegions = 8;
// Of Launch: the base of region n.
constexpr Address Launch::*kRegionBases[kRegions] = {&Launch::region0, &Launch::region1, &Launch::region2,
                                                     &Launch::region3, &Launch::region4, &Launch::region5,
                                                     &Launch::region6, &Launch::region7};

constexpr uint64_t kStatusBytes = 8;            // two registers
constexpr uint32_t kStatusEndReached = 1 << 5;  // of STATUS

// Code of a command: bits 9:0 and 15:14 of its first word.
constexpr uint32_t kCodeMask = 0xC3FF, kReservedMask = 0x3C00, kLongCommand = 0x4000;
constexpr uint32_t code_of(uint32_t word) { return word & kCodeMask; }
constexpr uint32_t words_of_code(uint32_t code) { return (code & kLongCommand) != 0 ? 2 : 1; }
constexpr uint32_t kFirstRegister = 0x100;  // codes below start something, or wait
constexpr bool starts(uint32_t code) { return code < kFirstRegister; }

const bits::RegisterSet& commands();
// Null: no such command.
const bits::Descriptor* find_command(uint32_t code);

// The payload of an operation that Vela made is a list of words: this one, then actions, each a word whose low byte
// says what it is.
constexpr uint32_t kPayloadMark = 0x31504F43;  // "COP1"
enum class Action : uint8_t { config = 1, stream = 2, nop = 5 };

struct ChipRow {
  std::string_view name, title, accelerator;
  ConfigProduct product;
  uint32_t macs, shram_kbytes, table_address, table_kbytes, ublock_depth, cores, transfers;

  // How it shows behind the kernel driver that it borrows: made up, one for each row.
  uint32_t model() const;
};
std::span<const ChipRow> chips();
const ChipRow* find_chip(std::string_view name);
// The first chip of that configuration; null: it is of no chip.
const ChipRow* find_configuration(const PayloadConfig& config);

}  // namespace skillet::ethosu::hw
