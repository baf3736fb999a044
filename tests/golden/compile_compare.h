// Compares the jobs that a driver compiles with recorded jobs of a driver that is known to work on silicon.
// Called by skillet_golden.
// Must not know: simulators, devices.
#pragma once

#include <string>

#include "driver/chip.h"
#include "expectations.h"

namespace skillet::golden {

// Outcomes:
//   identical   same command words, descriptors and coefficient bytes, addresses aside
//   differs     the details have the decoded field differences
//   refused     our driver does not take the ops; the details have the reasons
//   no_job      the recorded driver sent nothing: nothing to compare
//   failed      the case could not be read or compiled
// DIR/CHIP/SET/CASE/capture.json against DIR/models/SET/CASE.tflite compiled for `chip`.
Outcome compare_case(const std::string& dir, const driver::Chip& chip, const std::string& name);

}  // namespace skillet::golden
