// Declares Tuning, tuning_switches() and tuning_of() of one driver, in the namespace around the #include.
// SK_TUNING_FILE is the name of its .def file, whose rows npu/tuning_rows.h explains; SK_TUNING_MEMBERS, if defined,
// adds members. Included by each driver: no include guard. Called by npus/<v>/compiler/tuning.h. Must not know: any
// switch.

// All switches off: as recorded.
struct Tuning {
#define PROVEN(name, results, reason) bool name = false;
#define SWITCH(name, reason) bool name = false;
#define TRIAL(name, reason) bool name = false;
#include SK_TUNING_FILE
#undef PROVEN
#undef SWITCH
#undef TRIAL
  std::vector<npu::Choice> choices;
#ifdef SK_TUNING_MEMBERS
  SK_TUNING_MEMBERS
#undef SK_TUNING_MEMBERS
#endif

  int32_t choice(ir::OpId op, std::string_view name) const { return npu::choice_of(choices, op, name); }
};
std::span<const npu::TuningSwitch> tuning_switches();
// The switches that the options turn on: those of the tuning, and those in CompileOptions::switches. The error names an
// unknown switch and the known ones.
Result<Tuning> tuning_of(const npu::CompileOptions& options);
#undef SK_TUNING_FILE
