#include "npus/vivante/sim/quirks.h"

#include <algorithm>
#include <array>

#include "npus/vivante/hw/vivante.h"
#include "npus/vivante/sim/vivante.h"
#include "sim/sim.h"

namespace skillet::sim::vivante {
namespace {

namespace hw = ::skillet::vivante::hw;

// Column "chips" of quirks.def.
namespace chips {
constexpr uint32_t kVip9000 = 0x9000;
bool any(const hw::ChipRow&) { return true; }
bool v7(const hw::ChipRow& chip) { return chip.generation == 7; }
bool v8(const hw::ChipRow& chip) { return chip.generation == 8; }
bool enhanced_v7(const hw::ChipRow& chip) { return v7(chip) && chip.has(hw::kCoefficientEnhancement); }
bool assumed(const hw::ChipRow& chip) { return !chip.assumption.empty(); }
bool vip9000(const hw::ChipRow& chip) { return chip.ids.model == kVip9000; }
bool native_depthwise(const hw::ChipRow& chip) { return chip.has(hw::kDepthwise); }
}  // namespace chips

struct Row {
  Quirk quirk;
  bool (*is_of)(const hw::ChipRow&);
};
constexpr std::array kRows = {
#define QUIRK(name, assumption, chips_that_can, what) Row{{#name, #assumption, what}, chips::chips_that_can},
#include "npus/vivante/sim/quirks.def"
#undef QUIRK
};

}  // namespace

QuirkSet::QuirkSet(std::span<const std::string_view> names) {
  for (size_t i = 0; i < kRows.size(); ++i) set_.set(i, std::ranges::count(names, kRows[i].quirk.name) != 0);
}

std::vector<Quirk> quirks(std::string_view chip) {
  std::vector<Quirk> out;
  const hw::ChipRow* const found = hw::find_chip(chip);
  for (const Row& row : kRows) {
    if (found != nullptr && row.is_of(*found)) out.push_back(row.quirk);
  }
  return out;
}

}  // namespace skillet::sim::vivante
