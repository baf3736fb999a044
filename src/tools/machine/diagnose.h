// Derives findings from facts about a machine: what is present, what is missing, and how to fix it.
// Called by `skillet doctor`.
// Must not know: the source of the facts.
#pragma once

#include <string>
#include <vector>

#include "tools/machine/machine_facts.h"

namespace skillet::tools {

enum class Severity { fine, note, problem };

struct Finding {
  std::string id;  // stable, for --json: "no-module"
  Severity severity = Severity::fine;
  std::string what;
  std::string fix;          // empty: nothing to do
  std::string device = {};  // tested device; empty: the finding is about the machine
};

// In the order of fixing them.
std::vector<Finding> diagnose(const MachineFacts& facts);

}  // namespace skillet::tools
