// From facts about a machine to findings: what is there, what is missing, and how to fix it.
// Called by `skillet doctor`.
// Must not know: where the facts come from.
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
  std::string device = {};  // that was tested; empty: it is of the machine
};

// In the order in which a person would fix them.
std::vector<Finding> diagnose(const MachineFacts& facts);

}  // namespace skillet::tools
