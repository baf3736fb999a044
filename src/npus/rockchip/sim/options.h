// Named switches of the simulator: open questions of the hardware specification (its section 11), its rules for
// programs, and limits. Each has a row of options.def, and an environment variable.
// Called by the code that creates an Npu.
// Must not know: registers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "npus/rockchip/sim/arithmetic.h"

namespace skillet::sim::rockchip {

// Domain of pad bytes when packed pixels go through the input converter (question 9).
enum class PackedPad : uint8_t { converted, stored };

// Tie rule of the accumulator's shift (question 2).
enum class TruncateTie : uint8_t { by_register, half_up, floor };

// What happens when a program breaks a rule: nothing, a warning the first time, or an error.
enum class Enforce : uint8_t { off, warn, fault };

// When the writes of a job's tasks reach memory: at once; when the job ends; at once, but a task that reads them hangs.
enum class Writes : uint8_t { at_once, late, hang };

struct QuirkRow;

struct Options {
#define OPTION(member, type, variable, value, what, ...) type member = value;
#define RULE(member, variable, value, what) Enforce member = Enforce::value;
#include "npus/rockchip/sim/options.def"
#undef OPTION
#undef RULE
  bool reference_only = false;  // plain loops only; for tests
  // A task above these limits is a fault: hostile registers must not keep the simulator busy for hours.
  uint64_t max_macs_per_task = uint64_t{1} << 40;
  uint64_t max_elements_per_task = uint64_t{1} << 28;
  double max_job_ms = 500;  // for the rule job_time: the kernel's limit
  // Members that quirks.def and quirks_3576.def set.
  Writes writes = Writes::at_once;
  bool forgets_tables = false;         // with each task that the kernel starts
  bool loses_groups = false;           // the last kernels, if a program has too many weights
  bool loses_weights_at_once = false;  // when a job begins while another core has one
  bool wide_output_poisons = false;    // all later tasks write nothing
  std::vector<const QuirkRow*> quirks;
};

// The rows of options.def.
struct OptionRow {
  const char* member;
  const char* variable;
  const char* what;
  std::vector<std::string_view> names;  // by value
  void (*set)(Options& options, size_t value);
  size_t (*get)(const Options& options);
};
std::span<const OptionRow> option_rows();

// Defaults, with all rules off: for code that reads jobs without running them.
Options options_without_rules();
// Defaults, changed by environment variables. Error: a value that is not one of the names.
Result<Options> options_from_environment();

}  // namespace skillet::sim::rockchip
