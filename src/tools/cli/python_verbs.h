// Verbs that are written in Python: `skillet page ...` is `python3 -m skillet page ...`.
// Called by main.cpp before it reads the command line.
// Must not know: what these verbs do.
#pragma once

#include <optional>
#include <span>

namespace skillet::tools {

// Becomes Python (SKILLET_PYTHON, else python3) if `arguments`, without the program's name, begin with such a verb, and
// does not return then. The Python package is that of this program's installation or build, else what Python finds.
// Null: no such verb. A number: the exit code, as Python could not be started.
std::optional<int> run_python_verb(std::span<char* const> arguments);

}  // namespace skillet::tools
