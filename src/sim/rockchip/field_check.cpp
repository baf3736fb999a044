#include "sim/rockchip/field_check.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "drivers/rockchip/hw/rockchip.h"
#include "sim/rockchip/fault.h"

namespace skillet::sim::rockchip {
namespace {

namespace hw = ::skillet::rockchip::hw;

struct FieldKey {
  uint32_t address;
  size_t member_offset;
  bool operator==(const FieldKey&) const = default;
};
struct Limit {
  FieldKey field;
  uint64_t value;
  const char* reason;
};

constexpr std::array kIgnored = {
#define IGNORED(type, field, reason) FieldKey{hw::type::kAddress, offsetof(hw::type, field)},
#include "sim/rockchip/ignored.def"
#undef IGNORED
};

constexpr std::array kLimits = {
#define ONLY(type, field, value, reason) \
  Limit{{hw::type::kAddress, offsetof(hw::type, field)}, static_cast<uint64_t>(value), reason},
#include "sim/rockchip/limits.def"
#undef ONLY
};

Result<void> check_field(const bits::Descriptor& descriptor, const bits::Row& row, uint32_t word) {
  const FieldKey key{descriptor.address, row.member_offset};
  const bits::Value value = bits::read_field(row, {&word, 1});
  const auto limit =
      std::find_if(kLimits.begin(), kLimits.end(), [&](const Limit& entry) { return entry.field == key; });
  const auto refuse = [&](const char* reason) {
    return not_modelled("{}.{} = {}: {}", descriptor.name, row.name, bits::print_value(row, value), reason);
  };
  if (limit != kLimits.end() && limit->value != value.integer) return refuse(limit->reason);
  const bool named = row.kind != bits::ValueKind::enumeration || row.names.find(value.integer) != nullptr;
  if (!named && value.integer != 0) return refuse("a value without a meaning");
  return {};
}

}  // namespace

bool is_ignored(const bits::Descriptor& descriptor, const bits::Row& row) {
  const FieldKey key{descriptor.address, row.member_offset};
  return std::find(kIgnored.begin(), kIgnored.end(), key) != kIgnored.end();
}

Result<void> check_fields(const bits::Descriptor& descriptor, uint32_t value) {
  for (const bits::Row& row : descriptor.rows) {
    if (!is_ignored(descriptor, row)) SK_TRY(check_field(descriptor, row, value));
  }
  if (const uint32_t unknown = bits::unclaimed_bits(descriptor, 0, value); unknown != 0)
    return not_modelled("{}: no field claims the bits 0x{:08x}", descriptor.name, unknown);
  return {};
}

}  // namespace skillet::sim::rockchip
