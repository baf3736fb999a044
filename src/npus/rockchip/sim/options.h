// Named switches of the simulator: what the hardware specification leaves open (its section 11), the rules that it sets
// for programs, and limits. Each has a row of options.def, and a variable of the environment.
// Called by whoever creates an Npu.
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

// When memory has what the tasks of a job write: at once; when the job ends; at once, but a task that reads it hangs.
enum class Writes : uint8_t { at_once, late, hang };

struct QuirkRow;

struct Options {
#define OPTION(member, type, variable, value, what, ...) type member = value;
#define RULE(member, variable, value, what) Enforce member = Enforce::value;
#include "npus/rockchip/sim/options.def"
#undef OPTION
#undef RULE
  bool reference_only = false;  // plain loops only; for tests
  // A task above these is a fault: hostile registers must not keep the simulator busy for hours.
  uint64_t max_macs_per_task = uint64_t{1} << 40;
  uint64_t max_elements_per_task = uint64_t{1} << 28;
  double max_job_ms = 500;  // of the rule job_time: the kernel's limit
  // Of quirks.def and quirks_3576.def.
  Writes writes = Writes::at_once;
  bool forgets_tables = false;         // with each task that a kernel starts
  bool loses_groups = false;           // of kernels, the last, where a program has too many weights
  bool loses_weights_at_once = false;  // a job that begins while another core has one
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

// Defaults, with all rules off: for who reads jobs and does not run them.
Options options_without_rules();
// Defaults, changed by the variables that are set. Error: a value that has no such name.
Result<Options> options_from_environment();

}  // namespace skillet::sim::rockchip
