// Toy NPU: descriptors and chips, as rows and structs. No logic.
// Called by npus/toy/compiler (encodes), npus/toy/sim (decodes), its emulated kernel driver (the chip's id), tests.
// Must not know: how a driver or simulator uses them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "bits/bits.h"

namespace skillet::toy::hw {

using bits::Address;
using bits::Blob;

#define SK_BITS_FILE "npus/toy/hw/enums.def"
#include "bits/declare_enums.h"

#define SK_BITS_TYPE Command
#define SK_BITS_WORDS 2
#define SK_BITS_FILE "npus/toy/hw/command.def"
#include "bits/declare.h"

#define SK_BITS_TYPE Descriptor
#define SK_BITS_WORDS 5
#define SK_BITS_FILE "npus/toy/hw/descriptor.def"
#include "bits/declare.h"

// In memory tensors are planar, and each byte is XORed with this.
constexpr uint8_t kXor = 0x80;

struct ChipRow {
  std::string_view name, title;
  uint32_t model;             // as the kernel reports it
  uint32_t tensor_bytes_max;  // largest value of a descriptor's field `bytes`
};
std::span<const ChipRow> chips();
const ChipRow* find_chip(std::string_view name);

}  // namespace skillet::toy::hw
