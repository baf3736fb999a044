#include "npus/toy/hw/toy.h"

#include <algorithm>
#include <array>

namespace skillet::toy::hw {

using namespace ::skillet::bits;  // NOLINT: the rows name codecs and places

#define SK_BITS_TYPE Command
#define SK_BITS_NAME "command"
#define SK_BITS_FILE "npus/toy/hw/command.def"
#include "bits/define.h"

#define SK_BITS_TYPE Descriptor
#define SK_BITS_NAME "descriptor"
#define SK_BITS_FILE "npus/toy/hw/descriptor.def"
#include "bits/define.h"

namespace {

constexpr std::array kChips = {
#define CHIP(name, title, model, tensor_bytes_max) ChipRow{#name, title, model, tensor_bytes_max},
#include "npus/toy/hw/chips.def"
#undef CHIP
};

}  // namespace

std::span<const ChipRow> chips() { return kChips; }

const ChipRow* find_chip(std::string_view name) {
  const auto found = std::ranges::find(kChips, name, &ChipRow::name);
  return found == kChips.end() ? nullptr : &*found;
}

}  // namespace skillet::toy::hw
