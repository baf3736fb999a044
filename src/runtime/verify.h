// What no recording shows, a device shows itself: before the first result of a session, operations that stand on
// assumptions run on the device with probe inputs, and each is compared with the CPU kernels.
// Called by sessions and by the delegate, in compile_for()'s place; by `skillet prove`.
// Must not know: a vendor's anything.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compile/compile.h"
#include "runtime/session.h"

namespace skillet::runtime {

// What a device made of a graph's operations.
struct Trial {
  enum class Outcome : uint8_t {
    right,     // every operation, within npu::steps_off()
    wrong,     // `wrong` says which
    hangs,     // twice: a job did not end, was lost, or the device stopped at it
    not_asked  // nothing was learned: the chip does not take it, or something else failed
  } outcome = Outcome::right;
  std::vector<ir::OpId> wrong;  // of the graph
  std::string what;             // one line for people
  // Of the graph, by input: with all intermediates, then of the program as it is as far as that ran. None where it
  // hung.
  std::vector<std::vector<Bytes>> outputs;
  std::optional<ErrorCode> code;  // of what failed
  double fastest_ms = 0;          // of the runs with all intermediates
  bool is_late = false;           // hangs: the results are there, each after the time that a kernel gives a job
};

// A job that did not end, was lost, or at which the device stopped.
bool is_of_device(const Error& error);

// What `recorded` emits is for comparison with recorded jobs, their faults too: it is not verified.
bool verifies(const Target& target, const SessionOptions& options);

// compile_for(). With Unproven::verify and a target that keeps trust: what its device was seen to compute wrong is left
// to the CPU; what it was not yet seen to compute right runs on it first, on a device file of its own: the probe of
// each assumption, then each part with inputs over the whole range, several of them, each operation given the NPU's own
// inputs. What is found is added to the trust, and what was wrong is compiled again without it. When that is not
// possible (the device cannot be opened, a call fails): all unproven operations go to the CPU, and a warning says why.
// Errors: as compile_for().
Result<compile::Compiled> compile_verified(const Target& target, ir::Graph graph, const SessionOptions& options);

// One line for people about a load, however many parts it compiled. Nothing, where nothing was compared.
std::string text_of(const compile::Verified& compared);
void log_compared(const Target& target, const compile::Verified& compared);

// Runs the probe of an assumption on the device that `target` names. Not where its operations stand on something else
// that `trust` refutes: what would be learned of this one?
Trial try_assumption(const Target& target, const Trust& trust, const npu::Assumption& assumption,
                     const SessionOptions& options);

// Why that would not ask the device; empty: it would.
std::string why_not_asked(const Target& target, const Trust& trust, const npu::Assumption& assumption);

// The same of any graph. Not asked where the chip does not take all of it, or it stands on what `trust` refutes.
Trial try_operations(const Target& target, const Trust& trust, const ir::Graph& graph, const SessionOptions& options);

// Inputs for graph inputs of 8 bits, `index` 0 to kTrialInputs - 1: random over the whole range, the zero point, the
// ends of the range, a ramp; the last is the first again.
inline constexpr size_t kTrialInputs = 5;
std::vector<Bytes> trial_inputs(const ir::Graph& graph, size_t index);

}  // namespace skillet::runtime
