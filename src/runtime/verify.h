// Verification of unproven operations on the device: before the first result of a session, operations that stand on
// assumptions run on the device with probe inputs, and each is compared with the CPU kernels.
// Called by sessions and by the delegate, instead of compile_for(); by `skillet prove`.
// Must not know: anything of one vendor.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compile/compile.h"
#include "runtime/session.h"

namespace skillet::runtime {

// The results of a graph's operations on a device.
struct Trial {
  enum class Outcome : uint8_t {
    right,     // every operation, within npu::steps_off()
    wrong,     // `wrong` lists the operations
    hangs,     // twice: a job did not end, was lost, or the device stopped at it
    not_asked  // nothing was learned: the chip does not take the graph, or something else failed
  } outcome = Outcome::right;
  std::vector<ir::OpId> wrong;  // ids in the graph
  std::string what;             // one line for people
  // By input of the graph: with all intermediates, then those of the unchanged program as far as it ran. Empty if it
  // hung.
  std::vector<std::vector<Bytes>> outputs;
  std::optional<ErrorCode> code;  // of the failure
  double fastest_ms = 0;          // of the runs with all intermediates
  bool is_late = false;           // hangs: results were written, but each only after the kernel's time limit
};

// True if a job did not end, was lost, or stopped the device.
bool is_of_device(const Error& error);

// Programs of `recorded` are compared with recorded jobs, faults included, and are not verified.
bool verifies(const Target& target, const SessionOptions& options);

// compile_for(). With Unproven::verify and a target that keeps trust: operations that its device was seen to compute
// wrong are left to the CPU. Those not yet seen to be right first run on the device, on a separate device file: the
// probe of each assumption, then each part with several inputs over the whole range, each operation compared on the
// NPU's own inputs. Findings are added to the trust, and wrong operations are compiled again without the NPU. If that
// is not possible (the device cannot be opened, a call fails), all unproven operations go to the CPU, and a warning
// gives the reason. Errors: as compile_for().
Result<compile::Compiled> compile_verified(const Target& target, ir::Graph graph, const SessionOptions& options);

// One line about a load, for any number of parts. Empty: nothing was compared.
std::string text_of(const compile::Verified& compared);
void log_compared(const Target& target, const compile::Verified& compared);

// Runs the probe of an assumption on the device that `target` names. Does not run it if its operations also stand on
// another assumption that `trust` refutes, since the result would show nothing about this one.
Trial try_assumption(const Target& target, const Trust& trust, const npu::Assumption& assumption,
                     const SessionOptions& options);

// Why try_assumption() would not run the probe; empty: it would.
std::string why_not_asked(const Target& target, const Trust& trust, const npu::Assumption& assumption);

// The same for any graph. Not run if the chip does not take all of it, or it stands on an assumption that `trust`
// refutes.
Trial try_operations(const Target& target, const Trust& trust, const ir::Graph& graph, const SessionOptions& options);

// Inputs for graph inputs of 8 bits, `index` 0 to kTrialInputs - 1: random over the whole range, the zero point, the
// ends of the range, a ramp; the last equals the first.
inline constexpr size_t kTrialInputs = 5;
std::vector<Bytes> trial_inputs(const ir::Graph& graph, size_t index);

}  // namespace skillet::runtime
