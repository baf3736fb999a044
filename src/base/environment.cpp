#include "base/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.h"

namespace skillet {

const char* environment_variable(const char* name) {
  const char* const value = ::secure_getenv(name);
  return value == nullptr || *value == '\0' ? nullptr : value;
}

std::vector<std::string> misspelt_variables(const char* const* environment) {
  constexpr std::string_view kStart = "SKIL", kPrefix = "SKILLET_";  // letters may be missing after this
  std::vector<std::string_view> ends(kEnvironment.begin(), kEnvironment.end());
  for (std::string_view& name : ends) name.remove_prefix(kPrefix.size());
  std::vector<std::string> out;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (!name.starts_with(kStart) || std::ranges::count(kEnvironment, name) != 0) continue;
    const std::string_view meant =
        name.starts_with(kPrefix) ? nearest(name.substr(kPrefix.size()), ends) : nearest(name, kEnvironment);
    if (meant.empty()) continue;
    out.push_back(fmt::format("{}: there is no such variable; did you mean '{}{}'?", name,
                              name.starts_with(kPrefix) ? kPrefix : "", meant));
  }
  return out;
}

}  // namespace skillet
