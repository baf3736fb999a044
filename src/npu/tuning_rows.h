// Converts a driver's tuning switches to a struct of bools: rows of a .def file, turned on by the options.
// Called by npus/<v>/compiler/tuning.cpp.
// Must not know: any switch.
//
// The .def file has
//   PROVEN(name, results, reason)  in proven: the recorded driver's choice is a fault, or has no evidence on
//                                  silicon. results: same, or other if jobs without it may compute other results
//   SWITCH(name, reason)           in tuned: better than recorded, by our own measure
//   TRIAL(name, reason)            in no tuning: not known to work on any silicon
// and its includer defines them as fields, rows and members.
#pragma once

#include "base/result.h"
#include "npu/driver.h"

namespace skillet::npu {

// The chosen value; 0: none was chosen.
int32_t choice_of(std::span<const Choice> choices, ir::OpId op, std::string_view name);
// The error names a choice whose switch is off or unknown.
Result<void> check_choices(std::span<const TuningSwitch> rows, const std::vector<bool>& on,
                           std::span<const Choice> choices);

enum class TuningResults : uint8_t { same, other };

// By row: true if the options turn it on, by their tuning or by name. The error names an unknown switch and the known
// ones, or one that unproven=refuse forbids.
Result<std::vector<bool>> switches_on(std::span<const TuningSwitch> rows, const CompileOptions& options);

// `T` has a bool for each row, `members` in the order of `rows`.
template <typename T>
Result<T> tuning_from(std::span<const TuningSwitch> rows, std::span<bool T::*const> members,
                      const CompileOptions& options) {
  SK_TRY_ASSIGN(const std::vector<bool> on, switches_on(rows, options));
  SK_TRY(check_choices(rows, on, options.choices));
  T tuning;
  tuning.choices = options.choices;
  for (size_t i = 0; i < rows.size(); ++i) tuning.*members[i] = on[i];
  return tuning;
}

}  // namespace skillet::npu
