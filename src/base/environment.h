// The environment: reading of variables, and the names of all variables that our programs and libraries use, so that
// misspelt ones are reported.
// Called by all code that reads a variable. Lint rules keep the list complete, and readers in this file.
// Must not know: what the values do.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace skillet {

// Null: not set, or empty (as compose files leave unset variables), or ignored, because this process has more rights
// than the user who started it (setuid programs, file capabilities).
const char* environment_variable(const char* name);

inline constexpr auto kEnvironment = std::to_array<std::string_view>(
    {"SKILLET_LOG", "SKILLET_DEBUG", "SKILLET_BUG_DIR",
     // Options of the delegate; the command and the C interface also read some.
     "SKILLET_DEVICE", "SKILLET_TUNING", "SKILLET_SWITCHES", "SKILLET_ALLOW_UNPROVEN", "SKILLET_UNPROVEN",
     "SKILLET_VERIFY_EVERY", "SKILLET_TRUST_DIR", "SKILLET_PER_CHANNEL", "SKILLET_CACHE_DIR", "SKILLET_REQUIRE_NPU",
     "SKILLET_STRICT", "SKILLET_MAX_DELEGATED_PARTITIONS", "SKILLET_MIN_NODES_PER_PARTITION",
     "SKILLET_MIN_MACS_PER_BYTE", "SKILLET_HOST_THREADS", "SKILLET_PARTITION", "SKILLET_TIMEOUT_MS", "SKILLET_CORES",
     "SKILLET_FALLBACK", "SKILLET_TUNING_FILE", "SKILLET_PROFILE", "SKILLET_TRACE", "SKILLET_TOP", "SKILLET_HELP",
     // Paths with which Python finds the C interface.
     "SKILLET_C_LIBRARY", "SKILLET_PYTHON",
     // Assumptions of simulators.
     "SKILLET_SIM_QUIRK", "SKILLET_SIM_SEED", "SKILLET_SIM_WARN", "SKILLET_SIM_TIE_RULE", "SKILLET_SIM_1X1_ORDER",
     "SKILLET_SIM_COEFFICIENTS", "SKILLET_SIM_5X5_ORDER", "SKILLET_SIM_FC_ORDER", "SKILLET_SIM_OUTPUT_OFFSET",
     "SKILLET_SIM_TRUNCATE_TIE", "SKILLET_SIM_PACKED_PAD", "SKILLET_SIM_DEPTHWISE_SURFACES", "SKILLET_SIM_CPEND",
     "SKILLET_SIM_ELEMENT_WISE", "SKILLET_SIM_ACCUMULATOR", "SKILLET_SIM_STALE_REGISTERS", "SKILLET_SIM_POINTERS",
     "SKILLET_SIM_STREAM_END", "SKILLET_SIM_NEXT_TASK", "SKILLET_SIM_FEATURE_GRAINS", "SKILLET_SIM_OPERAND_SURFACES",
     "SKILLET_SIM_SPARE_BANK", "SKILLET_SIM_STREAMED_KERNEL", "SKILLET_SIM_REUSED_WEIGHTS",
     "SKILLET_SIM_FREE_WEIGHT_BANK", "SKILLET_SIM_JOB_TIME", "SKILLET_SIM_OVER_READ", "SKILLET_SIM_TASK_CON",
     "SKILLET_SIM_POOLING_DONE", "SKILLET_SIM_WEIGHT_SLICES", "SKILLET_SIM_AVERAGE_DIVISOR", "SKILLET_SIM_PRODUCT_TIE",
     // Set by `skillet virtual` and `skillet capture` for the preloaded libraries.
     "SKILLET_VIRTUAL_CHIP", "SKILLET_VIRTUAL_FAIL", "SKILLET_VIRTUAL_TRACE", "SKILLET_VIRTUAL_ROOT",
     "SKILLET_VIRTUAL_FAULT", "SKILLET_VIRTUAL_MISUSE", "SKILLET_VIRTUAL_RELEASE_MS", "SKILLET_VIRTUAL_INTERFACE",
     "SKILLET_CAPTURE_FILE", "SKILLET_CAPTURE_TRACE",
     // For tests.
     "SKILLET_RANDOM_GRAPHS", "SKILLET_RANDOM_GRAPHS_FIRST", "SKILLET_RANDOM_BANDS", "SKILLET_PROPERTY_CASES",
     "SKILLET_PROPERTY_FIRST", "SKILLET_TAMPER_FIRST", "SKILLET_TAMPER_BITS", "SKILLET_QUIRKS"});

// For each variable in `environment` (in the format of environ) that is probably a misspelt one of these:
// "SKILLET_LOGG: there is no such variable; did you mean 'SKILLET_LOG'?"
std::vector<std::string> misspelt_variables(const char* const* environment);

}  // namespace skillet
