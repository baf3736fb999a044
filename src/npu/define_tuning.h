// Defines what npu/declare_tuning.h declares; it also has no include guard.
// Called by npus/<v>/compiler/tuning.cpp. Must not know: any switch.

namespace {

constexpr std::array kSwitches = {
#define PROVEN(name, results, reason) \
  npu::TuningSwitch{#name, npu::Tuning::proven, npu::TuningResults::results == npu::TuningResults::other, reason},
#define SWITCH(name, reason) npu::TuningSwitch{#name, npu::Tuning::tuned, false, reason},
#define TRIAL(name, reason) npu::TuningSwitch{#name, std::nullopt, false, reason},
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

std::span<const npu::TuningSwitch> tuning_switches() { return kSwitches; }

Result<Tuning> tuning_of(const npu::CompileOptions& options) {
  return npu::tuning_from<Tuning>(kSwitches, kMembers, options);
}
#undef SK_TUNING_FILE
