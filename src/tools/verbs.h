// The verbs of the `skillet` command: each registers its options and help, and runs when it is chosen.
// Called by main.cpp; one file per verb.
// Must not know: each other.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.h"

namespace skillet::tools {

// What main() returns: 0 fine, 1 failed, 2 bad usage.
struct Outcome {
  int exit_code = 0;

  // Prints the error of a verb, "skillet: ...", and remembers it.
  void finish(const Result<void>& result);
};

void add_run(CLI::App& app, Outcome& outcome);
void add_check(CLI::App& app, Outcome& outcome);
void add_compile(CLI::App& app, Outcome& outcome);
void add_decode(CLI::App& app, Outcome& outcome);
void add_diff(CLI::App& app, Outcome& outcome);
void add_devices(CLI::App& app, Outcome& outcome);
void add_doctor(CLI::App& app, Outcome& outcome);
void add_virtual(CLI::App& app, Outcome& outcome);
void add_capture(CLI::App& app, Outcome& outcome);

}  // namespace skillet::tools
