// The rules of rules.def; each can be made a warning.
// Called by order.cpp and nn_checks.cpp if a stream breaks one; set by vivante.cpp from the environment.
// Must not know: streams, descriptors.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/result.h"

namespace skillet::sim::vivante {

enum class Rule : uint8_t {
#define RULE(name, text, source) name,
#include "npus/vivante/sim/rules.def"
#undef RULE
};

inline constexpr auto kRuleNames = std::to_array<std::string_view>({
#define RULE(name, text, source) #name,
#include "npus/vivante/sim/rules.def"
#undef RULE
});

// The rules that only warn.
class Leniency {
 public:
  void warn_of(Rule rule) { warned_.set(static_cast<size_t>(rule)); }
  bool warns_of(Rule rule) const { return warned_.test(static_cast<size_t>(rule)); }

  // Reports a broken rule: an error, or a warning.
  template <typename... Args>
  Result<void> broken(Rule rule, fmt::format_string<Args...> format, Args&&... args) const {
    const std::string text = fmt::format("{} (rule {})", fmt::format(format, std::forward<Args>(args)...),
                                         kRuleNames[static_cast<size_t>(rule)]);
    if (!warns_of(rule)) return error(ErrorCode::device, "{}", text);
    log::warning("simulated Vivante: {}", text);
    return {};
  }

 private:
  std::bitset<kRuleNames.size()> warned_;
};

}  // namespace skillet::sim::vivante
