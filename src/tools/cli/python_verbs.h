// Verbs that are written in Python: `skillet page ...` is `python3 -m skillet page ...`.
// Called by main.cpp before it reads the command line.
// Must not know: what these verbs do.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace skillet::tools {

// `decode` with --html is such a verb too.
inline constexpr auto kPythonVerbs = std::to_array<std::string_view>(
    {"bisect", "conformance", "dump", "fields", "page", "reduce", "results", "serve", "sweep", "trace"});

// The interpreter: SKILLET_PYTHON, else python3.
inline constexpr const char* kPythonVariable = "SKILLET_PYTHON";
std::string python();

// Replaces this process by python() if `arguments` (without the program's name) begin with such a verb; then it does
// not return. Python finds the package of this program's installation or build, else its own. None: no such verb. A
// number: the exit code, because Python could not be started.
std::optional<int> run_python_verb(std::span<char* const> arguments);

}  // namespace skillet::tools
