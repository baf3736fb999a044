#include "npu/tuning_rows.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace skillet::npu {
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
    if (!found->since && !options.takes_unproven())
      return error(ErrorCode::unsupported,
                   "tuning switch '{}' is not known to work on silicon: unproven=refuse forbids it", name);
    on[static_cast<size_t>(found - rows.begin())] = true;
  }
  return on;
}

int32_t choice_of(std::span<const Choice> choices, ir::OpId op, std::string_view name) {
  const auto found = std::ranges::find_if(choices, [&](const Choice& one) { return one.op == op && one.name == name; });
  return found == choices.end() ? 0 : found->value;
}

Result<void> check_choices(std::span<const TuningSwitch> rows, const std::vector<bool>& on,
                           std::span<const Choice> choices) {
  for (const Choice& one : choices) {
    const auto found = std::ranges::find(rows, one.name, &TuningSwitch::name);
    if (found == rows.end()) return unknown_switch(rows, one.name);
    if (!on[static_cast<size_t>(found - rows.begin())])
      return error(ErrorCode::invalid_argument, "choice '{}' of op {}: this tuning switch is off", one.name, one.op);
  }
  return {};
}

}  // namespace skillet::npu
