// Verbs of the `skillet` command: each registers its options and help, and runs when chosen.
// Called by main.cpp; one file per verb.
// Must not know: each other.
#pragma once

#include <string>

#include "base/result.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_codes.h"
#include "tools/show/output.h"

namespace skillet::tools {

// Result of a verb: the exit code of main() (exit_codes.h).
struct Outcome {
  int exit_code = kFine;
  // Exit code for errors and exceptions: kCannotBegin until all options and files are known to be usable.
  int code_of_errors = kCannotBegin;

  // Call when the inputs are checked: later errors count as failures of the work itself.
  void begin() { code_of_errors = kFailed; }
  // Like begin(), after a session was made. Not if the model cannot run at all, or if its tuning file does not fit:
  // these errors count as wrong input.
  template <typename T>
  void begin_with(const Result<T>& session) {
    const bool is_unusable = !session.ok() && (session.error().code == ErrorCode::unsupported ||
                                               session.error().code == ErrorCode::invalid_argument);
    if (!is_unusable) begin();
  }
  // Reports the error of a verb and sets the exit code.
  void finish(const Result<void>& result) {
    if (!result.ok()) finish(result.error());
  }
  void finish(const Error& error) {
    complain(error.message);
    exit_code = code_of_errors;
  }
};

void add_run(CommandLine& app, Outcome& outcome);
void add_tune(CommandLine& app, Outcome& outcome);
void add_bench(CommandLine& app, Outcome& outcome);
void add_check(CommandLine& app, Outcome& outcome);
void add_fix(CommandLine& app, Outcome& outcome);
void add_quantize(CommandLine& app, Outcome& outcome);
void add_plan(CommandLine& app, Outcome& outcome);
void add_eval(CommandLine& app, Outcome& outcome);
void add_compile(CommandLine& app, Outcome& outcome);
void add_decode(CommandLine& app, Outcome& outcome);
void add_inspect(CommandLine& app, Outcome& outcome);
void add_edit(CommandLine& app, Outcome& outcome);
void add_diff(CommandLine& app, Outcome& outcome);
void add_lookup(CommandLine& app, Outcome& outcome);
void add_replay(CommandLine& app, Outcome& outcome);
void add_devices(CommandLine& app, Outcome& outcome);
void add_doctor(CommandLine& app, Outcome& outcome);
void add_virtual(CommandLine& app, Outcome& outcome);
void add_capture(CommandLine& app, Outcome& outcome);
void add_bug(CommandLine& app, Outcome& outcome);
void add_cdi(CommandLine& app, Outcome& outcome);
void add_top(CommandLine& app, Outcome& outcome);
void add_trust(CommandLine& app, Outcome& outcome);
void add_prove(CommandLine& app, Outcome& outcome);

}  // namespace skillet::tools
