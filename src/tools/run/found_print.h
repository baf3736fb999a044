// Prints results of a network, as a table for people and as JSON.
// Called by run_print.cpp and the verbs that show results.
// Must not know: how results are found.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/run/found.h"

namespace skillet::tools {

// Empty for classes: the table of their output shows them.
std::string print_found(const Found& found);
nlohmann::json found_json(const Found& found);
// A short text: "person (0.87), dog (0.55)".
std::string summary(const Found& found);

}  // namespace skillet::tools
