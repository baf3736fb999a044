// The set of quirks of quirks.def that a simulated chip has.
// Called by vivante.cpp (chooses) and by the code that a quirk changes: job_quirks.cpp, front end and units.
// Must not know: what a quirk does.
#pragma once

#include <bitset>
#include <cstdint>
#include <span>
#include <string_view>

namespace skillet::sim::vivante {

enum class QuirkName : uint8_t {
#define QUIRK(name, assumption, chips, what) name,
#include "npus/vivante/sim/quirks.def"
#undef QUIRK
  count
};

class QuirkSet {
 public:
  QuirkSet() = default;
  // Unknown names are left out.
  explicit QuirkSet(std::span<const std::string_view> names);
  bool has(QuirkName name) const { return set_.test(static_cast<size_t>(name)); }
  bool any() const { return set_.any(); }

 private:
  std::bitset<static_cast<size_t>(QuirkName::count)> set_;
};

}  // namespace skillet::sim::vivante
