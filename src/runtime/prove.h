// Asks a device, step by step, what `skillet prove` reports: the probe of each assumption in the order of the tables,
// then operations of many kinds, then the times of small networks. Says of what was refuted which simulated candidate
// computes the same. Called by `skillet prove`. Must not know: files, a vendor's anything.
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
  std::string device;   // as open_target() takes it
  bool risky = false;   // steps that may hang too, and those that hung before
  bool serial = false;  // the report has the serial number itself
  std::string boot;     // another text after each start of the machine; empty: it is not known
  std::function<void(const std::string&)> say = [](const std::string&) {};  // what is done now
  // Keeps the report: before each step, after it, at the end. An error ends the work.
  std::function<Result<void>(const ProofReport&)> keep;
};

// How many different steps may hang, or fail for another reason, before no more are taken.
inline constexpr int kProofHangsMax = 3;

// Takes the steps that `report` does not have yet; a report without steps is begun. Not an error: what becomes of the
// device; ProofReport::ended says it. Error: there is no such device, `report` is of another one or of another build.
Result<void> prove(const ProveOptions& options, ProofReport& report);

// All steps were taken, but for those that need --risky.
bool is_whole(const ProofReport& report);

// Error: the report is of another device, or of another build, whose jobs may be others.
Result<void> check_made_here(const ProofReport& report, const DeviceIdentity& here);

// The assumptions that were seen to hold or not, and what was measured, for Trust::add(). Where no job ended, what hung
// says nothing.
Result<std::vector<TrustEntry>> believed_entries(const ProofReport& report);

// Of a step that was refuted: the quirks with which a simulated chip gives the same in its probe, those of its own
// assumption first, else of any; several: the probe does not distinguish them. Error: a candidate cannot be simulated
// here.
Result<std::vector<std::string>> candidates_of(const ProofReport& report, const ProofStep& step);

// What the times of the report say of what starts, computing and moving bytes cost there. Empty: nothing was timed.
Result<std::vector<MeasuredCost>> costs_of(const ProofReport& report);

// The family and the row of an assumption of a report that was read.
struct AssumptionRow {
  const npu::Driver* driver = nullptr;
  const npu::Assumption* row = nullptr;
};
AssumptionRow row_of(const ProofReport& report, const ProofStep& step);

}  // namespace skillet::runtime
