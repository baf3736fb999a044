// The quirks of quirks.def, as the set that a simulated chip has.
// Called by ethosu.cpp (selects them) and by code that a quirk changes: the stream and its operations.
// Must not know: what a quirk does.
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <span>
#include <string_view>

#include "sim/sim.h"

namespace skillet::sim::ethosu {

enum class QuirkName : uint8_t {
#define QUIRK(name, assumption, what) name,
#include "npus/ethosu/sim/quirks.def"
#undef QUIRK
  count
};
inline constexpr std::array kQuirks = {
#define QUIRK(name, assumption, what) Quirk{#name, #assumption, what},
#include "npus/ethosu/sim/quirks.def"
#undef QUIRK
};

class QuirkSet {
 public:
  QuirkSet() = default;
  // Unknown names are ignored.
  explicit QuirkSet(std::span<const std::string_view> names) {
    for (size_t i = 0; i < kQuirks.size(); ++i) set_.set(i, std::ranges::count(names, kQuirks[i].name) != 0);
  }
  bool has(QuirkName name) const { return set_.test(static_cast<size_t>(name)); }
  // A timeout, as of a job that never ends, if `is_such` and the chip has the quirk.
  Result<void> hang_if(QuirkName name, bool is_such) const {
    if (!is_such || !has(name)) return {};
    return error(ErrorCode::timeout, "{} (a quirk of this chip)", kQuirks[static_cast<size_t>(name)].what);
  }

 private:
  std::bitset<static_cast<size_t>(QuirkName::count)> set_;
};

}  // namespace skillet::sim::ethosu
