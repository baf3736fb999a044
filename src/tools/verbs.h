// The verbs of the `skillet` command: each registers its options and help, and runs when it is chosen.
// Called by main.cpp; one file per verb.
// Must not know: each other.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.h"
#include "tools/exit_codes.h"
#include "tools/output.h"

namespace skillet::tools {

// What main() returns, see exit_codes.h.
struct Outcome {
  int exit_code = kFine;
  // What an error, or an exception, leaves as exit code: until all that was given is known to be usable, kCannotBegin.
  int code_of_errors = kCannotBegin;

  // From here on errors are those of the work itself.
  void begin() { code_of_errors = kFailed; }
  // Says the error of a verb, and remembers it.
  void finish(const Result<void>& result);
  void finish(const Error& error);
};

// "--top: must be a whole number from 1 to 100, not 'abc'".
CLI::Validator whole_number(uint64_t lowest, uint64_t highest);
// "--tolerance: must be a number of 0 or more, not 'nan'".
CLI::Validator number_of_0_or_more();
// Of names of files, which an unset variable of a script leaves empty.
CLI::Validator not_empty();

// --cores, as parse_cores() takes it.
void add_cores(CLI::App* verb, std::string& cores);

// --tuning-file, for whatever compiles.
void add_tuning_file(CLI::App* verb, std::string& path);

void add_run(CLI::App& app, Outcome& outcome);
void add_tune(CLI::App& app, Outcome& outcome);
void add_bench(CLI::App& app, Outcome& outcome);
void add_check(CLI::App& app, Outcome& outcome);
void add_fix(CLI::App& app, Outcome& outcome);
void add_plan(CLI::App& app, Outcome& outcome);
void add_eval(CLI::App& app, Outcome& outcome);
void add_compile(CLI::App& app, Outcome& outcome);
void add_decode(CLI::App& app, Outcome& outcome);
void add_diff(CLI::App& app, Outcome& outcome);
void add_lookup(CLI::App& app, Outcome& outcome);
void add_replay(CLI::App& app, Outcome& outcome);
void add_devices(CLI::App& app, Outcome& outcome);
void add_doctor(CLI::App& app, Outcome& outcome);
void add_virtual(CLI::App& app, Outcome& outcome);
void add_capture(CLI::App& app, Outcome& outcome);
void add_bug(CLI::App& app, Outcome& outcome);
void add_cdi(CLI::App& app, Outcome& outcome);
void add_pages(CLI::App& app, Outcome& outcome);  // of all verbs

}  // namespace skillet::tools
