#include "drivers/vivante/tuning.h"

#include <fmt/ranges.h>

#include <array>

namespace skillet::drivers::vivante {
namespace {

enum class Results : uint8_t { same, other };

constexpr std::array kSwitches = {
#define PROVEN(name, results, reason) \
  driver::TuningSwitch{#name, driver::Tuning::proven, Results::results == Results::other, reason},
#define SWITCH(name, reason) driver::TuningSwitch{#name, driver::Tuning::tuned, false, reason},
#define TRIAL(name, reason) driver::TuningSwitch{#name, std::nullopt, false, reason},
#include "drivers/vivante/tuning.def"
#undef PROVEN
#undef SWITCH
#undef TRIAL
};

constexpr std::array<bool Tuning::*, kSwitches.size()> kMembers = {
#define PROVEN(name, results, reason) &Tuning::name,
#define SWITCH(name, reason) &Tuning::name,
#define TRIAL(name, reason) &Tuning::name,
#include "drivers/vivante/tuning.def"
#undef PROVEN
#undef SWITCH
#undef TRIAL
};

Error unknown_switch(std::string_view name) {
  std::vector<std::string_view> known;
  for (const driver::TuningSwitch& row : kSwitches) known.push_back(row.name);
  return error(ErrorCode::invalid_argument, "no tuning switch '{}'; there are {}", name, fmt::join(known, ", "));
}

Result<void> turn_on(std::string_view name, bool allow_unproven, Tuning& tuning) {
  for (size_t i = 0; i < kSwitches.size(); ++i) {
    if (kSwitches[i].name != name) continue;
    if (!kSwitches[i].since && !allow_unproven)
      return error(ErrorCode::unsupported,
                   "tuning switch '{}' is not known to work on silicon: it needs allow_unproven", name);
    tuning.*kMembers[i] = true;
    return {};
  }
  return unknown_switch(name);
}

}  // namespace

std::span<const driver::TuningSwitch> tuning_switches() { return kSwitches; }

Result<Tuning> tuning_of(const driver::CompileOptions& options) {
  Tuning tuning;
  for (size_t i = 0; i < kSwitches.size(); ++i)
    tuning.*kMembers[i] = kSwitches[i].since && options.tuning >= *kSwitches[i].since;
  for (const std::string& name : options.switches) SK_TRY(turn_on(name, options.allow_unproven, tuning));
  return tuning;
}

}  // namespace skillet::drivers::vivante
