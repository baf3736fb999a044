#include "drivers/rockchip/tuning.h"

#include <array>

#include "driver/tuning_rows.h"

namespace skillet::drivers::rockchip {
namespace {

using driver::TuningResults;

constexpr std::array kSwitches = {
#define PROVEN(name, results, reason) \
  driver::TuningSwitch{#name, driver::Tuning::proven, TuningResults::results == TuningResults::other, reason},
#define SWITCH(name, reason) driver::TuningSwitch{#name, driver::Tuning::tuned, false, reason},
#define TRIAL(name, reason) driver::TuningSwitch{#name, std::nullopt, false, reason},
#include "drivers/rockchip/tuning.def"
#undef PROVEN
#undef SWITCH
#undef TRIAL
};

constexpr std::array<bool Tuning::*, kSwitches.size()> kMembers = {
#define PROVEN(name, results, reason) &Tuning::name,
#define SWITCH(name, reason) &Tuning::name,
#define TRIAL(name, reason) &Tuning::name,
#include "drivers/rockchip/tuning.def"
#undef PROVEN
#undef SWITCH
#undef TRIAL
};

}  // namespace

std::span<const driver::TuningSwitch> tuning_switches() { return kSwitches; }

Result<Tuning> tuning_of(const driver::CompileOptions& options) {
  return driver::tuning_from<Tuning>(kSwitches, kMembers, options);
}

}  // namespace skillet::drivers::rockchip
