#include "driver/tuning_rows.h"

#include <fmt/ranges.h>

namespace skillet::driver {
namespace {

Error unknown_switch(std::span<const TuningSwitch> rows, std::string_view name) {
  std::vector<std::string_view> known;
  for (const TuningSwitch& row : rows) known.push_back(row.name);
  return error(ErrorCode::invalid_argument, "no tuning switch '{}'; there are {}", name, fmt::join(known, ", "));
}

}  // namespace

Result<std::vector<bool>> switches_on(std::span<const TuningSwitch> rows, const CompileOptions& options) {
  std::vector<bool> on;
  for (const TuningSwitch& row : rows) on.push_back(row.since && options.tuning >= *row.since);
  for (const std::string& name : options.switches) {
    const auto found = std::ranges::find(rows, name, &TuningSwitch::name);
    if (found == rows.end()) return unknown_switch(rows, name);
    if (!found->since && !options.allow_unproven)
      return error(ErrorCode::unsupported,
                   "tuning switch '{}' is not known to work on silicon: it needs allow_unproven", name);
    on[static_cast<size_t>(found - rows.begin())] = true;
  }
  return on;
}

}  // namespace skillet::driver
