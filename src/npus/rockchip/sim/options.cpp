#include "npus/rockchip/sim/options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "base/environment.h"
#include "base/leaked.h"

namespace skillet::sim::rockchip {

std::span<const OptionRow> option_rows() {
  const auto& kRows = leaked([] {
    return std::vector<OptionRow>{
#define ROW(member, variable, what, ...)                                                                  \
  {#member,                                                                                               \
   variable,                                                                                              \
   what,                                                                                                  \
   {__VA_ARGS__},                                                                                         \
   [](Options& options, size_t value) { options.member = static_cast<decltype(options.member)>(value); }, \
   [](const Options& options) { return static_cast<size_t>(options.member); }},
#define OPTION(member, type, variable, value, what, ...) ROW(member, variable, what, __VA_ARGS__)
#define RULE(member, variable, value, what) ROW(member, variable, what, "off", "warn", "fault")
#include "npus/rockchip/sim/options.def"
#undef OPTION
#undef RULE
#undef ROW
    };
  });
  return kRows;
}

Options options_without_rules() {
  Options options;
#define OPTION(member, type, variable, value, what, ...)
#define RULE(member, variable, value, what) options.member = Enforce::off;
#include "npus/rockchip/sim/options.def"
#undef OPTION
#undef RULE
  return options;
}

Result<Options> options_from_environment() {
  Options options;
  for (const OptionRow& row : option_rows()) {
    const char* const text = environment_variable(row.variable);
    if (text == nullptr || *text == '\0') continue;
    const auto found = std::ranges::find(row.names, text);
    if (found == row.names.end())
      return error(ErrorCode::malformed, "{}={}: must be one of {}", row.variable, text, fmt::join(row.names, ", "));
    row.set(options, static_cast<size_t>(found - row.names.begin()));
  }
  return options;
}

}  // namespace skillet::sim::rockchip
