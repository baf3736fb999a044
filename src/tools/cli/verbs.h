// Verbs of the `skillet` command: each registers its options and help, and runs when chosen.
// Called by main.cpp; one file per verb.
// Must not know: each other.
#pragma once

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

#define VERB(name, ...) void add_##name(CommandLine& app, Outcome& outcome);
#include "tools/cli/verbs.def"
#undef VERB

}  // namespace skillet::tools
