#include "npus/rockchip/sim/field_check.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <vector>

#include "base/leaked.h"
#include "npus/rockchip/hw/rockchip.h"
#include "npus/rockchip/sim/fault.h"

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
#include "npus/rockchip/sim/ignored.def"
#undef IGNORED
};

constexpr std::array kLimits = {
#define ONLY(type, field, value, reason) \
  Limit{{hw::type::kAddress, offsetof(hw::type, field)}, static_cast<uint64_t>(value), reason},
#include "npus/rockchip/sim/limits.def"
#undef ONLY
};

// Checked fields of a register: those with a limit or with named values.
struct FieldToCheck {
  const bits::Row* row;
  const Limit* limit;  // null: none
};
using RegisterToCheck = std::vector<FieldToCheck>;

// Rows of limits.def and ignored.def refer to the first register set.
bool is_first_set(const bits::Descriptor& descriptor) {
  const bits::Descriptor* const one = hw::registers().find(descriptor.address);
  return one != nullptr && one->rows.data() == descriptor.rows.data();
}

RegisterToCheck to_check(const bits::Descriptor& descriptor) {
  RegisterToCheck out;
  for (const bits::Row& row : descriptor.rows) {
    const bool listed = is_first_set(descriptor);
    if (listed && is_ignored(descriptor, row)) continue;
    const FieldKey key{descriptor.address, row.member_offset};
    const auto* const limit = std::find_if(kLimits.data(), kLimits.data() + kLimits.size(),
                                           [&](const Limit& entry) { return entry.field == key; });
    const bool has_limit = listed && limit != kLimits.data() + kLimits.size();
    if (has_limit || row.kind == bits::ValueKind::enumeration) out.push_back({&row, has_limit ? limit : nullptr});
  }
  return out;
}

std::vector<RegisterToCheck> all_of(const bits::RegisterSet& set) {
  std::vector<RegisterToCheck> all;
  for (const bits::Descriptor& descriptor : set.registers) all.push_back(to_check(descriptor));
  return all;
}

// By index in the register set. The rows of limits.def are for the first set. In another set, fields without names have
// no limit here; the code that reads them checks them.
const std::vector<RegisterToCheck>& all_to_check(const bits::RegisterSet& set) {
  const auto& kFirst = leaked([] { return std::vector<RegisterToCheck>(all_of(hw::registers())); });
  if (set.registers.data() == hw::registers().registers.data()) return kFirst;
  const auto& kOthers = leaked([] {
    std::map<const bits::Descriptor*, std::vector<RegisterToCheck>> others;
    for (const hw::ChipRow& chip : hw::chips()) {
      const bits::RegisterSet& one = hw::registers_of(chip);
      if (chip.has_registers()) others.emplace(one.registers.data(), all_of(one));
    }
    return others;
  });
  return kOthers.at(set.registers.data());
}

Result<void> check_field(const bits::Descriptor& descriptor, const FieldToCheck& field, uint32_t word) {
  const bits::Row& row = *field.row;
  const bits::Value value = bits::read_field(row, {&word, 1});
  const auto refuse = [&](const char* reason) {
    return not_modelled("{}.{} = {}: {}", descriptor.name, row.name, bits::print_value(row, value), reason);
  };
  if (field.limit != nullptr && field.limit->value != value.integer) return refuse(field.limit->reason);
  const bool named = row.kind != bits::ValueKind::enumeration || row.names.find(value.integer) != nullptr;
  if (!named && value.integer != 0) return refuse("a value without a meaning");
  return {};
}

}  // namespace

bool is_ignored(const bits::Descriptor& descriptor, const bits::Row& row) {
  const FieldKey key{descriptor.address, row.member_offset};
  return std::find(kIgnored.begin(), kIgnored.end(), key) != kIgnored.end();
}

Result<void> check_fields(const bits::RegisterSet& set, const bits::Descriptor& descriptor, uint32_t value) {
  for (const FieldToCheck& field : all_to_check(set)[set.index(descriptor)])
    SK_TRY(check_field(descriptor, field, value));
  if (const uint32_t unknown = value & set.unclaimed(descriptor); unknown != 0)
    return not_modelled("{}: no field claims the bits 0x{:08x}", descriptor.name, unknown);
  return {};
}

}  // namespace skillet::sim::rockchip
