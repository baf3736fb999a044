// Runs golden cases on the CPU kernels and counts the results.
// Called by the conformance tests.
// Must not know: chips.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "golden_case.h"

namespace skillet::golden {

struct Tally {
  int passed = 0;
  std::vector<std::string> failed;         // "set/name: reason"
  std::map<std::string, int> not_covered;  // reason -> cases
};

// Error code `unsupported`: there is no kernel, or no input was recorded.
Result<void> run_case(const std::string& golden_dir, const CaseId& id);

Result<Tally> run_all(const std::string& golden_dir);

// Prints one line per reason and failure, then the counts.
void print(const Tally& tally);

}  // namespace skillet::golden
