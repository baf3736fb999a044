// What driver/declare_tuning.h declares, in the same way: no include guard.
// Called by drivers/<v>/tuning.cpp. Must not know: any switch.

namespace {

constexpr std::array kSwitches = {
#define PROVEN(name, results, reason)                                                                                 \
  driver::TuningSwitch{#name, driver::Tuning::proven, driver::TuningResults::results == driver::TuningResults::other, \
                       reason},
#define SWITCH(name, reason) driver::TuningSwitch{#name, driver::Tuning::tuned, false, reason},
#define TRIAL(name, reason) driver::TuningSwitch{#name, std::nullopt, false, reason},
#include SK_TUNING_FILE
#undef PROVEN
#undef SWITCH
#undef TRIAL
};

constexpr std::array<bool Tuning::*, kSwitches.size()> kMembers = {
#define PROVEN(name, results, reason) &Tuning::name,
#define SWITCH(name, reason) &Tuning::name,
#define TRIAL(name, reason) &Tuning::name,
#include SK_TUNING_FILE
#undef PROVEN
#undef SWITCH
#undef TRIAL
};

}  // namespace

std::span<const driver::TuningSwitch> tuning_switches() { return kSwitches; }

Result<Tuning> tuning_of(const driver::CompileOptions& options) {
  return driver::tuning_from<Tuning>(kSwitches, kMembers, options);
}
#undef SK_TUNING_FILE
