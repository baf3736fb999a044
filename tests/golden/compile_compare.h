// Compares the jobs that a driver compiles with recorded jobs of a driver that is known to work on silicon.
// Called by skillet_golden_compile and the golden test.
// Must not know: simulators, devices.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace skillet::golden {

enum class Outcome : uint8_t {
  identical,  // same command words, descriptors and coefficient bytes, addresses aside
  differs,    // `details` has the decoded field differences
  refused,    // our driver does not take the ops; `details` has the reasons
  no_job,     // the recorded driver sent nothing: nothing to compare
  failed,     // the case could not be read or compiled
};
std::string_view outcome_name(Outcome outcome);

struct Comparison {
  std::string name;  // "set/case"
  Outcome outcome = Outcome::failed;
  std::vector<std::string> details;
};

// DIR/CHIP/SET/CASE/capture.json against DIR/models/SET/CASE.tflite compiled for `chip` in proven mode.
Comparison compare_case(const std::string& dir, const std::string& chip, const std::string& name);
// All "set/case" names of DIR/CHIP, sorted. Error when the folder is missing.
Result<std::vector<std::string>> list_captures(const std::string& dir, const std::string& chip);

}  // namespace skillet::golden
