#include "drivers/vivante/tuning.h"

#include <fmt/ranges.h>

#include <array>

namespace skillet::drivers::vivante {
namespace {

struct SwitchRow {
  std::string_view name;
  bool Tuning::*member;
  bool trial;
};
constexpr std::array kSwitches = {
#define SWITCH(name, doc) SwitchRow{#name, &Tuning::name, false},
#define TRIAL(name, doc) SwitchRow{#name, &Tuning::name, true},
#include "drivers/vivante/tuning.def"
#undef SWITCH
#undef TRIAL
};

Error unknown_switch(std::string_view name) {
  std::vector<std::string_view> known;
  for (const SwitchRow& row : kSwitches) known.push_back(row.name);
  return error(ErrorCode::invalid_argument, "no tuning switch '{}'; there are {}", name, fmt::join(known, ", "));
}

}  // namespace

Result<Tuning> tuning_of(const driver::CompileOptions& options) {
  Tuning tuning;
  for (const SwitchRow& row : kSwitches) tuning.*row.member = options.tuning == driver::Tuning::tuned && !row.trial;
  for (const std::string& name : options.switches) {
    bool found = false;
    for (const SwitchRow& row : kSwitches) {
      if (row.name != name) continue;
      if (row.trial && !options.allow_unproven)
        return error(ErrorCode::unsupported,
                     "tuning switch '{}' is not known to work on silicon: it needs allow_unproven", name);
      found = tuning.*row.member = true;
    }
    if (!found) return unknown_switch(name);
  }
  return tuning;
}

}  // namespace skillet::drivers::vivante
