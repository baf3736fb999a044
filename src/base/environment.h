// The environment variables that mean something to any of our programs and libraries: all their names, so that a
// misspelt one does not go unnoticed.
// Called by log.cpp, once a process. A rule of tests/lint keeps the list whole.
// Must not know: what the values do.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace skillet {

inline constexpr auto kEnvironment = std::to_array<std::string_view>(
    {"SKILLET_LOG", "SKILLET_DEBUG", "SKILLET_BUG_DIR",
     // The delegate's options, some of which the command and the C interface read too.
     "SKILLET_DEVICE", "SKILLET_TUNING", "SKILLET_SWITCHES", "SKILLET_ALLOW_UNPROVEN", "SKILLET_PER_CHANNEL",
     "SKILLET_CACHE_DIR", "SKILLET_REQUIRE_NPU", "SKILLET_STRICT", "SKILLET_MAX_DELEGATED_PARTITIONS",
     "SKILLET_MIN_NODES_PER_PARTITION", "SKILLET_MIN_MACS_PER_BYTE", "SKILLET_PARTITION", "SKILLET_TIMEOUT_MS",
     "SKILLET_CORES", "SKILLET_TUNING_FILE", "SKILLET_PROFILE", "SKILLET_HELP",
     // Where Python finds the C interface.
     "SKILLET_C_LIBRARY",
     // Assumptions of simulators.
     "SKILLET_SIM_TIE_RULE", "SKILLET_SIM_1X1_ORDER", "SKILLET_SIM_COEFFICIENTS",
     // From `skillet virtual` and `skillet capture` to the preloaded libraries.
     "SKILLET_VIRTUAL_CHIP", "SKILLET_VIRTUAL_FAIL", "SKILLET_VIRTUAL_TRACE", "SKILLET_VIRTUAL_ROOT",
     "SKILLET_VIRTUAL_FAULT", "SKILLET_VIRTUAL_MISUSE", "SKILLET_VIRTUAL_RELEASE_MS", "SKILLET_CAPTURE_FILE",
     // Of the tests.
     "SKILLET_RANDOM_GRAPHS", "SKILLET_RANDOM_GRAPHS_FIRST", "SKILLET_RANDOM_BANDS", "SKILLET_PROPERTY_CASES"});

// Of `environment` (as environ has it), each variable that was probably meant to be one of these: "SKILLET_LOGG: there
// is no such variable; did you mean 'SKILLET_LOG'?"
std::vector<std::string> misspelt_variables(const char* const* environment);

}  // namespace skillet
