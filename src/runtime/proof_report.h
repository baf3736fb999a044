// The report of `skillet prove`: a device, and the results of each assumption's probe and of some operations.
// Called by prove.h (fills it) and tools (read and write it).
// Must not know: how a probe runs, anything of one vendor.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "runtime/trust.h"

namespace skillet::runtime {

enum class ProofKind : uint8_t { assumption, operation, time };
inline constexpr std::array<std::string_view, 3> kProofKindNames = {"assumption", "operation", "time"};

// begun: running now, or the machine stopped during it. risky: left out, may hang. failed: a call failed.
enum class ProofOutcome : uint8_t { begun, right, wrong, hangs, not_asked, risky, failed };
inline constexpr std::array<std::string_view, 7> kProofOutcomeNames = {"begun",     "right", "wrong", "hangs",
                                                                       "not_asked", "risky", "failed"};
constexpr std::string_view name_of(ProofOutcome outcome) { return kProofOutcomeNames[static_cast<size_t>(outcome)]; }

constexpr bool is_refuted(ProofOutcome outcome) {
  return outcome == ProofOutcome::wrong || outcome == ProofOutcome::hangs;
}

// One output tensor of one run.
struct ProofOutput {
  int32_t bytes = 0;
  std::string hash;   // of all bytes
  std::string first;  // the first bytes, in hexadecimal; none if the step is right

  bool operator==(const ProofOutput& other) const { return bytes == other.bytes && hash == other.hash; }
};
ProofOutput proof_output(const Bytes& bytes);

struct ProofStep {
  ProofKind kind = ProofKind::assumption;
  std::string name;
  ProofOutcome outcome = ProofOutcome::begun;
  std::string what;                  // for people, one line
  std::vector<ProofOutput> outputs;  // of all runs, in the order of Trial::outputs
  int64_t ns = 0, spread_ns = 0;     // for a time: MeasuredTime
};

struct ProofReport {
  DeviceIdentity device;
  std::string build, date;                                 // of the compiler; of the first step
  std::vector<std::pair<std::string, std::string>> facts;  // "board": "..."
  std::string ended;                                       // why there are no further steps; empty: it has not ended
  std::vector<ProofStep> steps;

  ProofStep* find(ProofKind kind, std::string_view name);
  std::string& fact(std::string_view name);  // created if missing
};
inline constexpr std::string_view kAllSteps = "all steps were taken";

// The same device for a report: the serial number is replaced by a hash.
DeviceIdentity without_serial(DeviceIdentity device);

std::string print(const ProofReport& report);
// `text` is untrusted. The error names the field and what is wrong with it.
Result<ProofReport> parse_proof_report(std::string_view text);

}  // namespace skillet::runtime
