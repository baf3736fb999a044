// Runs the steps that `skillet prove` reports: the probe of each assumption in the order of the tables, then operations
// of many kinds, then times of small networks. For refuted steps, names the simulated candidates that compute the same.
// Called by `skillet prove`. Must not know: files, anything of one vendor.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "npu/driver.h"
#include "runtime/costs.h"
#include "runtime/proof_report.h"

namespace skillet::runtime {

struct ProveOptions {
  std::string device;   // as for open_target()
  bool risky = false;   // include steps that may hang, and those that hung before
  bool serial = false;  // the report contains the serial number itself
  std::string boot;     // different after each start of the machine; empty: not known
  std::function<void(const std::string&)> say = [](const std::string&) {};  // receives progress messages
  // Stores the report: before each step, after it, at the end. An error ends the work.
  std::function<Result<void>(const ProofReport&)> keep;
};

// Number of different steps that may hang, or fail for another reason, before the run ends.
inline constexpr int kProofHangsMax = 3;

// Runs the steps that `report` does not have yet; a report without steps is started. A failing device is no error:
// ProofReport::ended describes it. Error: the device does not exist, or `report` is of another device or build.
Result<void> prove(const ProveOptions& options, ProofReport& report);

// True if all steps were run, except those that need --risky.
bool is_whole(const ProofReport& report);

// Error: the report is of another device, or of another build, whose jobs may differ.
Result<void> check_made_here(const ProofReport& report, const DeviceIdentity& here);

// The assumptions that were confirmed or refuted, and the measured costs, for Trust::add(). If no job ended, hangs are
// not counted.
Result<std::vector<TrustEntry>> believed_entries(const ProofReport& report);

// For a refuted step: the quirks with which a simulated chip computes the same in its probe, those of its own
// assumption first, else those of any. Several: the probe does not distinguish them. Error: a candidate cannot be
// simulated here.
Result<std::vector<std::string>> candidates_of(const ProofReport& report, const ProofStep& step);

// What the report's times show about the costs of starting, computing and moving bytes. Empty: nothing was timed.
Result<std::vector<MeasuredCost>> costs_of(const ProofReport& report);

// The family and the row of an assumption in a report that was read.
struct AssumptionRow {
  const npu::Driver* driver = nullptr;
  const npu::Assumption* row = nullptr;
};
AssumptionRow row_of(const ProofReport& report, const ProofStep& step);

}  // namespace skillet::runtime
