#include "npus/vivante/sim/field_check.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "npus/vivante/hw/vivante.h"

namespace skillet::sim::vivante {
namespace {

namespace hw = ::skillet::vivante::hw;

enum class Kind : uint8_t { modelled, constant, ignored };
struct Treatment {
  std::string_view descriptor, field;
  Kind kind;
  uint64_t value;
  uint32_t needs = 0;  // flags of the chip; a field of a missing feature must be 0
};

constexpr std::array kTreatments = {
#define MODELLED(descriptor, field) Treatment{#descriptor, #field, Kind::modelled, 0},
#define CONSTANT(descriptor, field, value) Treatment{#descriptor, #field, Kind::constant, value},
#define MODELLED_WITH(flag, descriptor, field) Treatment{#descriptor, #field, Kind::modelled, 0, hw::flag},
#define CONSTANT_WITH(flag, descriptor, field, value) Treatment{#descriptor, #field, Kind::constant, value, hw::flag},
#include "npus/vivante/sim/modelled.def"
#undef MODELLED
#undef CONSTANT
#undef MODELLED_WITH
#undef CONSTANT_WITH
#define IGNORED(descriptor, field, reason) Treatment{#descriptor, #field, Kind::ignored, 0},
#define IGNORED_WITH(flag, descriptor, field, reason) Treatment{#descriptor, #field, Kind::ignored, 0, hw::flag},
#include "npus/vivante/sim/ignored.def"
#undef IGNORED
#undef IGNORED_WITH
};

bool allowed(std::string_view descriptor, std::string_view field, uint64_t value, uint32_t chip_flags) {
  bool listed = false;
  for (const Treatment& row : kTreatments) {
    if (row.field != field || row.descriptor != descriptor || (row.needs & ~chip_flags) != 0) continue;
    if (row.kind != Kind::constant || row.value == value) return true;
    listed = true;
  }
  return !listed && value == 0;
}

}  // namespace

Result<std::vector<uint32_t>> descriptor_words(const Memory& memory, uint64_t address, uint32_t count,
                                               std::string_view name) {
  SK_TRY_ASSIGN(const std::span<uint8_t> bytes, memory.at(address, uint64_t{count} * 4, name));
  std::vector<uint32_t> words(count);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

Result<void> check_fields(const bits::Descriptor& descriptor, const bits::Unpacked& unpacked, uint32_t chip_flags) {
  for (size_t i = 0; i < descriptor.rows.size(); ++i) {
    const bits::Row& row = descriptor.rows[i];
    if (!allowed(descriptor.name, row.name, unpacked.values[i].integer, chip_flags))
      return error(ErrorCode::device, "{}.{} = {}: this value is not modelled ({})", descriptor.name, row.name,
                   bits::print_value(row, unpacked.values[i]), row.doc);
  }
  for (size_t word = 0; word < unpacked.unclaimed.size(); ++word) {
    if (unpacked.unclaimed[word] != 0)
      return error(ErrorCode::device, "{}: word {} has bits 0x{:08x} set that no field claims", descriptor.name, word,
                   unpacked.unclaimed[word]);
  }
  return {};
}

}  // namespace skillet::sim::vivante
