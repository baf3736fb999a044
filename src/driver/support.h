// Support: can the chip run this op? Yes, or no with a reason a user can act on.
// Called by drivers (answer), passes/partition and tools (ask).
// Must not know: a vendor's parameters.
#pragma once

#include <fmt/format.h>

#include <string>

namespace skillet::driver {

struct Support {
  bool ok = true;
  std::string reason;     // why not, e.g. "filter is quantized per channel; the chip has one scale per job"
  bool unproven = false;  // supported, but no known driver ever ran this on silicon; `reason` says what

  static Support yes() { return {}; }
  static Support yes_unproven(std::string reason) { return {true, std::move(reason), true}; }
  template <typename... Args>
  static Support no(fmt::format_string<Args...> format, Args&&... args) {
    return {false, fmt::format(format, std::forward<Args>(args)...), false};
  }
};

}  // namespace skillet::driver
